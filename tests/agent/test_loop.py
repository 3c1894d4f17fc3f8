"""The loop: order, limits, Stop, faults and cancel."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from agent_lsp.agent.events import (
    ApprovalRequested,
    HookFailed,
    HookReached,
    PermissionDecided,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from agent_lsp.agent.loop import RunOutcome
from agent_lsp.errors import AgentLimitError, AgentLspError, HookContractError, ModelError
from agent_lsp.hooks.contract import HookContext, HookEvent, HookResult
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.messages import (
    AssistantMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from agent_lsp.models.base import ModelRequest, Reply
from agent_lsp.models.scripted import Step, calls, says
from agent_lsp.tools.base import ToolContext
from agent_lsp.workspace import Access
from tests.support.harness import Harness, NoteParams, RecordingApprover, kept, note_tool


def _hooks(event: HookEvent, *results: HookResult) -> HookRegistry:
    """A registry whose callbacks on ``event`` return the given results, one each."""
    registry = HookRegistry()
    for result in results:
        registry.register(event, partial(_answer, result))
    return registry


def _answer(result: HookResult, _context: HookContext) -> HookResult:
    return result


def _trace(trace: list[str], word: str, _context: HookContext) -> HookResult:
    return kept(trace, word)


@pytest.mark.requirement("A3", "A5", "A6", "A7", "A8")
async def test_run_with_one_tool_passes_the_stages_in_order(tmp_path: Path) -> None:
    trace: list[str] = []
    registry = HookRegistry()
    for event, word in zip(HookEvent, ("user", "pre", "post", "stop"), strict=True):
        registry.register(event, partial(_trace, trace, word))

    async def handler(params: NoteParams, _context: ToolContext) -> ToolResult:
        trace.append("handler")
        return ToolResult(content=params.text)

    harness = Harness(
        tmp_path,
        [calls(("note", {"text": "a"})), says("done")],
        tools=[note_tool(handler)],
        hooks=registry,
        audit=lambda _event: trace.append("permission"),
    )

    outcome = await harness.run()

    assert trace == ["user", "pre", "permission", "handler", "post", "stop"]
    assert outcome.text == "done"
    harness.model.assert_consumed()


@pytest.mark.requirement("A66", "A67", "C13", "R18")
async def test_event_stream_names_hooks_and_permission_in_order(tmp_path: Path) -> None:
    harness = Harness(tmp_path, [calls(("note", {"text": "a"})), says("done")])

    await harness.run()

    kinds = (HookReached, PermissionDecided, ToolStarted, ToolFinished)
    assert [type(event).__name__ for event in harness.events if isinstance(event, kinds)] == [
        "HookReached",
        "HookReached",
        "PermissionDecided",
        "ToolStarted",
        "HookReached",
        "ToolFinished",
        "HookReached",
    ]
    decided = next(event for event in harness.events if isinstance(event, PermissionDecided))
    assert decided == PermissionDecided(
        tool="note",
        call_id="call_1",
        behavior="allow",
        source="default",
        reason="No permission rule blocked the request",
    )


@pytest.mark.requirement("A4", "A41")
async def test_prompt_context_follows_the_user_message(tmp_path: Path) -> None:
    first, second = SystemMessage(content="one"), SystemMessage(content="two")
    hooks = _hooks(
        HookEvent.USER_PROMPT_SUBMIT,
        HookResult(additional_context=(first,)),
        HookResult(additional_context=(second,)),
    )
    harness = Harness(tmp_path, [says("done")], hooks=hooks)

    await harness.run("hello")

    assert harness.model.requests[0].messages == (UserMessage(content="hello"), first, second)


@pytest.mark.requirement("A35")
async def test_run_without_callbacks_equals_run_without_hooks(tmp_path: Path) -> None:
    script = [calls(("note", {"text": "a"})), says("done")]
    bare, empty = Harness(tmp_path, script, hooks=None), Harness(tmp_path, script)

    await bare.run()
    await empty.run()

    assert tuple(bare.transcript) == tuple(empty.transcript)


@pytest.mark.requirement("A51", "A52")
async def test_stop_hook_forces_one_extra_turn_and_then_sees_the_flag(tmp_path: Path) -> None:
    seen: list[bool] = []
    context, again = SystemMessage(content="why"), UserMessage(content="go on")

    def stop(hook: HookContext) -> HookResult:
        seen.append(hook.stop_hook_active)
        return HookResult(additional_context=(context,), force_continue=again)

    registry = HookRegistry()
    registry.register(HookEvent.STOP, stop)
    harness = Harness(tmp_path, [says("first"), says("second"), says("third"), says("fourth")], hooks=registry)

    first = await harness.run("a")
    second = await harness.run("b")

    assert (first.text, second.text) == ("second", "fourth")
    assert seen == [False, True, False, True]
    assert tuple(harness.transcript) == (
        UserMessage(content="a"),
        AssistantMessage(content="first"),
        context,
        again,
        AssistantMessage(content="second"),
        UserMessage(content="b"),
        AssistantMessage(content="third"),
        context,
        again,
        AssistantMessage(content="fourth"),
    )


@pytest.mark.requirement("A53")
async def test_stop_context_is_dropped_without_a_continuation(tmp_path: Path) -> None:
    hooks = _hooks(HookEvent.STOP, HookResult(additional_context=(SystemMessage(content="lost"),)))
    harness = Harness(tmp_path, [says("done")], hooks=hooks)

    await harness.run()

    assert tuple(harness.transcript) == (UserMessage(content="go"), AssistantMessage(content="done"))


@pytest.mark.requirement("A16")
async def test_stop_history_spans_the_session(tmp_path: Path) -> None:
    lengths: list[int] = []
    registry = HookRegistry()
    registry.register(HookEvent.STOP, lambda context: kept(lengths, len(context.history)))
    harness = Harness(tmp_path, [says("one"), says("two")], hooks=registry)

    await harness.run()
    await harness.run()

    assert lengths == [2, 4]


@pytest.mark.requirement("A49")
async def test_prevent_continuation_answers_the_rest_and_ends_the_run(tmp_path: Path) -> None:
    stopped: list[str] = []

    def post(context: HookContext) -> HookResult:
        assert context.prepared is not None
        stop = context.prepared.call_id == "call_2"
        return HookResult(
            updated_output=ToolResult(content="rewritten") if stop else None,
            prevent_continuation=stop,
        )

    registry = HookRegistry()
    registry.register(HookEvent.POST_TOOL_USE, post)
    registry.register(HookEvent.STOP, lambda _context: kept(stopped, "stop"))
    harness = Harness(
        tmp_path, [calls(("note", {"text": "a"}), ("note", {"text": "b"}), ("note", {"text": "c"}))], hooks=registry
    )

    outcome = await harness.run()

    assert outcome == RunOutcome(text="rewritten", turns=1, stopped_by_hook=True)
    assert harness.results() == {
        "call_1": "noted a",
        "call_2": "rewritten",
        "call_3": "Error [hook_stopped_continuation]: Skipped after PostToolUse requested a stop",
    }
    assert (harness.noted, stopped) == (["a", "b"], [])


@pytest.mark.requirement("A55")
async def test_run_ends_at_max_turns_with_paired_history(tmp_path: Path) -> None:
    harness = Harness(tmp_path, [calls(("note", {"text": "a"})), calls(("note", {"text": "b"}))], max_turns=2)

    with pytest.raises(AgentLimitError, match=r"^Agent exceeded max_turns=2$"):
        await harness.run()

    harness.transcript.require_paired()
    assert harness.noted == ["a", "b"]


_CALL = ToolCall(id="call_1", name="note", arguments='{"text": "cu')


@pytest.mark.requirement("A55", "F51")
@pytest.mark.parametrize(
    ("reply", "message", "history"),
    [
        pytest.param(
            Reply(message=AssistantMessage(content="par"), finish_reason="length"),
            "Model output reached the token limit",
            (AssistantMessage(content="par"),),
            id="length",
        ),
        pytest.param(
            Reply(message=AssistantMessage(tool_calls=(_CALL,)), finish_reason="length"),
            "Model output reached the token limit",
            (
                AssistantMessage(tool_calls=(_CALL,)),
                ToolMessage(
                    tool_call_id="call_1",
                    content="Error [output_cut]: The call was cut at the token limit and not executed; "
                    "send smaller pieces",
                ),
            ),
            id="length in a call",
        ),
        pytest.param(
            Reply(message=AssistantMessage(), finish_reason="content_filter"),
            "Model response was blocked by the content filter",
            (),
            id="content filter",
        ),
        pytest.param(
            Reply(message=AssistantMessage(reasoning="hm"), finish_reason="stop"),
            "Model stopped without final text or tool calls",
            (),
            id="nothing",
        ),
    ],
)
async def test_unusable_reply_ends_the_run_and_the_next_works(
    tmp_path: Path, reply: Reply, message: str, history: tuple[AssistantMessage, ...]
) -> None:
    harness = Harness(tmp_path, [reply, says("fine")])

    with pytest.raises(AgentLimitError) as caught:
        await harness.run()

    assert str(caught.value) == message
    assert tuple(harness.transcript) == (UserMessage(content="go"), *history)
    assert harness.noted == []
    assert (await harness.run()).text == "fine"


@pytest.mark.requirement("A58")
@pytest.mark.parametrize("event", [HookEvent.USER_PROMPT_SUBMIT, HookEvent.STOP])
async def test_lifecycle_hook_fault_fails_this_run_alone(tmp_path: Path, event: HookEvent) -> None:
    faults = [RuntimeError("boom"), HookContractError("wrong")]

    def fail(_context: HookContext) -> HookResult:
        if faults:
            raise faults.pop(0)
        return HookResult()

    registry = HookRegistry()
    registry.register(event, fail)
    harness = Harness(tmp_path, [says("a")] * (3 if event is HookEvent.STOP else 1), hooks=registry)

    with pytest.raises(AgentLspError, match=rf"^{event.value} hook failed: RuntimeError: boom$"):
        await harness.run()
    with pytest.raises(HookContractError, match=r"^wrong$"):
        await harness.run()

    assert (await harness.run()).text == "a"


async def test_model_error_leaves_history_usable(tmp_path: Path) -> None:
    harness = Harness(tmp_path, [ModelError("the server is down"), says("back")])

    with pytest.raises(ModelError, match=r"^the server is down$"):
        await harness.run("one")

    assert (await harness.run("two")).text == "back"


async def test_streamed_text_reaches_subscribers_whole(tmp_path: Path) -> None:
    harness = Harness(tmp_path, [says("several words of text")])

    await harness.run()

    assert "".join(event.text for event in harness.events if isinstance(event, TextDelta)) == "several words of text"
    assert not [event for event in harness.events if isinstance(event, ReasoningDelta)]


@pytest.mark.requirement("A60", "F60")
async def test_cancel_while_a_handler_runs_closes_every_call(tmp_path: Path) -> None:
    started = anyio.Event()

    async def handler(params: NoteParams, _context: ToolContext) -> ToolResult:
        if params.text == "slow":
            started.set()
            await anyio.sleep_forever()
        return ToolResult(content="finished")

    script = [
        calls(("note", {"text": "quick"}), ("note", {"text": "slow"}), ("note", {"text": "never"})),
        says("next"),
    ]
    registry = _hooks(HookEvent.POST_TOOL_USE, HookResult())
    harness = Harness(tmp_path, script, tools=[note_tool(handler)], hooks=registry)
    async with anyio.create_task_group() as group:
        group.start_soon(harness.run)
        await started.wait()
        group.cancel_scope.cancel()

    assert harness.results() == {
        "call_1": "finished",
        "call_2": "Error [cancelled]: Cancelled while running",
        "call_3": "Error [cancelled]: Cancelled before completion",
    }
    assert not [event for event in harness.events if isinstance(event, HookFailed)]
    assert (await harness.run()).text == "next"


@pytest.mark.requirement("A60", "F60")
@pytest.mark.parametrize("event", list(HookEvent))
async def test_cancel_inside_a_hook_leaves_the_next_prompt_working(tmp_path: Path, event: HookEvent) -> None:
    reached = anyio.Event()

    async def wait(_context: HookContext) -> HookResult:
        if not reached.is_set():
            reached.set()
            await anyio.sleep_forever()
        return HookResult()

    registry = HookRegistry()
    registry.register(event, wait)
    first: list[Step] = [] if event is HookEvent.USER_PROMPT_SUBMIT else [calls(("note", {"text": "a"}))]
    if event is HookEvent.STOP:
        first.append(says("stop"))
    harness = Harness(tmp_path, [*first, says("next")], hooks=registry)
    async with anyio.create_task_group() as group:
        group.start_soon(harness.run)
        await reached.wait()
        group.cancel_scope.cancel()

    harness.transcript.require_paired()
    assert not [event for event in harness.events if isinstance(event, HookFailed)]
    assert (await harness.run()).text == "next"


@pytest.mark.requirement("A60", "F60")
async def test_cancel_during_an_approval_never_runs_the_call(tmp_path: Path) -> None:
    asked = anyio.Event()

    async def wait_for_ever() -> None:
        asked.set()
        await anyio.sleep_forever()

    async def handler(params: NoteParams, _context: ToolContext) -> ToolResult:
        return ToolResult(content=params.text)

    harness = Harness(
        tmp_path,
        [calls(("note", {"text": "a"})), says("next")],
        tools=[note_tool(handler, access=Access.WRITE)],
        approver=RecordingApprover(before=wait_for_ever),
    )
    async with anyio.create_task_group() as group:
        group.start_soon(harness.run)
        await asked.wait()
        group.cancel_scope.cancel()

    assert [type(event) for event in harness.events if isinstance(event, ApprovalRequested | ToolStarted)] == [
        ApprovalRequested
    ]
    assert harness.results() == {"call_1": "Error [cancelled]: Cancelled before completion"}


@pytest.mark.requirement("A54")
async def test_each_request_sees_a_paired_history(tmp_path: Path) -> None:
    def check(request: ModelRequest) -> Step:
        assert [type(message) for message in request.messages] == [
            UserMessage,
            AssistantMessage,
            ToolMessage,
            ToolMessage,
        ]
        return says("done")

    harness = Harness(tmp_path, [calls(("note", {"text": "a"}), ("note", {"text": "b"})), check])

    assert (await harness.run()).text == "done"
