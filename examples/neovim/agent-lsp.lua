-- agent-lsp in Neovim 0.11 or later. Copy this file to ~/.config/nvim/plugin/agent-lsp.lua.
--
--   :[range]Agent {prompt}  run a prompt; a range is passed on as what it is about
--   :AgentCancel            stop what runs
--   :AgentValidate          run the project's linters and tests
--   :AgentMode [{mode}]     show or set the permission mode
--   :AgentApprovals         choose one of the waiting questions and answer it
--   :AgentTrust             show what the project would execute, and decide
--   :AgentStatus            what the agent is doing
--
-- A question comes as a list (vim.ui.select); <Esc> leaves it waiting, behind :AgentApprovals and the code actions
-- of the lines concerned. vim.lsp.status() has the progress, for a statusline.

local NAME = "agent_lsp"
local ROOT_MARKERS = { { ".git", ".agent-lsp" } }

-- What the server asks of the editor

---@return integer? buffer the loaded buffer of a document
local function buffer_of(uri)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.uri_from_bufnr(buffer) == uri then
      return buffer
    end
  end
end

---@return string text as :write would write it, except for line endings, which are always "\n"
local function text_of(buffer)
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\n")
  return vim.bo[buffer].endofline and text .. "\n" or text
end

---@return integer? version of a document, as Neovim tells it to all language servers
local function version_of(buffer)
  return vim.lsp.util.buf_versions[buffer]
end

local function read_document(_, params)
  local buffer = buffer_of(params.uri)
  return buffer and { text = text_of(buffer), version = version_of(buffer) } or vim.NIL
end

---Apply edits to a document that is still as the server saw it, in one undo step, and write it.
local function write_document(_, params, context)
  local buffer = buffer_of(params.uri)
  if not buffer then
    return { applied = false, reason = "the file is not open" }
  elseif params.version and params.version ~= version_of(buffer) then
    return { applied = false, reason = "the file was edited meanwhile" }
  end
  vim.bo[buffer].undolevels = vim.bo[buffer].undolevels -- what was typed before is an undo step of its own
  vim.lsp.util.apply_text_edits(params.edits, buffer, vim.lsp.get_client_by_id(context.client_id).offset_encoding)
  local saved, problem = not params.save, nil
  vim.api.nvim_buf_call(buffer, function()
    if params.save then
      saved, problem = pcall(vim.cmd, "silent write")
    end
    if not saved then
      vim.cmd("silent undo")
    end
  end)
  return { applied = saved, reason = problem }
end

---What other language servers and linters say of a document, or of all.
local function diagnostics(_, params, context)
  local encoding = vim.lsp.get_client_by_id(context.client_id).offset_encoding
  local own = vim.lsp.diagnostic.get_namespace(context.client_id)

  local function position(buffer, line, column)
    local text = vim.api.nvim_buf_get_lines(buffer, line, line + 1, false)[1] or ""
    return { line = line, character = vim.str_utfindex(text, encoding, math.min(column, #text)) }
  end

  local function reported(buffer)
    local found = {}
    for _, each in ipairs(vim.diagnostic.get(buffer)) do
      if each.namespace ~= own then
        table.insert(found, {
          range = {
            start = position(buffer, each.lnum, each.col),
            ["end"] = position(buffer, each.end_lnum or each.lnum, each.end_col or each.col),
          },
          severity = each.severity,
          source = each.source,
          code = each.code,
          message = each.message,
        })
      end
    end
    return found
  end

  local documents = {}
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local uri = vim.uri_from_bufnr(buffer)
    if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].buftype == "" and uri == (params.uri or uri) then
      table.insert(documents, { uri = uri, version = version_of(buffer), diagnostics = reported(buffer) })
    end
  end
  return documents
end

vim.lsp.config(NAME, {
  cmd = { "agent-lsp", "serve" },
  root_markers = ROOT_MARKERS,
  workspace_required = true, -- a file outside of any project gets its server with its first :Agent
  init_options = { documents = true, diagnostics = true },
  handlers = {
    ["agent/readDocument"] = read_document,
    ["agent/writeDocument"] = write_document,
    ["agent/diagnostics"] = diagnostics,
  },
})
vim.lsp.enable(NAME)

vim.api.nvim_create_autocmd("LspProgress", {
  desc = "agent-lsp: show files as its tools left them, and the transcript as it grows",
  callback = function(event)
    if vim.lsp.get_client_by_id(event.data.client_id).name == NAME then
      vim.schedule(function() -- an autocommand would put it off until the next key
        vim.cmd("silent! checktime")
      end)
    end
  end,
})

-- Commands

---@return vim.lsp.Client client of the current file's project, started where there is none
local function client()
  local found = vim.lsp.get_clients({ name = NAME, bufnr = 0 })[1]
  if not found then
    local root = vim.fs.root(0, ROOT_MARKERS[1]) or vim.fn.getcwd()
    local config = vim.tbl_extend("force", vim.lsp.config[NAME], { root_dir = root })
    found = vim.lsp.get_client_by_id(assert(vim.lsp.start(config, { attach = false }), "agent-lsp does not start"))
  end
  vim.wait(5000, function()
    return found.initialized
  end)
  return found
end

---Ask the server to execute a command; what it answers goes to `on_result`, an error to the user.
local function execute(command, argument, on_result)
  local params = { command = command, arguments = { argument } }
  client():request("workspace/executeCommand", params, function(problem, result)
    if problem then
      vim.notify("Agent: " .. problem.message, vim.log.levels.ERROR)
    elseif on_result then
      on_result(result)
    end
  end)
end

local function say(text, ...)
  vim.notify("Agent: " .. text:format(...))
end

local function run(command)
  local context = {}
  if command.range > 0 then
    context[1] = {
      uri = vim.uri_from_bufnr(0),
      range = {
        start = { line = command.line1 - 1, character = 0 },
        ["end"] = { line = command.line2 - 1, character = 0 },
      },
    }
  end
  execute("agent.run", { prompt = command.args, context = context })
end

local function cancel()
  execute("agent.cancel", nil, function(result)
    say(result.cancelled and "cancelled" or "nothing runs")
  end)
end

local function validate()
  execute("agent.validate", nil, function(result)
    say(result.started and "validating" or "not while a prompt runs; it validates by itself")
  end)
end

local function mode(command)
  execute("agent.mode", command.fargs[1], function(result)
    say("mode %s", result.mode)
  end)
end

local function status()
  execute("agent.status", nil, function(result)
    local running = vim.iter(result.sessions):any(function(session)
      return session.running
    end)
    local state = running and "running" or "idle"
    say("%s, %d questions wait, validation %s", state, result.pendingApprovals, result.validation)
  end)
end

local ANSWERS = {
  { title = "Show change", command = "agent.approvals.show" },
  { title = "Allow", command = "agent.approvals.answer", decision = "allow" },
  { title = "Deny", command = "agent.approvals.answer", decision = "deny" },
}

local function title_of(answer)
  return answer.title
end

local function approvals()
  execute("agent.approvals.list", nil, function(waiting)
    local function question(approval)
      return ("%s: %s"):format(approval.tool, approval.target)
    end
    vim.ui.select(waiting, { prompt = "Waiting for your answer:", format_item = question }, function(approval)
      if approval then
        vim.ui.select(ANSWERS, { prompt = question(approval), format_item = title_of }, function(answer)
          if answer then
            execute(answer.command, { id = approval.id, decision = answer.decision })
          end
        end)
      end
    end)
  end)
end

local function trust()
  execute("agent.trust", nil, function(shown)
    local lines = { "This project would execute or widen:" }
    for _, item in ipairs(shown.items) do
      table.insert(lines, ("%s %s (%s)"):format(item.trusted and "[trusted]" or "[new]", item.text, item.place))
    end
    if #shown.items == 0 then
      return say("this project executes nothing of its own")
    end
    local choices = { "Leave it as it is", "Trust all of it", "Trust none of it" }
    vim.ui.select(choices, { prompt = table.concat(lines, "\n") }, function(_, choice)
      local decision = ({ nil, "grant", "revoke" })[choice]
      if decision then
        execute("agent.trust", { decision = decision }, function(result)
          say(result.trusted and "trusted" or "not trusted")
        end)
      end
    end)
  end)
end

local function modes()
  return { "default", "plan", "accept_edits", "dont_ask", "bypass" }
end

local command = vim.api.nvim_create_user_command
command("Agent", run, { nargs = "+", range = true, desc = "Run a prompt" })
command("AgentCancel", cancel, { desc = "Stop what the agent does" })
command("AgentValidate", validate, { desc = "Run the project's linters and tests" })
command("AgentMode", mode, { nargs = "?", complete = modes, desc = "Show or set the permission mode" })
command("AgentApprovals", approvals, { desc = "Answer a waiting question" })
command("AgentTrust", trust, { desc = "Show what the project would execute, and decide" })
command("AgentStatus", status, { desc = "Show what the agent is doing" })
