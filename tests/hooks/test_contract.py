"""What a context and a result may hold, with the exact words of the refusals."""

import dataclasses
from typing import Any

import pytest

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.errors import HookContractError
from agent_lsp.hooks.contract import HOOK_EVENTS, HookContext, HookEvent, HookResult
from agent_lsp.messages import SystemMessage, ToolResult, UserMessage
from tests.hooks.calls import prepared

MESSAGE, CALL, RESULT = UserMessage(content="x"), prepared(), ToolResult(content="r")
ERROR = ToolResult.error("code", "no")
PROMPT, PRE, POST, STOP = HOOK_EVENTS


@pytest.mark.requirement("A1")
def test_events_are_a_fixed_tuple_in_order() -> None:
    assert [event.value for event in HOOK_EVENTS] == ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]
    assert isinstance(HOOK_EVENTS, tuple)


@pytest.mark.requirement("A2", "A12", "A13", "A15")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"event": "PreToolUse"}, "event must be a HookEvent"),
        ({"event": PROMPT}, "UserPromptSubmit requires a user message"),
        ({"event": PROMPT, "message": SystemMessage(content="")}, "UserPromptSubmit requires a user message"),
        ({"event": PRE}, "PreToolUse requires a valid prepared tool call"),
        ({"event": PRE, "prepared": ERROR}, "PreToolUse requires a valid prepared tool call"),
        ({"event": POST, "result": RESULT}, "PostToolUse requires a valid prepared tool call"),
        ({"event": POST, "prepared": CALL}, "PostToolUse requires a tool result"),
        ({"event": POST, "prepared": CALL, "result": "text"}, "PostToolUse requires a tool result"),
        ({"event": STOP, "history": ("text",)}, "Stop history must contain ChatMessage values"),
        ({"event": STOP, "stop_hook_active": 1}, "stop_hook_active must be boolean"),
        *[
            ({"event": event} | own | {foreign: value}, f"{event.value} received fields owned by another event")
            for event, own, foreign, value in list[tuple[HookEvent, dict[str, Any], str, Any]](
                [
                    (PROMPT, {"message": MESSAGE}, "prepared", CALL),
                    (PROMPT, {"message": MESSAGE}, "history", (MESSAGE,)),
                    (PRE, {"prepared": CALL}, "result", RESULT),
                    (PRE, {"prepared": CALL}, "message", MESSAGE),
                    (POST, {"prepared": CALL, "result": RESULT}, "stop_hook_active", True),
                    (STOP, {}, "message", MESSAGE),
                    (STOP, {}, "prepared", CALL),
                ]
            )
        ],
    ],
)
def test_context_refuses_what_its_event_does_not_own(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(HookContractError) as caught:
        HookContext(**fields)

    assert str(caught.value) == message


@pytest.mark.requirement("A11", "A14")
def test_context_is_frozen_and_its_history_a_snapshot() -> None:
    history: Any = [MESSAGE]
    context = HookContext(event=STOP, history=history)
    history.append(MESSAGE)

    assert context.history == (MESSAGE,)
    assert HookContext(event=STOP) == HookContext(event=STOP, history=(), stop_hook_active=False)
    assert [field.name for field in dataclasses.fields(HookContext)] == [
        "event",
        "message",
        "prepared",
        "result",
        "history",
        "stop_hook_active",
    ]
    with pytest.raises(dataclasses.FrozenInstanceError):
        context.history = ()  # type: ignore[misc]  # the misuse itself


USED: dict[str, Any] = {
    "permission_behavior": PermissionBehavior.ASK,
    "updated_input": CALL,
    "blocking_error": ERROR,
    "updated_output": RESULT,
    "prevent_continuation": True,
    "force_continue": MESSAGE,
}
LEGAL = {
    PROMPT: set[str](),
    PRE: {"permission_behavior", "updated_input", "blocking_error"},
    POST: {"updated_output", "prevent_continuation"},
    STOP: {"force_continue"},
}


@pytest.mark.requirement("A19", "A20")
@pytest.mark.parametrize("event", HOOK_EVENTS)
def test_result_names_its_illegal_fields_in_order(event: HookEvent) -> None:
    illegal = [field for field in USED if field not in LEGAL[event]]
    with pytest.raises(HookContractError) as caught:
        HookResult(**USED).validate_for(event)

    assert str(caught.value) == f"{event.value} HookResult does not allow fields: {', '.join(illegal)}"
    HookResult(
        **{field: USED[field] for field in LEGAL[event]}, additional_context=(SystemMessage(content="c"),)
    ).validate_for(event)


@pytest.mark.requirement("A19", "A24")
@pytest.mark.parametrize("event", HOOK_EVENTS)
def test_empty_result_is_legal_everywhere(event: HookEvent) -> None:
    result = HookResult(permission_behavior=PermissionBehavior.PASSTHROUGH, prevent_continuation=False)

    result.validate_for(event)

    assert result == HookResult()
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.prevent_continuation = True  # type: ignore[misc]  # the misuse itself


@pytest.mark.requirement("A17", "A21", "A22")
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("additional_context", (MESSAGE,), "additional_context must contain system ChatMessage values"),
        ("additional_context", "text", "additional_context must contain system ChatMessage values"),
        ("force_continue", SystemMessage(content=""), "force_continue must be a user message"),
        ("blocking_error", RESULT, "blocking_error must be an error ToolResult"),
        ("blocking_error", "no", "blocking_error must be an error ToolResult"),
        ("updated_output", "text", "updated_output must be a ToolResult"),
        ("updated_input", {"command": "x"}, "updated_input must be a valid prepared tool call"),
        ("permission_behavior", "deny", "permission_behavior must be a PermissionBehavior"),
        ("permission_behavior", 3, "permission_behavior must be a PermissionBehavior"),
        ("prevent_continuation", 1, "prevent_continuation must be boolean"),
    ],
)
def test_result_refuses_values_of_the_wrong_kind(field: str, value: object, message: str) -> None:
    fields: dict[str, Any] = {field: value}
    with pytest.raises(HookContractError) as caught:
        HookResult(**fields)

    assert str(caught.value) == message


@pytest.mark.requirement("A23")
def test_result_keeps_no_hold_on_the_callbacks_objects() -> None:
    context: Any = [SystemMessage(content="kept")]
    output = ToolResult(content="kept")
    result = HookResult(updated_output=output, additional_context=context)
    context.append(SystemMessage(content="late"))
    object.__setattr__(output, "content", "changed")

    assert result.updated_output == ToolResult(content="kept")
    assert result.additional_context == (SystemMessage(content="kept"),)
