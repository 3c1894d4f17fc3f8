"""Validation as an editor meets it: a real pytest, diagnostics where it fails, the reminder, the fix, green."""

import json
import os
import re
import sys
from pathlib import Path
from typing import IO, Any

import anyio
import anyio.to_thread
import pytest

from tests.flows.test_editor_hooks import diagnostics
from tests.flows.test_language_server import Human, command, editor
from tests.support.jsonrpc_client import ErrorReply, ProcessClient
from tests.support.openai_server import OpenAIServer

PYTEST = {
    "name": "pytest",
    "command": [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--junitxml={report}"],
    "kind": "test",
    "tool": "pytest",
}
WRONG = "def double(number):\n    return number + 2\n"
RIGHT = "def double(number):\n    return number * 2\n"
TEST = "from code import double\n\n\ndef test_double_of_three():\n    assert double(3) == 6\n"


def project(tmp_path: Path, **validation: Any) -> Path:
    """A project with one test, and a session's settings that run it."""
    work = tmp_path / "work"
    (work / ".agent-lsp").mkdir(parents=True)
    (work / "test_double.py").write_text(TEST.replace("code", "doubling"))
    settings = {"validation": {"validators": [PYTEST]} | validation}
    (work / ".agent-lsp" / "settings.json").write_text(json.dumps(settings))
    return work


def _progress_message(message: dict[str, Any]) -> Any:
    value = message.get("params", {}).get("value")
    return value.get("message") if isinstance(value, dict) else None


def write(content: str) -> tuple[str, str, str]:
    return ("call_1", "write_file", json.dumps({"path": "doubling.py", "content": content}))


@pytest.mark.requirement("B34", "B36", "B37", "B39", "S4-validation")
async def test_failing_test_is_shown_sent_back_mended_and_cleared(tmp_path: Path, server: OpenAIServer) -> None:
    work = project(tmp_path)
    server.reply_tool_calls(write(WRONG))
    server.reply_text("doubled")
    server.reply_tool_calls(write(RIGHT))
    server.reply_text("doubled, really")
    unasked = {"permissions": {"mode": "accept_edits"}}

    async with editor(tmp_path, server, settings=unasked, events=True) as client:
        await command(client, "agent.trust")
        await command(client, "agent.trust", {"decision": "grant"})
        prompt = await client.ask("agent/prompt", {"prompt": "write double", "workDoneToken": "t"})
        await client.wait_for(
            lambda m: re.fullmatch(r"running pytest \(1/1\), \d+ s", str(_progress_message(m))) is not None
        )
        found = await diagnostics(client, work / "test_double.py", some=True)
        cleared = await diagnostics(client, work / "test_double.py", some=False)
        result = await client.answer(prompt)
        status = await command(client, "agent.status")
        events = [params["event"] for params in client.of_method("agent/event")]

    red = next(event for event in events if event["type"] == "validator_finished")
    reminder = server.requests[2].body["messages"][-1]
    assert [(d["range"]["start"]["line"], d["source"], d["code"]) for d in found] == [(4, "agent-lsp", "validation")]
    assert "assert 5 == 6" in found[0]["message"]
    assert cleared == []
    assert reminder == {
        "role": "user",
        "content": "<system-reminder>\nThe PostStopValidation hook failed. Fix the problem based on the following "
        f"output:\n{red['output']}\n</system-reminder>",
    }
    assert "assert 5 == 6" in red["output"]
    assert (result["stopReason"], result["text"]) == ("completed", "doubled, really")
    assert result["validation"]["status"] == "green"
    assert status["validation"] == "green"
    server.assert_consumed()


@pytest.mark.requirement("S4-validation", "S4-ask")
async def test_offer_of_help_gives_way_to_a_question(tmp_path: Path, server: OpenAIServer) -> None:
    work = project(tmp_path)
    (work / "doubling.py").write_text(WRONG)
    server.reply_tool_calls(write(RIGHT))
    server.reply_text("mended")

    async with editor(tmp_path, server) as client:
        await command(client, "agent.trust")
        await command(client, "agent.trust", {"decision": "grant"})
        await command(client, "agent.validate")
        offer = await client.wait_for_method("window/showMessageRequest")
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        withdrawn = await client.wait_for_method("$/cancelRequest")
        question = await client.wait_for(
            lambda m: m.get("method") == "window/showMessageRequest" and m["id"] != offer["id"]
        )
        await command(client, "agent.approvals.allow")
        result = await client.answer(prompt)

    assert withdrawn["params"] == {"id": offer["id"]}
    assert question["params"]["message"].startswith("Allow write_file: doubling.py?")
    assert result["validation"]["status"] == "green"


@pytest.mark.requirement("S4-validation", "S4-validate")
async def test_validation_by_hand_offers_help_where_it_is_red(tmp_path: Path, server: OpenAIServer) -> None:
    work = project(tmp_path)
    (work / "doubling.py").write_text(WRONG)
    server.reply_text("I will look.")
    human = Human("Ask the agent to fix")

    async with editor(tmp_path, server, human=human) as client:
        await command(client, "agent.trust")
        await command(client, "agent.trust", {"decision": "grant"})
        started = await command(client, "agent.validate")
        question = await client.wait_for_method("window/showMessageRequest")
        ended = await client.wait_for(lambda m: m.get("params", {}).get("message") == "Agent: I will look.")
        uri = (work / "test_double.py").as_uri()
        shown = [p for p in client.of_method("textDocument/publishDiagnostics") if p["uri"] == uri][-1]
        actions = await client.request(
            "textDocument/codeAction",
            {
                "textDocument": {"uri": uri},
                "range": shown["diagnostics"][0]["range"],
                "context": {"diagnostics": shown["diagnostics"]},
            },
        )
        others = await client.request(
            "textDocument/codeAction",
            {
                "textDocument": {"uri": uri},
                "range": shown["diagnostics"][0]["range"],
                "context": {"diagnostics": shown["diagnostics"], "only": ["source"]},
            },
        )
        document = {"uri": uri, "languageId": "python", "version": 1, "text": TEST}
        await client.notify("textDocument/didOpen", {"textDocument": document})
        change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "\n"}]}
        await client.notify("textDocument/didChange", change)
        aged = await client.wait_for(
            lambda m: (
                m.get("method") == "textDocument/publishDiagnostics"
                and m["params"]["diagnostics"] != []
                and m["params"]["diagnostics"][0]["message"].startswith("[before the last change]")
            )
        )
        status = await command(client, "agent.status")

    assert started == {"started": True}
    assert question["params"]["message"].startswith("Validation failed: pytest [")
    assert [action["title"] for action in question["params"]["actions"]] == [
        "Show output",
        "Run again",
        "Ask the agent to fix",
    ]
    assert ended["params"]["type"] == 3
    assert "The validators pytest fail" in str(server.requests[0].body["messages"][-1]["content"])
    assert [(action["title"].split(":")[0], action["command"]["command"]) for action in actions] == [
        ("Ask the agent to fix this", "agent.run"),
        ("Run validation again", "agent.validate"),
        ("Ask the agent about the selection", "agent.run"),
    ]
    assert actions[0]["command"]["arguments"][0]["context"][0]["uri"] == uri
    assert others == []
    assert aged["params"]["diagnostics"][0]["severity"] == 3
    assert status["validation"] == "stale"


@pytest.mark.requirement("S4-validate", "S4-validation")
async def test_validation_by_hand_needs_no_model_but_the_fix_does(tmp_path: Path, server: OpenAIServer) -> None:
    work = project(tmp_path)
    (work / "doubling.py").write_text(WRONG)
    human = Human("Ask the agent to fix")

    async with editor(tmp_path, server, human=human, variables={"AGENT_LSP_MODEL": ""}) as client:
        await command(client, "agent.trust")
        await command(client, "agent.trust", {"decision": "grant"})
        started = await command(client, "agent.validate")
        found = await diagnostics(client, work / "test_double.py", some=True)
        told = await client.wait_for(lambda m: m.get("params", {}).get("type") == 1)
        status = await command(client, "agent.status")
        with pytest.raises(ErrorReply, match="No model is set; give --model NAME"):
            await client.request("agent/prompt", {"prompt": "x"})
        progress = [params["value"] for params in client.of_method("$/progress")]

    assert started == {"started": True}
    assert "assert 5 == 6" in found[0]["message"]
    assert human.questions[0]["message"].startswith("Validation failed: pytest [")
    assert told["params"]["message"].startswith("Agent: No model is set; ")
    assert (status["validation"], [session["model"] for session in status["sessions"]]) == ("red", [None])
    assert next(value["title"] for value in progress if value["kind"] == "begin") == "Agent: validation"
    assert next(value["message"] for value in progress if value["kind"] == "end") == "red"


class Gate:
    """A validator that waits for its result: a word, and whether that is good."""

    def __init__(self, work: Path) -> None:
        self._pipe = work.parent / "gate"
        os.mkfifo(self._pipe)
        command = f"read word <{self._pipe}; echo note.txt:1: $word; test $word = good"
        self.entry = {"name": "gate", "command": command}

    async def open(self) -> IO[str]:
        """Wait until it runs; returns what takes the word."""
        return await anyio.to_thread.run_sync(self._pipe.open, "w")


async def state(client: ProcessClient) -> Any:
    return (await command(client, "agent.status"))["validation"]


async def ended(client: ProcessClient, status: str) -> None:
    """Wait for the end of a progress that says so."""
    await client.wait_for(
        lambda m: m.get("method") == "$/progress" and m["params"]["value"] == {"kind": "end", "message": status}
    )


@pytest.mark.requirement("S4-validation", "S4-validate", "S4-status")
async def test_status_tells_idle_running_red_stale_and_green(tmp_path: Path, server: OpenAIServer) -> None:
    gate = Gate(tmp_path / "work")
    work = project(tmp_path, validators=[gate.entry])
    document = {"uri": (work / "new.txt").as_uri(), "languageId": "text", "version": 1, "text": ""}
    elsewhere = document | {"uri": (tmp_path / "new.txt").as_uri()}

    async def edit(document: dict[str, Any]) -> Any:
        change = {"textDocument": {"uri": document["uri"], "version": 2}, "contentChanges": [{"text": "x"}]}
        await client.notify("textDocument/didOpen", {"textDocument": document})
        await client.notify("textDocument/didChange", change)
        return await state(client)

    async with editor(tmp_path, server) as client:
        states = [await state(client)]
        await command(client, "agent.trust")
        await command(client, "agent.trust", {"decision": "grant"})
        for word, status in (("bad", "red"), ("good", "green")):
            started = await command(client, "agent.validate")
            with await gate.open() as result:
                twice = await command(client, "agent.validate")
                states.append(await state(client))
                result.write(f"{word}\n")
            await ended(client, status)
            states += [await state(client), await edit(elsewhere), await edit(document)]
            assert (started, twice) == ({"started": True}, {"started": False})

    assert states == ["idle", "running", "red", "red", "stale", "running", "green", "green", "stale"]


@pytest.mark.requirement("S4-validation", "S4-cancel")
async def test_cancelled_validation_is_idle_and_not_running_for_ever(tmp_path: Path, server: OpenAIServer) -> None:
    gate = Gate(tmp_path / "work")
    project(tmp_path, validators=[gate.entry])

    async with editor(tmp_path, server) as client:
        await command(client, "agent.trust")
        await command(client, "agent.trust", {"decision": "grant"})
        await command(client, "agent.validate")
        begun = await client.wait_for(lambda m: m.get("params", {}).get("value", {}).get("kind") == "begin")
        with await gate.open():
            await client.notify("window/workDoneProgress/cancel", {"token": begun["params"]["token"]})
            await ended(client, "cancelled")
        after = await state(client)

    assert after == "idle"


@pytest.mark.requirement("S4-validation", "S4-validate")
async def test_validation_without_validators_clears_what_the_last_one_found(
    tmp_path: Path, server: OpenAIServer
) -> None:
    work = project(tmp_path)
    (work / "doubling.py").write_text(WRONG)

    async with editor(tmp_path, server) as client:
        await command(client, "agent.trust")
        await command(client, "agent.trust", {"decision": "grant"})
        await command(client, "agent.validate")
        await diagnostics(client, work / "test_double.py", some=True)
        await ended(client, "red")
        red = await state(client)
        (work / ".agent-lsp" / "settings.json").write_text('{"validation": {"enabled": false}}')
        await command(client, "agent.validate")
        await diagnostics(client, work / "test_double.py", some=False)
        after = await state(client)

    assert (red, after) == ("red", "idle")


@pytest.mark.requirement("B42", "F70", "S4-validation")
async def test_refused_validator_warns_and_does_not_run(tmp_path: Path, server: OpenAIServer) -> None:
    project(tmp_path)
    server.reply_tool_calls(write(WRONG))
    server.reply_text("doubled")
    human = Human("Allow", "Deny")

    async with editor(tmp_path, server, human=human) as client:
        result = await client.request("agent/prompt", {"prompt": "write double"})
        warnings = [p["message"] for p in client.of_method("window/showMessage") if p["type"] == 2]
        status = await command(client, "agent.status")

    assert "validator pytest: " in human.questions[1]["message"]
    assert warnings == ["Validation was not run: pytest was not run: not trusted (refused)"]
    assert (result["stopReason"], result["validation"]["status"], status["validation"]) == (
        "completed",
        "refused",
        "refused",
    )
