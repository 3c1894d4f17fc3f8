-- What a user does in Neovim, as scenarios for test_neovim.py; each returns what the user saw.

local LIMIT = 10000 -- milliseconds

local function wait(what, condition)
  if not vim.wait(LIMIT, condition, 10) then
    error("waited in vain for " .. what .. "\n" .. vim.fn.execute("messages"))
  end
end

local asked = {} -- the questions, as they were put to the user
local answers = {} -- the titles to choose, in turn; without one the user presses <Esc>

---@diagnostic disable-next-line: duplicate-set-field
vim.ui.select = function(items, options, on_choice)
  local titles = vim.tbl_map(options.format_item or tostring, items)
  table.insert(asked, { kind = options.kind, prompt = options.prompt, titles = titles })
  local answer = table.remove(answers, 1)
  for index, title in ipairs(titles) do
    if answer and vim.startswith(title, answer) then
      return on_choice(items[index], index)
    end
  end
  on_choice(nil, nil)
end

local function answer(...)
  answers = { ... }
end

local function wait_for_message(text)
  wait("the message " .. text, function()
    return vim.fn.execute("messages"):find(text, 1, true)
  end)
end

local function wait_for_client()
  wait("a client", function()
    local client = vim.lsp.get_clients({ name = "agent_lsp", bufnr = 0 })[1]
    return client and client.initialized
  end)
end

local function wait_for_status(text)
  wait("the status " .. text, function()
    return vim.lsp.status():find(text, 1, true)
  end)
end

---@return string text of the current buffer
local function text(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer or 0, 0, -1, true), "\n") .. "\n"
end

---@return integer? buffer whose name ends like this
local function find_buffer(ending)
  return vim.iter(vim.api.nvim_list_bufs()):find(function(buffer)
    return vim.endswith(vim.api.nvim_buf_get_name(buffer), ending)
  end)
end

local function diagnostics()
  return vim.tbl_map(function(each)
    return { line = each.lnum, source = each.source, code = each.code }
  end, vim.diagnostic.get(0))
end

local scenarios = {}

function scenarios.questions()
  local source = vim.api.nvim_get_current_buf()
  answer("Show change", "Allow")
  vim.cmd("2Agent fix this")
  wait_for_message("Agent: Fixed.")
  wait("the change in the buffer", function()
    return text(source):find("number * 2", 1, true)
  end)
  local allowed = { text = text(source), modified = vim.bo[source].modified, change = text(find_buffer(".diff")) }

  answer("Deny")
  vim.cmd("Agent spoil it")
  wait_for_message("Agent: Not done.")
  local refused = text(source)

  vim.cmd("Agent spoil it again")
  wait("the question", function()
    return #asked == 4
  end)
  answer("edit_file: doubling.py", "Deny")
  vim.cmd("AgentApprovals")
  wait_for_message("Agent: Still not done.")
  return { asked = asked, allowed = allowed, refused = refused }
end

function scenarios.actions()
  local last = vim.api.nvim_buf_line_count(0)
  local seen = {}

  ---Run a prompt, leave its question waiting, and answer at the lines that it is about.
  local function answer_at(prompt, ending, places)
    local before = #asked
    vim.cmd("Agent " .. prompt)
    wait("a question, and the lines that it is about", function()
      return #asked > before and #diagnostics() == #places
    end)
    table.insert(seen, diagnostics())
    for _, place in ipairs(places) do
      vim.api.nvim_win_set_cursor(0, { place.line, 0 })
      answer(place.title)
      vim.lsp.buf.code_action()
      wait("the code actions", function()
        return #answers == 0
      end)
    end
    wait_for_message(ending)
    wait("no diagnostic", function()
      return #diagnostics() == 0
    end)
  end

  local parts = { { line = 2, title = "Allow this part (1" }, { line = last, title = "Leave this part out (2" } }
  answer_at("fix it and raise the limit", "Agent: Fixed.", parts)
  local partly = text()
  answer_at("raise it", "Agent: Raised.", { { line = last, title = "Allow edit_file: doubling.py" } })
  return { asked = asked, waiting = seen, partly = partly, whole = text() }
end

function scenarios.edit()
  vim.api.nvim_buf_set_lines(0, -1, -1, true, { "# typed" })
  answer("Allow")
  vim.cmd("Agent fix this")
  wait_for_message("Agent: Fixed.")
  local edited, modified = text(), vim.bo.modified
  vim.cmd("undo")
  return { edited = edited, modified = modified, undone = text() }
end

function scenarios.validation()
  answer("Trust all of it")
  vim.cmd("AgentTrust")
  wait_for_message("Agent: trusted")

  answer("Ask the agent to fix", "Allow")
  vim.cmd("AgentValidate")
  wait("a diagnostic", function()
    return #diagnostics() > 0
  end)
  local red = diagnostics()
  wait_for_message("Agent: Fixed.")
  wait("no diagnostic", function()
    return #diagnostics() == 0
  end)
  vim.cmd("AgentStatus")
  wait_for_message("validation green")
  return { asked = asked, red = red }
end

function scenarios.cancel()
  vim.cmd("Agent explain")
  wait_for_status("answering")
  vim.cmd("AgentCancel")
  wait_for_message("Agent: cancelled")

  vim.cmd("AgentMode bypass")
  wait_for_message("Agent: mode bypass")
  vim.cmd("Agent wait")
  wait_for_status("running shell")
  return { running = true }
end

local function main()
  local scenario = vim.env.AGENT_TEST_SCENARIO
  local ok, seen = xpcall(function()
    wait_for_client()
    return scenarios[scenario]()
  end, debug.traceback)
  vim.fn.writefile({ vim.json.encode(ok and seen or { failure = seen }) }, vim.env.AGENT_TEST_REPORT)
  vim.cmd("qall!")
end

vim.api.nvim_create_autocmd("VimEnter", { callback = vim.schedule_wrap(main) })
