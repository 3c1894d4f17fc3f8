"""``agent-lsp serve`` as an editor meets it: raw JSON-RPC to the real process, a real model server behind it."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.conftest import is_running
from tests.flows.test_command_line import COMMAND as AGENT
from tests.flows.test_command_line import environment
from tests.support.jsonrpc_client import ErrorReply, NoReply, ProcessClient, spawn
from tests.support.openai_server import End, OpenAIServer

COMMAND = (*AGENT, "serve")
CAPABILITIES = {"window": {"workDoneProgress": True, "showDocument": {"support": True}}}
WRITE = ("call_1", "write_file", '{"path": "new.txt", "content": "hello\\n"}')


class Human:
    """Answers message requests by title, in turn; keeps the questions. A None dismisses."""

    def __init__(self, *titles: str | None) -> None:
        self.questions: list[dict[str, Any]] = []
        self._titles = list(titles)

    def __call__(self, params: dict[str, Any]) -> Any:
        self.questions.append(params)
        if not self._titles:
            raise NoReply
        title = self._titles.pop(0)
        return None if title is None else {"title": title}


@asynccontextmanager
async def editor(
    tmp_path: Path,
    server: OpenAIServer,
    *,
    human: Human | None = None,
    capabilities: dict[str, Any] = CAPABILITIES,
    handlers: Mapping[str, Callable[[Any], Any]] = {},
    without: Collection[str] = (),
    variables: Mapping[str, str] = {},
    **options: Any,
) -> AsyncIterator[ProcessClient]:
    """A started and initialized server for a workspace, and a client that shows documents.

    ``handlers`` answer further requests of the server; those ``without`` are refused as unknown.
    """
    root = tmp_path / "work"
    root.mkdir(exist_ok=True)
    options.setdefault("settings", {"permissions": {"answer_guard_ms": 0}})
    async with spawn(COMMAND, cwd=root, env={**environment(tmp_path, server), **variables}) as client:
        client.handlers["window/showMessageRequest"] = human or Human()
        client.handlers["window/showDocument"] = lambda _params: {"success": True}
        client.handlers["window/workDoneProgress/create"] = lambda _params: None
        client.handlers.update(handlers)
        for method in without:
            del client.handlers[method]
        await client.initialize(capabilities, rootUri=root.as_uri(), initializationOptions=options)
        yield client


async def command(client: ProcessClient, name: str, argument: Any = None) -> Any:
    arguments = [] if argument is None else [argument]
    return await client.request("workspace/executeCommand", {"command": name, "arguments": arguments})


@pytest.mark.requirement("S1-serve", "S4-prompt", "S4-ask", "S4-event", "S4-progress")
async def test_prompt_asks_writes_and_answers(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    server.reply_text("Written.", usage=(5, 2))
    human = Human("Allow")

    async with editor(tmp_path, server, human=human, events=True) as client:
        result = await client.request("agent/prompt", {"prompt": "write new.txt", "workDoneToken": "t"})
        events = [params["event"]["type"] for params in client.of_method("agent/event")]
        numbers = [params["seq"] for params in client.of_method("agent/event")]
        progress = [params["value"]["kind"] for params in client.of_method("$/progress") if params["token"] == "t"]
        await client.shut_down()
        assert await client.exit_code() == 0

    assert (tmp_path / "work" / "new.txt").read_text() == "hello\n"
    assert (result["text"], result["stopReason"]) == ("Written.", "completed")
    assert result["changes"] == ["new.txt"]
    assert result["usage"] == {"inputTokens": 15, "outputTokens": 7}
    assert [action["title"] for action in human.questions[0]["actions"]] == [
        "Show change",
        "Allow",
        "Allow in this session",
        "Always allow write_file(/new.txt)",
        "Deny",
    ]
    assert "write_file: new.txt" in human.questions[0]["message"]
    assert (events[0], events[-1]) == ("turn_started", "turn_finished")
    assert numbers == list(range(1, len(numbers) + 1))
    assert (progress[0], progress[-1]) == ("begin", "end")


@pytest.mark.requirement("S4-run", "S4-transcript")
async def test_run_returns_at_once_and_tells_the_end(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("All done.")

    async with editor(tmp_path, server) as client:
        started = await command(client, "agent.run", {"prompt": "hello"})
        ended = await client.wait_for_method("window/showMessage")
        shown = await client.wait_for_method("window/showDocument")

    transcript = Path(shown["params"]["uri"].removeprefix("file://"))
    assert set(started) == {"sessionId", "turnId"}
    assert ended["params"] == {"type": 3, "message": "Agent: All done."}
    assert transcript.name == f"{started['sessionId']}.md"
    assert transcript.read_text() == "## Prompt\n\nhello\n\nAll done.\n\n"


@pytest.mark.requirement("S4-ask")
async def test_show_change_opens_the_diff_and_asks_again(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    server.reply_text("ok")
    human = Human("Show change", "Allow")

    async with editor(tmp_path, server, human=human, events=True) as client:
        await client.request("agent/prompt", {"prompt": "x"})
        shown = client.of_method("window/showDocument")
        diff = Path(shown[0]["uri"].removeprefix("file://")).read_text()

    assert len(human.questions) == 2
    assert diff == "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n"


@pytest.mark.requirement("S4-ask")
@pytest.mark.parametrize("title", [None, "", "Deny please", "Yes"])
async def test_unclear_answer_is_no_allow_and_can_be_given_by_command(
    tmp_path: Path, server: OpenAIServer, title: str | None
) -> None:
    server.reply_tool_calls(WRITE)
    server.reply_text("refused")
    human = Human(title)

    async with editor(tmp_path, server, human=human) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        await client.wait_for_method("window/showMessageRequest")
        pending = await command(client, "agent.approvals.list")
        answered = await command(client, "agent.approvals.answer", {"decision": "deny", "feedback": "not this file"})
        result = await client.answer(prompt)

    assert [(entry["tool"], entry["target"]) for entry in pending] == [("write_file", "new.txt")]
    assert (answered, result["text"]) == ({"answered": True}, "refused")
    assert not (tmp_path / "work" / "new.txt").exists()
    assert server.requests[1].body["messages"][-1]["content"] == "Error [permission_denied]: not this file"


@pytest.mark.requirement("S4-ask")
async def test_allow_that_comes_too_early_is_asked_again(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    server.reply_text("refused")
    human = Human("Allow", "Deny")
    guarded = {"permissions": {"answer_guard_ms": 60_000}}

    async with editor(tmp_path, server, human=human, settings=guarded) as client:
        await client.request("agent/prompt", {"prompt": "x"})

    assert len(human.questions) == 2
    assert not (tmp_path / "work" / "new.txt").exists()


@pytest.mark.requirement("S4-block")
async def test_hook_block_is_shown_as_a_warning(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(("call_1", "shell", '{"command": "rm -rf /"}'))
    server.reply_text("blocked")

    async with editor(tmp_path, server) as client:
        await client.request("agent/prompt", {"prompt": "x"})
        warnings = [params for params in client.of_method("window/showMessage") if params["type"] == 2]

    assert [warning["message"] for warning in warnings] == [
        "PreToolUse blocked shell: dangerous command: removes the root or home directory"
    ]


@pytest.mark.requirement("S4-cancel", "F60")
@pytest.mark.parametrize("way", ["request", "command", "progress"])
async def test_cancel_ends_the_turn_and_the_next_works(tmp_path: Path, server: OpenAIServer, way: str) -> None:
    server.reply_raw(end=End.HANG)
    server.reply_text("again")

    async with editor(tmp_path, server) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x", "workDoneToken": "t"})
        await anyio.to_thread.run_sync(server.wait_for_requests, 1)
        if way == "request":
            await client.notify("$/cancelRequest", {"id": prompt})
            with pytest.raises(ErrorReply) as caught:
                await client.answer(prompt)
            assert caught.value.code == -32800
        elif way == "command":
            assert await command(client, "agent.cancel") == {"cancelled": True}
            assert (await client.answer(prompt))["stopReason"] == "cancelled"
        else:
            await client.notify("window/workDoneProgress/cancel", {"token": "t"})
            assert (await client.answer(prompt))["stopReason"] == "cancelled"
        result = await client.request("agent/prompt", {"prompt": "y"})

    assert result["text"] == "again"


@pytest.mark.requirement("S4-cancel", "F60")
async def test_cancel_during_a_question_withdraws_it(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    async with editor(tmp_path, server) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        question = await client.wait_for_method("window/showMessageRequest")
        await command(client, "agent.cancel")
        result = await client.answer(prompt)
        withdrawn = await client.wait_for_method("$/cancelRequest")
        pending = await command(client, "agent.approvals.list")

    assert result["stopReason"] == "cancelled"
    assert withdrawn["params"] == {"id": question["id"]}
    assert pending == []
    assert not (tmp_path / "work" / "new.txt").exists()


@pytest.mark.requirement("S4-status", "S4-mode")
async def test_status_and_mode_are_answered_while_a_turn_runs(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_raw(end=End.HANG)

    async with editor(tmp_path, server) as client:
        started = await command(client, "agent.run", {"prompt": "x"})
        await anyio.to_thread.run_sync(server.wait_for_requests, 1)
        status = await command(client, "agent.status")
        mode = await command(client, "agent.mode", {"mode": "plan"})
        after = await command(client, "agent.status")

    assert status["sessions"] == [
        {
            "sessionId": started["sessionId"],
            "turnId": started["turnId"],
            "running": True,
            "model": "m",
            "messages": 1,
            "usage": {"inputTokens": 0, "outputTokens": 0, "cachedTokens": 0, "cost": None},
        }
    ]
    assert (status["mode"], mode, after["mode"]) == ("default", {"mode": "plan"}, "plan")


@pytest.mark.requirement("F63", "S4-run", "S4-mode")
@pytest.mark.parametrize(
    ("name", "argument", "message"),
    [
        ("agent.run", None, "prompt: Field required"),
        ("agent.run", {"prompt": 3}, "prompt: Input should be a valid string"),
        ("agent.run", {"prompt": "x", "sessionId": "nobody"}, "There is no session nobody"),
        ("agent.mode", {"mode": "wild"}, "There is no permission mode 'wild'"),
        ("agent.approvals.answer", {"decision": "maybe"}, "decision: Input should be 'allow' or 'deny'"),
    ],
)
async def test_bad_command_arguments_get_a_clear_error(
    tmp_path: Path, server: OpenAIServer, name: str, argument: Any, message: str
) -> None:
    async with editor(tmp_path, server) as client:
        with pytest.raises(ErrorReply, match=message):
            await command(client, name, argument)
        assert await command(client, "agent.status") is not None


@pytest.mark.requirement("S4-prompt")
async def test_failed_prompt_is_an_error_that_names_the_setting(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_error(401, message="bad key")

    async with editor(tmp_path, server) as client:
        with pytest.raises(ErrorReply, match="OPENAI_API_KEY"):
            await client.request("agent/prompt", {"prompt": "x"})


@pytest.mark.requirement("F34")
async def test_tools_read_unsaved_text(tmp_path: Path, server: OpenAIServer) -> None:
    (tmp_path / "work").mkdir()
    file = tmp_path / "work" / "a.txt"
    file.write_text("on disk\n")
    server.reply_tool_calls(("call_1", "read_file", '{"path": "a.txt"}'))
    server.reply_text("ok")
    document = {"uri": file.as_uri(), "languageId": "text", "version": 1, "text": "in the editor\n"}

    async with editor(tmp_path, server) as client:
        await client.notify("textDocument/didOpen", {"textDocument": document})
        await client.request("agent/prompt", {"prompt": "x"})

    assert "in the editor" in server.requests[1].body["messages"][-1]["content"]


@pytest.mark.requirement("F60", "F62")
async def test_end_of_input_during_a_turn_ends_the_process_and_its_children(
    tmp_path: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(("call_1", "shell", '{"command": "echo $$; exec sleep 60"}'))
    (tmp_path / "work").mkdir()

    async with editor(tmp_path, server, human=Human("Allow"), events=True) as client:
        await client.ask("agent/prompt", {"prompt": "x"})
        output = await client.wait_for(
            lambda message: message.get("params", {}).get("event", {}).get("type") == "tool_output"
        )
        await client.close()
        assert await client.exit_code(timeout=2) == 1

    assert not is_running(int(output["params"]["event"]["text"]))
