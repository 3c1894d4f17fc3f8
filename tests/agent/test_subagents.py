"""Sub-agents: a history and tools of their own, behind the gates of the agent that spawned them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_lsp.agent.events import (
    AgentEvent,
    ApprovalRequested,
    AssistantReplied,
    HookActed,
    HookReached,
    PermissionDecided,
    SubagentEvent,
    SubagentFinished,
    ToolFinished,
    ToolStarted,
)
from agent_lsp.agent.subagents import MAX_DEPTH, spawn_agent_tool
from agent_lsp.approvals import ApprovalReply, PermissionBehavior
from agent_lsp.errors import ModelError
from agent_lsp.hooks.contract import HookContext, HookEvent, HookResult
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.messages import ToolResult, Usage, UserMessage
from agent_lsp.models.base import Reply
from agent_lsp.models.scripted import Step, calls, says
from agent_lsp.permissions.policy import Policy
from agent_lsp.permissions.rules import parse_rule
from agent_lsp.tools.base import AnyTool, ToolContext
from agent_lsp.workspace import Access, Workspace
from tests.support.harness import Harness, NoteParams, RecordingApprover, kept, note_tool


async def noted(params: NoteParams, _context: ToolContext) -> ToolResult:
    return ToolResult(content=f"noted {params.text}")


def spawning(root: Path, script: Sequence[Step], *tools: AnyTool, **more: Any) -> Harness:
    """An agent with these tools, or ``note``, that may spawn agents."""
    made: list[Harness] = []
    spawn = spawn_agent_tool(lambda: made[0].agent)
    made.append(Harness(root, script, tools=[*(tools or [note_tool(noted)]), spawn], **more))
    return made[0]


def spawns(prompt: str = "look", **more: Any) -> Reply:
    return calls(("spawn_agent", {"name": "scout", "prompt": prompt, **more}))


def writes(text: str = "a") -> Reply:
    return calls(("note", {"text": text}))


def finished(harness: Harness) -> list[tuple[str, bool]]:
    """How each sub-agent ended, those of sub-agents included."""
    ends = (event for event in flat(harness.events) if isinstance(event, SubagentFinished))
    return [(event.text, event.is_error) for event in ends]


def flat(events: Sequence[AgentEvent]) -> list[AgentEvent]:
    """Events with those of sub-agents in the place of their wrappers."""
    unwrapped: list[AgentEvent] = []
    for event in events:
        unwrapped += flat([event.event]) if isinstance(event, SubagentEvent) else [event]
    return unwrapped


async def test_answer_of_a_subagent_is_the_result_of_the_call(tmp_path: Path) -> None:
    harness = spawning(tmp_path, [spawns(), says("found it"), says("done")])

    assert (await harness.run()).text == "done"

    harness.model.assert_consumed()
    assert harness.results() == {"call_1": "found it"}
    assert finished(harness) == [("found it", False)]


async def test_subagent_has_a_history_of_its_own(tmp_path: Path) -> None:
    harness = spawning(tmp_path, [spawns("look for it"), writes(), says("found it"), says("done")])

    await harness.run("secret of the parent")

    first, child, child_again, last = harness.model.requests
    assert child.messages == (UserMessage(content="look for it"),)
    assert len(child_again.messages) == 3
    assert child.system == first.system
    assert [type(message).__name__ for message in last.messages] == ["UserMessage", "AssistantMessage", "ToolMessage"]
    assert len(harness.transcript) == 4


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ["note", "write", "spawn_agent"]),
        ({"tools": None}, ["note", "write", "spawn_agent"]),
        ({"tools": ["write"]}, ["write"]),
        ({"tools": ["spawn_agent", "note"]}, ["note", "spawn_agent"]),
        ({"tools": []}, []),
    ],
)
async def test_subagent_has_the_tools_that_it_was_given(
    tmp_path: Path, given: dict[str, Any], names: list[str]
) -> None:
    tools = note_tool(noted), note_tool(noted, name="write", access=Access.WRITE)
    harness = spawning(tmp_path, [spawns(**given), says("found"), says("done")], *tools)

    await harness.run()

    assert [tool.name for tool in harness.model.requests[1].tools] == names


async def test_tool_that_a_subagent_does_not_have_is_unknown_to_it(tmp_path: Path) -> None:
    ran: list[str] = []

    async def write(params: NoteParams, _context: ToolContext) -> ToolResult:
        ran.append(params.text)
        return ToolResult(content="written")

    tools = note_tool(noted), note_tool(write, name="write")
    child_writes = calls(("write", {"text": "a"}))
    harness = spawning(tmp_path, [spawns(tools=["note"]), child_writes, says("no"), says("done")], *tools)

    await harness.run()

    (result,) = (e.result for e in flat(harness.events) if isinstance(e, ToolFinished) and e.tool == "write")
    assert (result.code, ran) == ("unknown_tool", [])


async def test_unknown_tool_name_is_told_and_no_agent_runs(tmp_path: Path) -> None:
    harness = spawning(tmp_path, [spawns(tools=["note", "wish"]), says("done")])

    await harness.run()

    assert harness.results() == {"call_1": "Error [unknown_tool]: There is no tool wish; there are note, spawn_agent"}
    assert finished(harness) == []


async def test_depth_is_bounded(tmp_path: Path) -> None:
    script: list[Step] = [spawns() for _ in range(MAX_DEPTH)]
    harness = spawning(tmp_path, [*script, *(says(text) for text in "abc")])

    assert (await harness.run()).text == "c"

    offered = [[tool.name for tool in request.tools] for request in harness.model.requests]
    assert offered[: MAX_DEPTH + 1] == [["note", "spawn_agent"]] * MAX_DEPTH + [["note"]]
    assert finished(harness) == [("a", False), ("b", False)]


# --- the same gates


@pytest.mark.requirement("F7", "F26")
@pytest.mark.parametrize(("allowed", "content"), [(True, "noted a"), (False, "Error [permission_denied]: not you")])
async def test_calls_of_a_subagent_are_approved_like_any_other(tmp_path: Path, allowed: bool, content: str) -> None:
    approver = RecordingApprover(ApprovalReply(allowed=allowed, feedback="not you"))
    write = note_tool(noted, access=Access.WRITE)
    harness = spawning(tmp_path, [spawns(), writes(), says("found"), says("done")], write, approver=approver)

    await harness.run()

    assert [request.arguments for request in approver.requests] == [{"text": "a"}]
    results = [e.result.content for e in flat(harness.events) if isinstance(e, ToolFinished) and e.tool == "note"]
    assert results == [content]
    assert [type(event) for event in harness.events if isinstance(event, ApprovalRequested)] == []


@pytest.mark.requirement("F7")
async def test_rules_bind_a_subagent(tmp_path: Path) -> None:
    policy = Policy(workspace=Workspace(tmp_path))
    policy.rules = (parse_rule(PermissionBehavior.DENY, "note", "test"),)
    audited: list[PermissionDecided] = []
    script = [spawns(), writes(), says("found"), says("done")]
    harness = spawning(tmp_path, script, policy=policy, audit=audited.append)

    await harness.run()

    assert [(event.tool, event.behavior) for event in audited] == [("spawn_agent", "allow"), ("note", "deny")]
    assert [e.tool for e in flat(harness.events) if isinstance(e, ToolStarted)] == ["spawn_agent"]


def _block(context: HookContext) -> HookResult:
    if context.prepared is not None and context.prepared.name == "note":
        return HookResult(blocking_error=ToolResult.error("hook_blocked", "not here"))
    return HookResult()


def _by_hook(registry: HookRegistry) -> None:
    registry.register(HookEvent.PRE_TOOL_USE, _block, name="the hook")


def _by_guard(registry: HookRegistry) -> None:
    registry.register_guard("the guard", lambda call: "not here" if call.name == "note" else None)


@pytest.mark.requirement("F7", "C10")
@pytest.mark.parametrize(("install", "fired_by"), [(_by_hook, "the hook"), (_by_guard, "the guard")])
async def test_hooks_and_guards_bind_a_subagent(
    tmp_path: Path, install: Callable[[HookRegistry], None], fired_by: str
) -> None:
    registry = HookRegistry()
    install(registry)
    harness = spawning(tmp_path, [spawns(), writes(), says("found"), says("done")], hooks=registry)

    await harness.run()

    actions = [(e.fired_by, e.action) for e in flat(harness.events) if isinstance(e, HookActed)]
    assert actions == [(fired_by, "deny")]
    assert [e.tool for e in flat(harness.events) if isinstance(e, ToolStarted)] == ["spawn_agent"]


async def test_prompt_and_end_of_a_subagent_are_not_the_users(tmp_path: Path) -> None:
    seen: list[str] = []
    registry = HookRegistry()
    for event in HookEvent:
        registry.register(event, lambda context: kept(seen, context.event.value))
    harness = spawning(tmp_path, [spawns(), writes(), says("found"), says("done")], hooks=registry)

    await harness.run()

    assert seen == ["UserPromptSubmit", *["PreToolUse"] * 2, *["PostToolUse"] * 2, "Stop"]


# --- every ending


async def test_events_of_a_subagent_travel_wrapped(tmp_path: Path) -> None:
    usage = Usage(input_tokens=3, output_tokens=2)
    child = calls(("note", {"text": "a"}), usage=usage)
    harness = spawning(tmp_path, [spawns(), child, says("found", usage=usage), says("done")])

    await harness.run()

    wrapped = [event for event in harness.events if isinstance(event, SubagentEvent)]
    assert {(event.agent, event.call_id) for event in wrapped} == {("scout", "call_1")}
    kinds = (AssistantReplied, ToolStarted, ToolFinished)
    assert [type(event.event) for event in wrapped if isinstance(event.event, kinds)] == [
        AssistantReplied,
        ToolStarted,
        ToolFinished,
        AssistantReplied,
    ]
    assert [e for e in harness.events if isinstance(e, SubagentFinished)] == [
        SubagentFinished(agent="scout", call_id="call_1", text="found", is_error=False, usage=usage + usage)
    ]
    own = [event.tool for event in harness.events if isinstance(event, ToolStarted | HookReached)]
    assert "note" not in own


LENGTH = Reply(message=says("cut").message, finish_reason="length")


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([ModelError("the server is down")], "the server is down"),
        ([LENGTH], "Model output reached the token limit"),
        ([writes(), writes(), writes()], "Agent exceeded max_turns=3"),
    ],
)
async def test_subagent_that_fails_is_told_and_the_run_goes_on(tmp_path: Path, steps: list[Step], problem: str) -> None:
    harness = spawning(tmp_path, [spawns(), *steps, says("done")], max_turns=3)

    assert (await harness.run()).text == "done"

    assert finished(harness) == [(problem, True)]
    assert harness.results() == {
        "call_1": f"Error [agent_failed]: The sub-agent scout ended without an answer: {problem}"
    }


async def test_subagent_that_crashes_is_not_told_to_be_cancelled(tmp_path: Path) -> None:
    harness = spawning(tmp_path, [spawns(), RuntimeError("odd"), says("done")])

    assert (await harness.run()).text == "done"

    ((text, is_error),) = finished(harness)
    assert is_error
    assert "odd" in text


async def test_subagent_that_a_hook_stops_answers_with_that_result(tmp_path: Path) -> None:
    def stop(context: HookContext) -> HookResult:
        return HookResult(prevent_continuation=context.prepared is not None and context.prepared.name == "note")

    registry = HookRegistry()
    registry.register(HookEvent.POST_TOOL_USE, stop)
    harness = spawning(tmp_path, [spawns(), writes(), says("done")], hooks=registry)

    assert (await harness.run()).text == "done"

    assert finished(harness) == [("noted a", False)]
    assert harness.results() == {"call_1": "noted a"}


@pytest.mark.requirement("F60", "A60")
@pytest.mark.parametrize("depth", [1, MAX_DEPTH])
async def test_cancel_reaches_a_subagent(tmp_path: Path, depth: int) -> None:
    started = anyio.Event()
    ended: list[str] = []

    async def wait(_params: NoteParams, _context: ToolContext) -> ToolResult:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("handler")
        return ToolResult(content="")

    script: list[Step] = [*(spawns() for _ in range(depth)), writes(), says("next")]
    harness = spawning(tmp_path, script, note_tool(wait))
    async with anyio.create_task_group() as group:
        group.start_soon(harness.run)
        await started.wait()
        group.cancel_scope.cancel()

    assert ended == ["handler"]
    assert finished(harness) == [("cancelled", True)] * depth
    assert harness.results() == {"call_1": "Error [cancelled]: Cancelled while running"}
    assert (await harness.run()).text == "next"
