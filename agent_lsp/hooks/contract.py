"""The typed contract of in-process hooks: what a callback gets and what it may answer.

Invariant: a HookContext or HookResult that exists is legal in itself. All checks are made at run time, because
callbacks come from untyped code; the sentences are those of the specification (A13, A18 to A22).
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import get_args

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.errors import HookContractError
from agent_lsp.messages import ChatMessage, SystemMessage, ToolResult, UserMessage
from agent_lsp.tools.base import PreparedCall


class HookEvent(enum.Enum):
    """The positions at which callbacks run, in the order of a run (A1)."""

    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    STOP = "Stop"


HOOK_EVENTS: tuple[HookEvent, ...] = tuple(HookEvent)


def require_event(event: object) -> HookEvent:
    """Refuse anything that is not one of the four events (A2)."""
    if not isinstance(event, HookEvent):
        raise HookContractError("event must be a HookEvent")
    return event


@dataclass(frozen=True, slots=True, kw_only=True)
class HookContext:
    """What one callback sees. Each event owns its fields; a foreign one raises HookContractError (A12)."""

    event: HookEvent
    message: UserMessage | None = None
    prepared: PreparedCall | None = None
    result: ToolResult | None = None
    history: tuple[ChatMessage, ...] = ()
    stop_hook_active: bool = False

    def __post_init__(self) -> None:
        name = require_event(self.event).value
        if not isinstance(self.stop_hook_active, bool):
            raise HookContractError("stop_hook_active must be boolean")
        if not isinstance(self.history, Iterable):
            raise HookContractError(f"{name} history must contain ChatMessage values")
        object.__setattr__(self, "history", tuple(self.history))
        if not all(isinstance(message, get_args(ChatMessage)) for message in self.history):
            raise HookContractError(f"{name} history must contain ChatMessage values")
        self._require_owned(name)
        match self.event:
            case HookEvent.USER_PROMPT_SUBMIT:
                if not isinstance(self.message, UserMessage):
                    raise HookContractError(f"{name} requires a user message")
            case HookEvent.PRE_TOOL_USE | HookEvent.POST_TOOL_USE:
                if not isinstance(self.prepared, PreparedCall):
                    raise HookContractError(f"{name} requires a valid prepared tool call")
                if self.event is HookEvent.POST_TOOL_USE and not isinstance(self.result, ToolResult):
                    raise HookContractError(f"{name} requires a tool result")

    def _require_owned(self, name: str) -> None:
        present = {
            "message": self.message is not None,
            "prepared": self.prepared is not None,
            "result": self.result is not None,
            "history": bool(self.history),
            "stop_hook_active": self.stop_hook_active,
        }
        if any(used and field not in _CONTEXT_FIELDS[self.event] for field, used in present.items()):
            raise HookContractError(f"{name} received fields owned by another event")


_CONTEXT_FIELDS = {
    HookEvent.USER_PROMPT_SUBMIT: {"message"},
    HookEvent.PRE_TOOL_USE: {"prepared"},
    HookEvent.POST_TOOL_USE: {"prepared", "result"},
    HookEvent.STOP: {"history", "stop_hook_active"},
}

_RESULT_FIELDS = {
    HookEvent.USER_PROMPT_SUBMIT: set[str](),
    HookEvent.PRE_TOOL_USE: {"permission_behavior", "updated_input", "blocking_error"},
    HookEvent.POST_TOOL_USE: {"updated_output", "prevent_continuation"},
    HookEvent.STOP: {"force_continue"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HookResult:
    """What one callback answers; the empty result changes nothing.

    Values are copied on the way in, so that what the callback keeps has no hold on the run (A23).
    """

    permission_behavior: PermissionBehavior = PermissionBehavior.PASSTHROUGH
    updated_input: PreparedCall | None = None
    blocking_error: ToolResult | None = None
    updated_output: ToolResult | None = None
    prevent_continuation: bool = False
    force_continue: UserMessage | None = None
    additional_context: tuple[SystemMessage, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.permission_behavior, PermissionBehavior):
            raise HookContractError("permission_behavior must be a PermissionBehavior")
        if not isinstance(self.prevent_continuation, bool):
            raise HookContractError("prevent_continuation must be boolean")
        self._copy_in("updated_input", PreparedCall, "updated_input must be a valid prepared tool call")
        self._copy_in("blocking_error", ToolResult, "blocking_error must be an error ToolResult")
        self._copy_in("updated_output", ToolResult, "updated_output must be a ToolResult")
        self._copy_in("force_continue", UserMessage, "force_continue must be a user message")
        if self.blocking_error is not None and not self.blocking_error.is_error:
            raise HookContractError("blocking_error must be an error ToolResult")
        context = self.additional_context
        if not isinstance(context, tuple | list) or not all(isinstance(item, SystemMessage) for item in context):
            raise HookContractError("additional_context must contain system ChatMessage values")
        object.__setattr__(self, "additional_context", tuple(replace(item) for item in context))

    def _copy_in(self, field: str, kind: type[PreparedCall | ToolResult | UserMessage], problem: str) -> None:
        value = getattr(self, field)
        if value is None:
            return
        if not isinstance(value, kind):
            raise HookContractError(problem)
        object.__setattr__(self, field, replace(value))

    def used_fields(self) -> tuple[str, ...]:
        """The fields that would change something, context aside, in the order of A19."""
        used = {
            "permission_behavior": self.permission_behavior is not PermissionBehavior.PASSTHROUGH,
            "updated_input": self.updated_input is not None,
            "blocking_error": self.blocking_error is not None,
            "updated_output": self.updated_output is not None,
            "prevent_continuation": self.prevent_continuation,
            "force_continue": self.force_continue is not None,
        }
        return tuple(field for field, is_used in used.items() if is_used)

    def validate_for(self, event: HookEvent) -> None:
        """Raise HookContractError if a field is used that the event does not allow (A19, A20)."""
        foreign = [field for field in self.used_fields() if field not in _RESULT_FIELDS[event]]
        if foreign:
            raise HookContractError(f"{event.value} HookResult does not allow fields: {', '.join(foreign)}")
