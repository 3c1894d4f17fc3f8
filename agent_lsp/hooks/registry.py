"""Runs callbacks in the order of their registration and merges what they answer (A25 to A35).

Invariants: a rewritten call is prepared again with its original schema before anyone else sees it (A34), and the
merge depends on the order of registration alone. Faults go to the caller; cancellation is never caught.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.errors import HookContractError, ToolError
from agent_lsp.hooks.contract import HOOK_EVENTS, HookContext, HookEvent, HookResult, require_event
from agent_lsp.tools.base import PreparedCall

HookCallback: TypeAlias = Callable[[HookContext], HookResult | Awaitable[HookResult]]
Guard: TypeAlias = Callable[[PreparedCall], "str | Awaitable[str | None] | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAction:
    """One thing that one hook did: ``deny``, ``rewrite``, ``stop``, ``continue``, or ``advise`` and a behaviour."""

    hook: str
    action: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOutcome:
    """The merged result of one position, and who did what."""

    result: HookResult
    actions: tuple[HookAction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    name: str
    callback: HookCallback
    observer: bool


class HookRegistry:
    """One list of callbacks for each event, and the guards."""

    def __init__(self) -> None:
        self._entries: dict[HookEvent, list[_Entry]] = {event: [] for event in HOOK_EVENTS}
        self._guards: list[tuple[str, Guard]] = []

    def register(
        self, event: HookEvent, callback: HookCallback, *, name: str | None = None, observer: bool = False
    ) -> None:
        """Add a callback behind those before it. An observer must answer with an empty result (R10)."""
        require_event(event)
        if not callable(callback):
            raise HookContractError("hook callback must be callable")
        label = name or str(getattr(callback, "__name__", type(callback).__name__))
        self._entries[event].append(_Entry(name=label, callback=callback, observer=observer))

    def register_guard(self, name: str, guard: Guard) -> None:
        """Add a check that runs after approval, directly before the handler; a reason denies, None passes (C10)."""
        if not callable(guard):
            raise HookContractError("guard must be callable")
        self._guards.append((name, guard))

    @property
    def may_change_results(self) -> bool:
        """Whether a Post callback may rewrite or stop, so that calls must run one after another (R10)."""
        return any(not entry.observer for entry in self._entries[HookEvent.POST_TOOL_USE])

    async def run(self, context: HookContext) -> HookOutcome:
        """Run the event's callbacks. Raises HookContractError for a breach, and whatever a callback raises."""
        require_event(context.event)
        merged, actions = HookResult(), list[HookAction]()
        for entry in self._entries[context.event]:
            result = await self._call(entry, context)
            actions.extend(_actions(entry.name, result))
            if result.updated_input is not None and context.prepared is not None:
                result = replace(result, updated_input=_prepare_again(context.prepared, result.updated_input))
            if result.updated_input is not None or result.updated_output is not None:
                prepared, output = result.updated_input or context.prepared, result.updated_output or context.result
                context = replace(context, prepared=prepared, result=output)
            merged = _merge(merged, result)
            if result.blocking_error is not None or result.force_continue is not None:
                break
        return HookOutcome(result=merged, actions=tuple(actions))

    @staticmethod
    async def _call(entry: _Entry, context: HookContext) -> HookResult:
        answer: object = entry.callback(context)
        if inspect.isawaitable(answer):
            answer = await answer
        if not isinstance(answer, HookResult):
            raise HookContractError(f"{context.event.value} hook callback must return HookResult")
        answer.validate_for(context.event)
        if entry.observer and answer != HookResult():
            raise HookContractError(f"{context.event.value} observer must return an empty HookResult")
        return replace(answer, force_continue=None) if context.stop_hook_active else answer

    async def check_guards(self, prepared: PreparedCall) -> HookAction | None:
        """The first guard's denial, or None. A guard that fails denies: silence must not come from a fault."""
        for name, guard in self._guards:
            try:
                reason = guard(prepared)
                if inspect.isawaitable(reason):
                    reason = await reason
            except Exception as error:
                reason = f"guard {name} failed: {type(error).__name__}"
            if reason is not None:
                return HookAction(hook=name, action="deny", reason=str(reason))
        return None


def _merge(earlier: HookResult, later: HookResult) -> HookResult:
    return HookResult(
        permission_behavior=max(earlier.permission_behavior, later.permission_behavior),
        updated_input=later.updated_input or earlier.updated_input,
        blocking_error=later.blocking_error,
        updated_output=later.updated_output or earlier.updated_output,
        prevent_continuation=earlier.prevent_continuation or later.prevent_continuation,
        force_continue=later.force_continue,
        additional_context=(*earlier.additional_context, *later.additional_context),
    )


def _prepare_again(original: PreparedCall, update: PreparedCall) -> PreparedCall:
    """Check what a rewrite must keep, and parse and freeze its arguments anew (A34, A36, A37)."""
    if update.call_id != original.call_id:
        raise HookContractError("updated_input must preserve the OpenAI tool call id")
    if update.name != original.name:
        raise HookContractError("updated_input must preserve the tool name")
    if update.definition is not original.definition:
        raise HookContractError("updated_input must preserve the registered definition")
    try:
        return original.definition.prepare(original.call_id, update.arguments)
    except ToolError as error:
        raise HookContractError("updated_input arguments must match the registered input schema") from error


def _actions(hook: str, result: HookResult) -> list[HookAction]:
    """What a result does, in words for the event stream (C7, C8)."""
    actions = []
    if result.updated_input is not None or result.updated_output is not None:
        actions.append(HookAction(hook=hook, action="rewrite"))
    if result.permission_behavior is not PermissionBehavior.PASSTHROUGH:
        actions.append(HookAction(hook=hook, action=f"advise {result.permission_behavior}"))
    if result.blocking_error is not None:
        blocked = result.blocking_error
        fired_by, reason = blocked.metadata.get("fired_by", hook), blocked.metadata.get("reason", blocked.content)
        actions.append(HookAction(hook=str(fired_by), action="deny", reason=str(reason)))
    if result.prevent_continuation:
        actions.append(HookAction(hook=hook, action="stop"))
    if result.force_continue is not None:
        actions.append(HookAction(hook=hook, action="continue", reason=result.force_continue.content))
    return actions
