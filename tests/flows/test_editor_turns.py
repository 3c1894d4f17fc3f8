"""Several prompts at once, the editor's settings, and editors that cannot ask: ``agent-lsp serve`` as a process."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.flows.test_command_line import environment
from tests.flows.test_language_server import CAPABILITIES, COMMAND, WRITE, Human, command, editor
from tests.support.jsonrpc_client import ErrorReply, spawn
from tests.support.openai_server import End, OpenAIServer

READ_SECRET = ("call_1", "read_file", '{"path": ".env"}')
DENY_SECRET = {"permissions": {"deny": ["read(**/.env)"]}}


def last_result(server: OpenAIServer) -> str:
    return str(server.requests[-1].body["messages"][-1]["content"])


@pytest.mark.requirement("S4-prompt")
async def test_prompts_sent_at_once_run_in_order_in_one_session(tmp_path: Path, server: OpenAIServer) -> None:
    for number in range(4):
        server.reply_text(f"answer {number}")

    async with editor(tmp_path, server) as client:
        asked = [await client.ask("agent/prompt", {"prompt": f"prompt {number}"}) for number in range(4)]
        results = [await client.answer(question) for question in asked]
        status = await command(client, "agent.status")

    assert [result["text"] for result in results] == ["answer 0", "answer 1", "answer 2", "answer 3"]
    assert {result["sessionId"] for result in results} == {status["sessions"][0]["sessionId"]}
    assert len(status["sessions"]) == 1


@pytest.mark.requirement("S4-cancel")
async def test_cancel_of_a_waiting_prompt_leaves_the_running_one(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    server.reply_text("first is done")

    async with editor(tmp_path, server, events=True) as client:
        first = await client.ask("agent/prompt", {"prompt": "first"})
        await client.wait_for_method("window/showMessageRequest")
        second = await client.ask("agent/prompt", {"prompt": "second", "workDoneToken": "second"})
        await client.wait_for(lambda message: message.get("params", {}).get("token") == "second")
        await client.notify("window/workDoneProgress/cancel", {"token": "second"})
        cancelled = await client.answer(second)
        await command(client, "agent.approvals.deny")
        finished = await client.answer(first)
        ended = [e["turnId"] for e in client.of_method("agent/event") if e["event"]["type"] == "turn_finished"]

    assert (cancelled["stopReason"], cancelled["changes"]) == ("cancelled", [])
    assert (finished["stopReason"], finished["text"]) == ("completed", "first is done")
    assert ended == [finished["turnId"]]


@pytest.mark.requirement("S4-mode")
async def test_mode_of_a_prompt_holds_for_that_prompt_alone(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(("call_1", "shell", '{"command": "echo one"}'))
    server.reply_tool_calls(WRITE)
    server.reply_text("first")
    server.reply_text("second")
    human = Human(None, "Deny")

    async with editor(tmp_path, server, human=human) as client:
        first = await client.ask("agent/prompt", {"prompt": "first"})
        await client.wait_for_method("window/showMessageRequest")
        second = await client.ask("agent/prompt", {"prompt": "second", "mode": "bypass"})
        before = await command(client, "agent.mode")
        await command(client, "agent.approvals.allow")
        await client.answer(first)
        await client.answer(second)
        after = await command(client, "agent.mode")

    assert len(human.questions) == 2
    assert not (tmp_path / "work" / "new.txt").exists()
    assert (before, after) == ({"mode": "default"}, {"mode": "default"})


@pytest.mark.requirement("S4-mode", "S2-layers")
async def test_mode_that_is_reported_is_the_mode_in_force(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("one")
    server.reply_tool_calls(WRITE)
    server.reply_text("two")

    async with editor(tmp_path, server, settings={"permissions": {"mode": "plan"}}) as client:
        configured = await command(client, "agent.mode")
        await client.request("agent/prompt", {"prompt": "x"})
        changed = {"settings": {"agentLsp": {"permissions": {"mode": "accept_edits"}}}}
        await client.notify("workspace/didChangeConfiguration", changed)
        await client.request("agent/prompt", {"prompt": "y"})
        in_force = await command(client, "agent.mode")

    assert (configured, in_force) == ({"mode": "plan"}, {"mode": "accept_edits"})
    assert (tmp_path / "work" / "new.txt").read_text() == "hello\n"


@pytest.mark.requirement("S2-layers")
@pytest.mark.parametrize("section", [None, {}, {"agent": {"max_turns": 7}}])
async def test_deny_rules_of_the_options_survive_the_editors_section(
    tmp_path: Path, server: OpenAIServer, section: Any
) -> None:
    server.reply_tool_calls(READ_SECRET)
    server.reply_text("ok")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".env").write_text("KEY=secret\n")

    async with configured_editor(tmp_path, server, section, settings=DENY_SECRET) as client:
        await client.request("agent/prompt", {"prompt": "x"})

    assert last_result(server).startswith("Error [permission_denied]: Rule read(**/.env)")


@pytest.mark.requirement("S2-layers")
async def test_first_prompt_waits_for_the_editors_settings(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(READ_SECRET)
    server.reply_text("ok")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".env").write_text("KEY=secret\n")

    async with configured_editor(tmp_path, server, DENY_SECRET) as client:
        await client.request("agent/prompt", {"prompt": "x"})

    assert last_result(server).startswith("Error [permission_denied]: Rule read(**/.env)")


def configured_editor(tmp_path: Path, server: OpenAIServer, section: Any, **options: Any) -> Any:
    """An editor that answers ``workspace/configuration``."""
    capabilities = {**CAPABILITIES, "workspace": {"configuration": True}}
    handlers = {"workspace/configuration": lambda _params: [section]}
    return editor(tmp_path, server, capabilities=capabilities, handlers=handlers, **options)


@pytest.mark.requirement("S2-layers")
async def test_changed_model_limit_and_timeout_hold_from_the_next_prompt(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("one")
    server.reply_tool_calls(WRITE)
    server.reply_text("two")
    changed = {"model": {"base_url": server.base_url}, "permissions": {"approval_timeout": 0.01}}

    async with editor(tmp_path, server, variables={"AGENT_LSP_MODEL": ""}, settings={"model": {"name": "a"}}) as client:
        await client.request("agent/prompt", {"prompt": "x"})
        settings = {"agentLsp": {**changed, "model": {"name": "b"}}}
        await client.notify("workspace/didChangeConfiguration", {"settings": settings})
        await client.request("agent/prompt", {"prompt": "y"})

    assert [request.body["model"] for request in server.requests] == ["a", "b", "b"]
    assert last_result(server) == "Error [permission_denied]: No answer within 0.01 seconds; the call was denied"


@pytest.mark.requirement("S2-errors")
async def test_each_settings_mistake_is_shown_once(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("one")
    server.reply_text("two")

    async with editor(tmp_path, server, settings={"permissions": {"mode": "wild"}}) as client:
        await client.request("agent/prompt", {"prompt": "x"})
        await client.request("agent/prompt", {"prompt": "y"})
        shown = [params["message"] for params in client.of_method("window/showMessage") if params["type"] == 2]

    assert len(shown) == 1
    assert shown[0].startswith("Settings: editor settings: permissions.mode: Input should be 'default'")


@pytest.mark.requirement("S4-ask")
async def test_editor_that_cannot_ask_is_told_how_to_answer(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    server.reply_text("done")

    async with editor(tmp_path, server, without=("window/showMessageRequest",)) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        told = await client.wait_for_method("window/showMessage")
        answered = await command(client, "agent.approvals.allow")
        await client.answer(prompt)

    assert re.search(r"write_file: new\.txt.*agent\.approvals\.allow", told["params"]["message"])
    assert answered == {"answered": True}
    assert (tmp_path / "work" / "new.txt").exists()


@pytest.mark.requirement("S4-progress")
async def test_progress_says_that_an_answer_is_waited_for(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    server.reply_text("done")

    async with editor(tmp_path, server, human=Human(None)) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x", "workDoneToken": "t"})
        waiting = "waiting for your answer: write_file: new.txt"
        await client.wait_for(lambda m: m.get("params", {}).get("value", {}).get("message") == waiting)
        await command(client, "agent.approvals.deny")
        await client.answer(prompt)


@pytest.mark.requirement("S4-progress")
async def test_progress_token_that_is_used_twice_fails_no_prompt(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("one")
    server.reply_text("two")

    async with editor(tmp_path, server) as client:
        asked = [await client.ask("agent/prompt", {"prompt": "x", "workDoneToken": "t"}) for _ in range(2)]
        results = [(await client.answer(question))["text"] for question in asked]

    assert results == ["one", "two"]


@pytest.mark.requirement("S4-cancel", "F60")
async def test_cancel_right_after_the_start_finds_the_prompt(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_raw(end=End.HANG)

    async with editor(tmp_path, server) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        cancelled = await command(client, "agent.cancel")
        try:
            ended = (await client.answer(prompt))["stopReason"]
        except ErrorReply as error:
            ended = "cancelled" if error.code == -32800 else str(error)

    assert (cancelled, ended) == ({"cancelled": True}, "cancelled")


@pytest.mark.requirement("F62")
async def test_editor_that_is_a_zombie_counts_as_gone(tmp_path: Path, server: OpenAIServer) -> None:
    root = tmp_path / "work"
    root.mkdir()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as parent:  # noqa: ASYNC220 (not collected by the loop)
        assert parent.stdin is not None
        async with spawn(COMMAND, cwd=root, env=environment(tmp_path, server)) as client:
            await client.initialize(CAPABILITIES, rootUri=root.as_uri(), processId=parent.pid)
            parent.stdin.close()
            assert await client.exit_code(timeout=10) == 1


@pytest.mark.requirement("F64")
async def test_two_editors_on_one_workspace_keep_their_sessions_apart(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("for the first")
    server.reply_text("for the second")

    async with editor(tmp_path, server) as first, editor(tmp_path, server) as second:
        one = await first.request("agent/prompt", {"prompt": "from the first"})
        two = await second.request("agent/prompt", {"prompt": "from the second"})
        shown = [await client.wait_for_method("window/showDocument") for client in (first, second)]

    transcripts = [Path(each["params"]["uri"].removeprefix("file://")).read_text() for each in shown]
    assert one["sessionId"] != two["sessionId"]
    assert [message["content"] for message in server.requests[1].body["messages"][1:]] == ["from the second"]
    assert transcripts == [
        "## Prompt\n\nfrom the first\n\nfor the first\n\n",
        "## Prompt\n\nfrom the second\n\nfor the second\n\n",
    ]
