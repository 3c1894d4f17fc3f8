"""Approvals where the code is: diagnostics, code actions, single parts, documents. ``agent-lsp serve`` as a process."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.flows.test_editor_hooks import BLOCK_NEW, diagnostics, write_settings
from tests.flows.test_language_server import CAPABILITIES, Human, command, editor
from tests.support.jsonrpc_client import ErrorReply, ProcessClient
from tests.support.openai_server import OpenAIServer

LINES = "".join(f"line {number}\n" for number in range(1, 31))
EDITS = [
    {"old": "line 2\n", "new": "second\n"},
    {"old": "line 15\n", "new": "line 15\nadded\n"},
    {"old": "line 29\n", "new": ""},
]
EDIT = ("call_1", "edit_file", json.dumps({"path": "text.txt", "edits": EDITS}))
RESOLVING = {
    **CAPABILITIES,
    "textDocument": {"codeAction": {"dataSupport": True, "resolveSupport": {"properties": ["command"]}}},
}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "work" / "text.txt"
    file.parent.mkdir()
    file.write_text(LINES)
    return file


async def actions(client: ProcessClient, file: Path, line: int, *, only: list[str] | None = None) -> dict[str, Any]:
    """The code actions at a line, counted from 0, by title."""
    place = {"line": line, "character": 0}
    context = {"diagnostics": [], **({} if only is None else {"only": only})}
    params = {"textDocument": {"uri": file.as_uri()}, "range": {"start": place, "end": place}, "context": context}
    return {action["title"]: action for action in await client.request("textDocument/codeAction", params) or ()}


def _shows(ending: str, message: dict[str, Any]) -> bool:
    return message.get("method") == "window/showDocument" and str(message["params"]["uri"]).endswith(ending)


async def choose(client: ProcessClient, action: dict[str, Any]) -> Any:
    """Do what an editor does with a chosen action."""
    chosen = action["command"]
    params = {"command": chosen["command"], "arguments": chosen["arguments"]}
    return await client.request("workspace/executeCommand", params)


@pytest.mark.requirement("S4-approvals", "S4-code-actions")
async def test_change_that_waits_is_shown_at_its_lines_and_allowed_there(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        shown = await diagnostics(client, text, some=True)
        question = await client.wait_for_method("window/showMessageRequest")
        here, elsewhere = await actions(client, text, 1), await actions(client, text, 8)
        other_kind = await actions(client, text, 1, only=["source.organizeImports"])
        answered = await choose(client, here["Allow edit_file: text.txt"])
        await client.answer(prompt)
        await diagnostics(client, text, some=False)
        withdrawn = await client.wait_for_method("$/cancelRequest")

    assert [
        (each["source"], each["code"], each["range"]["start"]["line"], each["range"]["end"]["line"]) for each in shown
    ] == [
        ("agent-lsp", "approval", 1, 1),
        ("agent-lsp", "approval", 14, 14),
        ("agent-lsp", "approval", 28, 28),
    ]
    assert list(here) == [
        "Show change",
        "Allow edit_file: text.txt",
        "Allow in this session: edit_file: text.txt",
        "Always allow edit_file(/text.txt)",
        "Allow this part (1 of 3)",
        "Leave this part out (1 of 3)",
        "Deny edit_file: text.txt",
    ]
    assert (elsewhere, other_kind, answered) == ({}, {}, {"answered": True})
    assert withdrawn["params"] == {"id": question["id"]}
    expected = LINES.replace("line 2\n", "second\n").replace("line 15\n", "line 15\nadded\n").replace("line 29\n", "")
    assert text.read_text() == expected


@pytest.mark.requirement("S4-approvals", "S4-code-actions")
async def test_parts_of_a_change_are_taken_one_by_one_and_the_model_hears_which(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        await diagnostics(client, text, some=True)
        await choose(client, (await actions(client, text, 14))["Leave this part out (2 of 3)"])
        await choose(client, (await actions(client, text, 1))["Allow this part (1 of 3)"])
        undecided = await command(client, "agent.approvals.list")
        await choose(client, (await actions(client, text, 28))["Allow this part (3 of 3)"])
        await client.answer(prompt)

    assert undecided[0]["hunks"] == [
        {"before": [0, 5], "after": [0, 5], "replaced": [1, 2]},
        {"before": [12, 18], "after": [12, 19], "replaced": [15, 15]},
        {"before": [25, 30], "after": [26, 30], "replaced": [28, 29]},
    ]
    assert undecided[0]["decided"] == {"0": True, "1": False}
    assert text.read_text() == LINES.replace("line 2\n", "second\n").replace("line 29\n", "")
    heard = server.requests[1].body["messages"][-1]["content"]
    assert heard.startswith("Edited text.txt\n")
    diff = "--- a/text.txt\n+++ b/text.txt\n@@ -13,6 +13,7 @@\n"
    assert f"The user allowed only a part of this change. Not made was:\n{diff}" in heard
    assert "+added\n" in heard
    assert "-line 29\n" not in heard


@pytest.mark.requirement("S4-approvals")
async def test_parts_can_be_named_in_the_answer(tmp_path: Path, text: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        await diagnostics(client, text, some=True)
        for wrong in ([3], [-1], []):
            with pytest.raises(ErrorReply) as refusal:
                await command(client, "agent.approvals.answer", {"decision": "allow", "hunks": wrong})
            assert refusal.value.code == -32602
        answered = await command(client, "agent.approvals.answer", {"decision": "allow", "hunks": [1]})
        await client.answer(prompt)

    assert answered == {"answered": True}
    assert text.read_text() == LINES.replace("line 15\n", "line 15\nadded\n")


@pytest.mark.requirement("S4-approvals")
async def test_part_that_was_left_out_stays_out_whatever_is_allowed_then(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        await diagnostics(client, text, some=True)
        await choose(client, (await actions(client, text, 14))["Leave this part out (2 of 3)"])
        await command(client, "agent.approvals.allow")
        await client.answer(prompt)

    assert text.read_text() == LINES.replace("line 2\n", "second\n").replace("line 29\n", "")
    assert "- line" not in server.requests[1].body["messages"][-1]["content"].partition("\nThe user")[0]


@pytest.mark.requirement("S4-approvals")
async def test_all_parts_left_out_is_a_refusal(tmp_path: Path, text: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        await diagnostics(client, text, some=True)
        waiting = (await command(client, "agent.approvals.list"))[0]["id"]
        for hunk in range(3):
            await command(client, "agent.approvals.part", {"id": waiting, "hunk": hunk, "decision": "deny"})
        await client.answer(prompt)

    assert text.read_text() == LINES
    assert server.requests[1].body["messages"][-1]["content"] == "Error [permission_denied]: The user denied this call"


@pytest.mark.requirement("S4-approvals", "S4-content")
async def test_change_is_shown_as_documents_of_ours_where_the_editor_asks_for_them(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")
    capabilities = {**CAPABILITIES, "workspace": {"textDocumentContent": {}}}

    async with editor(tmp_path, server, capabilities=capabilities) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        await diagnostics(client, text, some=True)
        contents = []
        for side, ending in (("diff", ".diff"), ("before", "-before-text.txt"), ("after", "-after-text.txt")):
            await command(client, "agent.approvals.show", {"side": side})
            shown = await client.wait_for(partial(_shows, ending))
            uri = shown["params"]["uri"]
            contents.append((uri, (await client.request("workspace/textDocumentContent", {"uri": uri}))["text"]))
        with pytest.raises(ErrorReply) as unknown:
            await client.request("workspace/textDocumentContent", {"uri": "agent-lsp:/other"})
        await command(client, "agent.approvals.deny")
        await client.answer(prompt)

    assert [uri.startswith("agent-lsp:/edit_file-") for uri, _text in contents] == [True] * 3
    assert contents[0][1].startswith("--- a/text.txt\n+++ b/text.txt\n")
    assert (contents[1][1], contents[2][1].count("\n")) == (LINES, 30)
    assert unknown.value.code == -32602


@pytest.mark.requirement("S4-transcript", "S4-content")
async def test_transcript_is_a_live_document_where_the_editor_asks_for_texts(
    tmp_path: Path, server: OpenAIServer
) -> None:
    server.reply_text("first")
    server.reply_text("second")
    capabilities = {**CAPABILITIES, "workspace": {"textDocumentContent": {}}}

    async with editor(tmp_path, server, capabilities=capabilities) as client:
        first = await client.request("agent/prompt", {"prompt": "one"})
        shown = await client.wait_for_method("window/showDocument")
        uri = shown["params"]["uri"]
        await client.request("agent/prompt", {"prompt": "two"})
        refreshed = await client.wait_for_method("workspace/textDocumentContent/refresh")
        content = await client.request("workspace/textDocumentContent", {"uri": uri})

    assert uri == f"agent-lsp:/{first['sessionId']}.md"
    assert refreshed["params"] == {"uri": uri}
    assert content["text"] == "## Prompt\n\none\n\nfirst\n\n## Prompt\n\ntwo\n\nsecond\n\n"


@pytest.mark.requirement("S4-code-actions")
async def test_client_that_resolves_commands_gets_them_when_it_chooses(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server, capabilities=RESOLVING) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        await diagnostics(client, text, some=True)
        light = (await actions(client, text, 1))["Deny edit_file: text.txt"]
        whole = await client.request("codeAction/resolve", light)
        await choose(client, whole)
        await client.answer(prompt)

    assert "command" not in light
    assert text.read_text() == LINES


@pytest.mark.requirement("S4-approvals")
async def test_call_without_a_file_can_be_answered_anywhere(tmp_path: Path, text: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(("call_1", "shell", '{"command": "echo hello > told"}'))
    server.reply_text("done")

    async with editor(tmp_path, server) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        await client.wait_for_method("window/showMessageRequest")
        offered = await actions(client, text, 20)
        await choose(client, offered["Allow shell: echo hello > told"])
        await client.answer(prompt)

    assert next(iter(offered)) == "Show details"
    assert (tmp_path / "work" / "told").read_text() == "hello\n"


@pytest.mark.requirement("S4-approvals", "S4-diagnostics")
async def test_shutdown_leaves_no_diagnostic_and_allows_nothing(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)

    async with editor(tmp_path, server) as client:
        await client.ask("agent/prompt", {"prompt": "x"})
        await diagnostics(client, text, some=True)
        await client.shut_down()
        await client.exit_code()
        published = client.of_method("textDocument/publishDiagnostics")

    assert published[-1] == {"uri": text.as_uri(), "diagnostics": []}
    assert text.read_text() == LINES


@pytest.mark.requirement("S4-diagnostics", "S4-code-actions")
@pytest.mark.parametrize("folder", ["work", "link"])
async def test_file_is_one_however_the_editor_spells_it(tmp_path: Path, server: OpenAIServer, folder: str) -> None:
    text = tmp_path / "work" / "a (1).txt"
    text.parent.mkdir()
    text.write_text(LINES)
    (tmp_path / "link").symlink_to("work", target_is_directory=True)
    uri = (tmp_path / folder / "a (1).txt").as_uri().replace("%28", "(").replace("%29", ")")
    server.reply_tool_calls(("call_1", "edit_file", json.dumps({"path": "a (1).txt", "edits": EDITS})))
    server.reply_text("done")

    def empty(of: str) -> Any:
        return partial(_published, of, some=False)

    async with editor(tmp_path, server) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        await diagnostics(client, text, some=True)
        item = {"uri": uri, "languageId": "plaintext", "version": 1, "text": LINES}
        await client.notify("textDocument/didOpen", {"textDocument": item})
        await client.wait_for(empty(text.as_uri()))
        await client.wait_for(partial(_published, uri, some=True))
        [waiting] = await command(client, "agent.approvals.list")
        place = {"line": 1, "character": 0}
        params = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
        here = {action["title"]: action for action in await client.request("textDocument/codeAction", params)}
        await choose(client, here["Allow edit_file: a (1).txt"])
        await client.answer(prompt)
        await client.wait_for(empty(uri))

    assert waiting["uri"] == uri
    assert text.read_text().startswith("line 1\nsecond\n")


def _published(uri: str, message: dict[str, Any], *, some: bool) -> bool:
    if message.get("method") != "textDocument/publishDiagnostics" or message["params"]["uri"] != uri:
        return False
    return bool(message["params"]["diagnostics"]) is some


@pytest.mark.requirement("S4-approvals")
async def test_approval_left_open_by_a_client_that_goes_is_no_allow(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)

    async with editor(tmp_path, server) as client:
        await client.ask("agent/prompt", {"prompt": "x"})
        await client.wait_for_method("window/showMessageRequest")
        await client.close()
        await client.exit_code()
    async with editor(tmp_path, server) as client:
        waiting = await command(client, "agent.approvals.list")
        answered = await command(client, "agent.approvals.allow")

    assert (waiting, answered) == ([], {"answered": False})
    assert text.read_text() == LINES


@pytest.mark.requirement("S4-block", "S4-code-actions")
async def test_block_is_shown_on_its_file_until_it_is_dismissed(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    settings = write_settings(tmp_path, {"hooks": {"PreToolUse": [{**BLOCK_NEW, "matcher": "edit_file"}]}})
    server.reply_tool_calls(EDIT)
    server.reply_text("blocked")

    async with editor(tmp_path, server, human=Human("Allow")) as client:
        await client.request("agent/prompt", {"prompt": "x"})
        shown = await diagnostics(client, text, some=True)
        offered = await actions(client, text, 0)
        await choose(client, offered["Open the hook"])
        opened = await client.wait_for(
            lambda m: m.get("method") == "window/showDocument" and m["params"]["uri"] == settings.as_uri()
        )
        await choose(client, offered["Dismiss"])
        await diagnostics(client, text, some=False)

    assert [(each["code"], each["message"]) for each in shown] == [
        ("hook-block", "PreToolUse blocked edit_file: new.txt is taken")
    ]
    assert opened["params"]["selection"]["start"]["line"] > 0
    assert opened["params"]["takeFocus"] is True


@pytest.mark.requirement("S4-approvals")
async def test_client_of_ours_is_asked_by_a_request_and_may_take_parts(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")
    asked: list[Any] = []

    def answer(params: Any) -> Any:
        asked.append(params)
        return {"decision": "allow", "hunks": [2]}

    handlers = {"agent/requestApproval": answer}
    async with editor(tmp_path, server, handlers=handlers, approvals=True) as client:
        await client.request("agent/prompt", {"prompt": "x"})
        messages = client.of_method("window/showMessageRequest")

    assert [(params["tool"], params["uri"], len(params["hunks"])) for params in asked] == [
        ("edit_file", text.as_uri(), 3)
    ]
    assert messages == []
    assert text.read_text() == LINES.replace("line 29\n", "")


@pytest.mark.requirement("S4-approvals")
@pytest.mark.parametrize("answer", [None, {"decision": "yes"}, {"decision": "allow", "hunks": [9]}, []])
async def test_unclear_answer_of_a_client_of_ours_allows_nothing(
    tmp_path: Path, text: Path, server: OpenAIServer, answer: Any
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(
        tmp_path, server, handlers={"agent/requestApproval": lambda _params: answer}, approvals=True
    ) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        await client.wait_for_method("agent/requestApproval")
        await command(client, "agent.approvals.deny")
        await client.answer(prompt)

    assert text.read_text() == LINES
    assert server.requests[1].body["messages"][-1]["content"].startswith("Error [permission_denied]")


@pytest.mark.requirement("S4-approvals")
async def test_client_that_does_not_know_the_request_gets_a_message(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server, human=Human("Deny"), approvals=True) as client:
        await client.request("agent/prompt", {"prompt": "x"})
        messages = client.of_method("window/showMessageRequest")

    assert len(messages) == 1
    assert text.read_text() == LINES
