"""Order, merge and short circuit, and what a rewrite must keep."""

import dataclasses
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.errors import HookContractError
from agent_lsp.hooks.contract import HOOK_EVENTS, HookContext, HookEvent, HookResult
from agent_lsp.hooks.registry import HookAction, HookRegistry
from agent_lsp.messages import SystemMessage, ToolResult, UserMessage
from agent_lsp.tools.base import PreparedCall
from tests.hooks.calls import command_tool, prepared
from tests.support.harness import kept

PROMPT, PRE, POST, STOP = HOOK_EVENTS
BLOCK = ToolResult.error("hook_blocked", "no")
AGAIN = UserMessage(content="again")


def context(text: str) -> tuple[SystemMessage, ...]:
    return (SystemMessage(content=text),)


def _answer(result: HookResult, seen: list[HookContext], hook: HookContext) -> HookResult:
    seen.append(hook)
    return result


def registry_of(event: HookEvent, *results: HookResult) -> tuple[HookRegistry, list[HookContext]]:
    """A registry whose callbacks give these results, and the contexts that they get."""
    registry, seen = HookRegistry(), list[HookContext]()
    for number, result in enumerate(results):
        registry.register(event, partial(_answer, result, seen), name=f"hook{number}")
    return registry, seen


def context_for(event: HookEvent, *, active: bool = False) -> HookContext:
    match event:
        case HookEvent.USER_PROMPT_SUBMIT:
            return HookContext(event=event, message=UserMessage(content="x"))
        case HookEvent.PRE_TOOL_USE:
            return HookContext(event=event, prepared=prepared())
        case HookEvent.POST_TOOL_USE:
            return HookContext(event=event, prepared=prepared(), result=ToolResult(content="r"))
        case HookEvent.STOP:
            return HookContext(event=event, stop_hook_active=active)


@pytest.mark.requirement("A2")
def test_misuse_fails_at_registration() -> None:
    registry: Any = HookRegistry()

    with pytest.raises(HookContractError, match=r"^event must be a HookEvent$"):
        registry.register("PreToolUse", lambda _context: HookResult())
    with pytest.raises(HookContractError, match=r"^hook callback must be callable$"):
        registry.register(PRE, "not callable")


@pytest.mark.requirement("A18")
@pytest.mark.parametrize("event", HOOK_EVENTS)
async def test_callback_must_return_a_result(event: HookEvent) -> None:
    registry: Any = HookRegistry()
    registry.register(event, lambda _context: None)

    with pytest.raises(HookContractError, match=rf"^{event.value} hook callback must return HookResult$"):
        await registry.run(context_for(event))


@pytest.mark.requirement("A25", "A27")
async def test_callbacks_run_in_order_sync_and_async_alike() -> None:
    trace: list[str] = []
    registry = HookRegistry()

    async def slow(_context: HookContext) -> HookResult:
        await anyio.lowlevel.checkpoint()
        trace.append("async")
        return HookResult(additional_context=context("1"))

    registry.register(PRE, slow)
    registry.register(PRE, lambda _context: kept(trace, "sync"))
    registry.register(PRE, lambda _context: HookResult(additional_context=context("2")))

    outcome = await registry.run(context_for(PRE))

    assert trace == ["async", "sync"]
    assert outcome.result == HookResult(additional_context=(*context("1"), *context("2")))


@pytest.mark.requirement("A26", "A34")
async def test_rewrites_are_seen_by_the_next_and_the_last_wins() -> None:
    first = dataclasses.replace(prepared(), arguments={"command": "one"})
    second = dataclasses.replace(prepared(), arguments={"command": "two"})
    registry, seen = registry_of(PRE, HookResult(updated_input=first), HookResult(updated_input=second), HookResult())

    outcome = await registry.run(context_for(PRE))

    commands = [hook.prepared.arguments["command"] for hook in seen if hook.prepared is not None]
    assert commands == ["echo ok", "one", "two"]
    assert outcome.result.updated_input is not None
    assert outcome.result.updated_input.arguments == {"command": "two"}


@pytest.mark.requirement("A26")
async def test_output_rewrites_chain() -> None:
    registry, seen = registry_of(
        POST, HookResult(updated_output=ToolResult(content="one")), HookResult(), HookResult(prevent_continuation=True)
    )

    outcome = await registry.run(context_for(POST))

    assert [hook.result.content for hook in seen if hook.result is not None] == ["r", "one", "one"]
    assert outcome.result == HookResult(updated_output=ToolResult(content="one"), prevent_continuation=True)


@pytest.mark.requirement("A30", "A32")
async def test_blocking_error_ends_the_rest_and_advice_to_deny_does_not() -> None:
    registry, seen = registry_of(
        PRE, HookResult(permission_behavior=PermissionBehavior.DENY), HookResult(blocking_error=BLOCK), HookResult()
    )

    outcome = await registry.run(context_for(PRE))

    assert len(seen) == 2
    assert outcome.result.blocking_error == BLOCK


@pytest.mark.requirement("A31")
async def test_first_force_continue_ends_the_rest() -> None:
    registry, seen = registry_of(STOP, HookResult(force_continue=AGAIN), HookResult())

    outcome = await registry.run(context_for(STOP))

    assert (len(seen), outcome.result.force_continue) == (1, AGAIN)


@pytest.mark.requirement("A33")
async def test_force_continue_is_dropped_while_active_and_context_survives() -> None:
    forced = HookResult(force_continue=AGAIN, additional_context=context("c"))
    registry, seen = registry_of(STOP, forced, forced)

    outcome = await registry.run(context_for(STOP, active=True))

    assert len(seen) == 2
    assert outcome.result == HookResult(additional_context=context("c") * 2)


@pytest.mark.requirement("A35")
@pytest.mark.parametrize("event", HOOK_EVENTS)
async def test_no_callbacks_give_an_empty_result(event: HookEvent) -> None:
    assert (await HookRegistry().run(context_for(event))).result == HookResult()


def _other_definition(call: PreparedCall) -> PreparedCall:
    return dataclasses.replace(call, definition=command_tool())


@pytest.mark.requirement("A36", "A37")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda call: dataclasses.replace(call, call_id="other"),
            "updated_input must preserve the OpenAI tool call id",
        ),
        (lambda call: dataclasses.replace(call, name="other"), "updated_input must preserve the tool name"),
        (_other_definition, "updated_input must preserve the registered definition"),
        (
            lambda call: dataclasses.replace(call, arguments={"command": 1}),
            "updated_input arguments must match the registered input schema",
        ),
        (
            lambda call: dataclasses.replace(call, arguments={"command": "x", "more": 1}),
            "updated_input arguments must match the registered input schema",
        ),
    ],
)
async def test_rewrite_must_keep_what_was_registered(
    change: Callable[[PreparedCall], PreparedCall], message: str
) -> None:
    registry, _seen = registry_of(PRE, HookResult(updated_input=change(prepared())))

    with pytest.raises(HookContractError) as caught:
        await registry.run(context_for(PRE))

    assert str(caught.value) == message


@pytest.mark.requirement("A39", "A40")
async def test_accepted_rewrite_cannot_be_changed_afterwards() -> None:
    arguments: dict[str, Any] = {"command": "approved"}
    registry, _seen = registry_of(PRE, HookResult(updated_input=dataclasses.replace(prepared(), arguments=arguments)))

    outcome = await registry.run(context_for(PRE))
    arguments["command"] = "executed"

    assert outcome.result.updated_input is not None
    assert outcome.result.updated_input.arguments == {"command": "approved"}


@pytest.mark.requirement("R10")
async def test_observer_must_answer_with_nothing() -> None:
    registry = HookRegistry()
    registry.register(POST, lambda _context: HookResult(prevent_continuation=True), observer=True)

    assert not registry.may_change_results
    with pytest.raises(HookContractError, match=r"^PostToolUse observer must return an empty HookResult$"):
        await registry.run(context_for(POST))


@pytest.mark.requirement("C10")
async def test_first_guard_that_objects_denies_and_a_broken_one_denies_too() -> None:
    def broken(_prepared: PreparedCall) -> str | None:
        raise RuntimeError

    async def slow(_prepared: PreparedCall) -> str | None:
        return "slow says no"

    passing, failing, objecting = HookRegistry(), HookRegistry(), HookRegistry()
    passing.register_guard("fine", lambda _prepared: None)
    failing.register_guard("broken", broken)
    objecting.register_guard("slow", slow)

    assert await passing.check_guards(prepared()) is None
    assert await failing.check_guards(prepared()) == HookAction(
        hook="broken", action="deny", reason="guard broken failed: RuntimeError"
    )
    assert await objecting.check_guards(prepared()) == HookAction(hook="slow", action="deny", reason="slow says no")


RESULTS = st.lists(
    st.builds(
        HookResult,
        permission_behavior=st.sampled_from(PermissionBehavior),
        updated_input=st.sampled_from([None, prepared("one"), prepared("two")]),
        blocking_error=st.sampled_from([None, None, None, BLOCK]),
        additional_context=st.lists(st.builds(SystemMessage, content=st.text(max_size=2)), max_size=2).map(tuple),
    ),
    max_size=6,
)


@pytest.mark.requirement("A25", "A26", "A27", "A29", "A30", "C3")
@given(RESULTS)
def test_pre_results_merge_by_the_stated_order(results: list[HookResult]) -> None:
    registry, seen = registry_of(PRE, *results)
    outcome = anyio.run(registry.run, context_for(PRE))

    blocked = next((index for index, result in enumerate(results) if result.blocking_error), None)
    counted = results if blocked is None else results[: blocked + 1]
    rewrites = [result.updated_input.arguments for result in counted if result.updated_input is not None]
    assert len(seen) == len(counted)
    assert outcome.result.permission_behavior == reduce(
        max, [result.permission_behavior for result in counted], PermissionBehavior.PASSTHROUGH
    )
    assert outcome.result.additional_context == tuple(m for result in counted for m in result.additional_context)
    final = outcome.result.updated_input
    assert (final and final.arguments) == (rewrites[-1] if rewrites else None)
    assert (outcome.result.blocking_error is None) is (blocked is None)


@pytest.mark.requirement("A28")
@given(st.lists(st.booleans(), max_size=5))
def test_prevent_continuation_is_or(stops: list[bool]) -> None:
    registry, _seen = registry_of(POST, *[HookResult(prevent_continuation=stop) for stop in stops])

    assert anyio.run(registry.run, context_for(POST)).result.prevent_continuation is any(stops)
