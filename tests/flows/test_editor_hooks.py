"""Configured hooks, trust and settings mistakes as an editor meets them: ``agent-lsp serve`` as a process."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.flows.test_language_server import CAPABILITIES, WRITE, Human, command, editor
from tests.support.jsonrpc_client import ErrorReply, ProcessClient
from tests.support.openai_server import OpenAIServer

BLOCK_NEW = {
    "type": "command",
    "command": "cat > payload.json; echo new.txt is taken >&2; exit 2",
    "matcher": "write_file",
    "blocking": True,
    "name": "names",
}


def write_settings(tmp_path: Path, settings: Any) -> Path:
    file = tmp_path / "work" / ".agent-lsp" / "settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(settings if isinstance(settings, str) else json.dumps(settings, indent=2))
    return file


async def diagnostics(client: ProcessClient, file: Path, *, some: bool) -> list[dict[str, Any]]:
    """The next diagnostics of a file; ``some`` says whether there are any."""
    message = await client.wait_for(
        lambda message: (
            message.get("method") == "textDocument/publishDiagnostics"
            and message["params"]["uri"] == file.as_uri()
            and bool(message["params"]["diagnostics"]) is some
        )
    )
    found: list[dict[str, Any]] = message["params"]["diagnostics"]
    return found


@pytest.mark.requirement("B24", "B42", "F70", "S4-trust", "S4-block", "S4-hooks")
async def test_hook_runs_after_one_question_and_its_block_is_shown(tmp_path: Path, server: OpenAIServer) -> None:
    file = write_settings(tmp_path, {"hooks": {"PreToolUse": [BLOCK_NEW]}})
    server.reply_tool_calls(WRITE)
    server.reply_text("blocked")
    human = Human("Show details", "Allow")

    async with editor(tmp_path, server, human=human) as client:
        before = await command(client, "agent.trust")
        result = await client.request("agent/prompt", {"prompt": "x"})
        after = await command(client, "agent.trust")
        log = await command(client, "agent.hooks")
        warnings = [p["message"] for p in client.of_method("window/showMessage") if p["type"] == 2]

    payload = json.loads((tmp_path / "work" / "payload.json").read_text())
    assert result["text"] == "blocked"
    assert not (tmp_path / "work" / "new.txt").exists()
    assert server.requests[1].body["messages"][-1]["content"] == (
        "Error [hook_blocked]: blocked by hook: new.txt is taken"
    )
    assert payload == {
        "event": "PreToolUse",
        "session_id": result["sessionId"],
        "cwd": str(tmp_path / "work"),
        "tool": "write_file",
        "args": {"path": "new.txt", "content": "hello\n"},
    }
    assert (before["trusted"], after["trusted"]) == (False, True)
    assert len(human.questions) == 2
    assert BLOCK_NEW["command"] in human.questions[0]["message"].replace("⏎", "\n")
    assert human.questions[0]["actions"] == [{"title": title} for title in ("Show details", "Allow", "Deny")]
    assert warnings == ["PreToolUse blocked write_file: new.txt is taken"]
    assert [(hook["name"], hook["source"], hook["line"], hook["trusted"]) for hook in log["hooks"]] == [
        ("names", str(file), 4, True)
    ]
    assert [(run["name"], run["decision"], run["exitCode"], run["stderr"]) for run in log["runs"]] == [
        ("names", "blocked", 2, "new.txt is taken")
    ]


@pytest.mark.requirement("B42", "F11", "F70", "S4-trust")
async def test_refused_hook_does_not_run_and_the_log_says_why(tmp_path: Path, server: OpenAIServer) -> None:
    observer = {"type": "command", "command": "touch ran", "name": "observer"}
    write_settings(tmp_path, {"hooks": {"PreToolUse": [BLOCK_NEW], "PostToolUse": [observer]}})
    server.reply_tool_calls(WRITE)
    server.reply_tool_calls(("call_2", "list_files", "{}"))
    server.reply_text("refused")
    human = Human("Deny")

    async with editor(tmp_path, server, human=human) as client:
        await client.request("agent/prompt", {"prompt": "x"})
        log = await command(client, "agent.hooks")
        with pytest.raises(ErrorReply, match="list it first"):
            await command(client, "agent.trust", {"decision": "grant"})
        await command(client, "agent.trust")
        trust = await command(client, "agent.trust", {"decision": "grant"})
        with pytest.raises(ErrorReply, match="decision is grant or revoke"):
            await command(client, "agent.trust", {"decision": "perhaps"})

    assert len(human.questions) == 1
    assert [(run["name"], run["decision"], run["reason"]) for run in log["runs"]] == [
        ("names", "skipped", "not trusted (refused)"),
        ("observer", "skipped", "not trusted (refused)"),
    ]
    assert server.requests[1].body["messages"][-1]["content"] == (
        "Error [hook_blocked]: blocked by hook: names was not run: not trusted (refused)"
    )
    assert [item["trusted"] for item in trust["items"]] == [True, True]
    assert not (tmp_path / "work" / "ran").exists()


@pytest.mark.requirement("B4", "S2-errors", "S4-settings")
async def test_settings_mistake_is_a_diagnostic_until_it_is_mended(tmp_path: Path, server: OpenAIServer) -> None:
    file = write_settings(tmp_path, '{\n  "hooks": {\n  /* \U0001f41d */  "PreToolUze": []\n  }\n}\n')
    document = {"uri": file.as_uri()}

    async with editor(tmp_path, server) as client:
        found = await diagnostics(client, file, some=True)
        file.write_text('{"hooks": {}}')
        await client.notify("textDocument/didSave", {"textDocument": document})
        mended = await diagnostics(client, file, some=False)

    assert [(d["range"]["start"], d["source"], d["code"]) for d in found] == [
        ({"line": 2, "character": 26}, "agent-lsp", "settings")
    ]
    assert found[0]["message"].startswith("hooks.PreToolUze: unknown event; known are PreToolUse")
    assert mended == []


@pytest.mark.requirement("S4-settings")
async def test_settings_that_change_on_disk_are_watched_where_the_editor_can(
    tmp_path: Path, server: OpenAIServer
) -> None:
    file = write_settings(tmp_path, "{}")
    watching = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
    register = {"client/registerCapability": lambda _params: None}

    async with editor(tmp_path, server, capabilities=CAPABILITIES | watching, handlers=register) as client:
        asked = await client.wait_for_method("client/registerCapability")
        file.write_text('{"permissions": {"mode": 1}}')
        changes = [{"uri": file.as_uri(), "type": 2}]
        await client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        found = await diagnostics(client, file, some=True)

    registration = asked["params"]["registrations"][0]
    assert registration["method"] == "workspace/didChangeWatchedFiles"
    assert registration["registerOptions"] == {"watchers": [{"globPattern": "**/.agent-lsp/settings*.json"}]}
    assert found[0]["message"].startswith("permissions.mode: Input should be")


@pytest.mark.requirement("B31", "B32")
async def test_session_end_is_observed_when_the_editor_leaves(tmp_path: Path, server: OpenAIServer) -> None:
    observer = {"type": "command", "command": 'cat > "$HOOK_EVENT.json"'}
    hooks = {event: [observer] for event in ("SessionStart", "SessionEnd", "Notification")}
    write_settings(tmp_path, {"hooks": hooks})
    server.reply_text("done")

    async with editor(tmp_path, server) as client:
        await command(client, "agent.trust")
        await command(client, "agent.trust", {"decision": "grant"})
        result = await client.request("agent/prompt", {"prompt": "x"})
        await client.shut_down()
        assert await client.exit_code() == 0

    work = tmp_path / "work"
    session = {"session_id": result["sessionId"], "cwd": str(work)}
    assert {file.stem: json.loads(file.read_text()) for file in work.glob("*.json")} == {
        "SessionStart": {"event": "SessionStart", **session},
        "SessionEnd": {"event": "SessionEnd", **session},
        "Notification": {
            "event": "Notification",
            **session,
            "message": "The agent has ended: done",
            "is_error": False,
        },
    }
