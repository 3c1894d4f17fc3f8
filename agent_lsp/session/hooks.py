"""The configured hooks of a session at their positions: the one adapter between ``hooks.runner`` and a run (B40).

What may block is a callback or a watcher that the run waits for. What only observes listens to the event stream and
runs beside the run: it outlives a cancelled one, and is waited for, with a bound, when the session closes (B30, B31).
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
from anyio.abc import TaskGroup

from agent_lsp.agent.events import (
    AgentEvent,
    ApprovalRequested,
    ConfiguredHookRan,
    SubagentEvent,
    SubagentFinished,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from agent_lsp.errors import PromptRejected, ToolError
from agent_lsp.hooks.contract import HookContext, HookEvent, HookResult
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.hooks.runner import HookRun as HookRun
from agent_lsp.hooks.runner import HookRunner, Occasion
from agent_lsp.hooks.settings import STOP, ConfiguredHook
from agent_lsp.messages import JsonObject, SystemMessage, ToolResult, UserMessage, system_reminder
from agent_lsp.tools.task import Task

_log = logging.getLogger(__name__)


class ConfiguredHooks:
    """Puts a runner's hooks into a registry, a task list and an event stream."""

    def __init__(self, runner: HookRunner) -> None:
        self.runner = runner
        self._observers: TaskGroup | None = None
        self._scopes: set[anyio.CancelScope] = set()
        self._arguments: dict[tuple[str, ...], JsonObject] = {}

    # What may block

    def install(self, registry: HookRegistry) -> None:
        """Register behind every in-process hook (R1)."""
        registry.register(HookEvent.USER_PROMPT_SUBMIT, self._submit, name="configured hooks")
        registry.register(HookEvent.PRE_TOOL_USE, self._pre, name="configured hooks")
        registry.register(HookEvent.STOP, self._stop, name="configured hooks")

    async def _submit(self, context: HookContext) -> HookResult:
        prompt = context.message.content if context.message is not None else ""
        outcome = await self.runner.run(Occasion(event="UserPromptSubmit", payload={"prompt": prompt}))
        if outcome.blocked_by is not None:
            raise PromptRejected(f"The prompt was blocked by hook {outcome.blocked_by}: {outcome.reason}")
        return HookResult(additional_context=_reminder(outcome.context))

    async def _pre(self, context: HookContext) -> HookResult:
        prepared = context.prepared
        if prepared is None:
            return HookResult()
        occasion = Occasion(
            event="PreToolUse", subject=prepared.name, args=prepared.arguments, payload={"tool": prepared.name}
        )
        outcome = await self.runner.run(occasion)
        if outcome.blocked_by is not None:
            metadata = {"fired_by": outcome.blocked_by, "reason": outcome.reason}
            denial = ToolResult.error("hook_blocked", f"blocked by hook: {outcome.reason}", metadata)
            return HookResult(blocking_error=denial, additional_context=_reminder(outcome.context))
        return HookResult(
            permission_behavior=outcome.advice,
            updated_input=None if outcome.args is None else replace(prepared, arguments=outcome.args),
            additional_context=_reminder(outcome.context),
        )

    async def _stop(self, context: HookContext) -> HookResult:
        """The established shape's Stop hook: a block is one more turn, with the reason as what to do (R13)."""
        occasion = Occasion(event=STOP, payload={"stop_hook_active": context.stop_hook_active})
        outcome = await self.runner.run(occasion)
        if outcome.blocked_by is None:
            return HookResult()
        return HookResult(force_continue=UserMessage(content=system_reminder(outcome.reason), injected=True))

    async def watch_task(self, task: Task, earlier: Task | None) -> str:
        """The TaskWatcher: TaskCreated and TaskCompleted may refuse (B27, B28)."""
        shown = task.to_json()
        if earlier is None:
            occasion = Occasion(event="TaskCreated", subject="task_create", args=shown, payload={"task": shown})
        else:
            payload = {
                "task": shown,
                "previous_task": earlier.to_json(),
                "status_from": earlier.status,
                "status_to": task.status,
            }
            occasion = Occasion(event="TaskCompleted", subject="task_update", args=shown, payload=payload)
        outcome = await self.runner.run(occasion)
        if outcome.blocked_by is not None:
            raise ToolError("hook_blocked", f"blocked by hook: {outcome.reason}")
        return outcome.context

    # What observes

    async def hold_open(self, started: Callable[[], None], *, drain: float) -> None:
        """SessionStart; observers until cancelled; then SessionEnd and a wait of ``drain`` seconds for all of them."""
        async with anyio.create_task_group() as observers:
            self._observers = observers
            self._observe("SessionStart")
            started()
            try:
                await anyio.sleep_forever()
            finally:
                self._observe("SessionEnd")
                self._observers = None
                for scope in self._scopes:
                    scope.deadline = anyio.current_time() + drain

    def __call__(self, event: AgentEvent, agent: str = "", trail: tuple[str, ...] = ()) -> None:
        """Hear the event stream; ``trail`` are the calls that lead to a sub-agent, because call ids are its own."""
        match event:
            case ToolStarted():
                self._arguments[*trail, event.call_id] = event.arguments
            case ToolFinished(handler_ran=True):
                self._observe(
                    "PostToolUse",
                    subject=event.tool,
                    args=self._arguments.pop((*trail, event.call_id), None),
                    tool=event.tool,
                    output=event.result.content,
                    is_error=event.result.is_error,
                    agent=agent,
                )
            case ApprovalRequested():
                self._observe("Notification", message=f"Approval needed: {event.tool}: {event.target}", agent=agent)
            case SubagentEvent():
                self(event.event, event.agent, (*trail, event.call_id))
            case SubagentFinished():
                self._observe(
                    "SubagentStop", subject=event.agent, agent=event.agent, message=event.text, is_error=event.is_error
                )
            case TurnFinished():
                self._arguments.clear()
                message = f"The agent has ended: {event.error or event.text or event.stop_reason}"
                self._observe("Notification", message=message, is_error=event.error is not None)

    def _observe(self, event: str, *, subject: str = "", args: JsonObject | None = None, **payload: Any) -> None:
        """Start each hook of an occasion by itself: a slow one delays nobody, and a cancelled run ends none of them."""
        if self._observers is None:
            return
        occasion = Occasion(event=event, subject=subject, args=args, payload=payload)
        for hook in self.runner.matching(occasion):
            scope = anyio.CancelScope(shield=True)
            self._scopes.add(scope)
            self._observers.start_soon(self._run_observer, hook, occasion, scope, name=hook.name)

    async def _run_observer(self, hook: ConfiguredHook, occasion: Occasion, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await self.runner.run_one(hook, occasion)
            except Exception:  # an observer is logged and never raises (B33)
                _log.exception("hook %s failed", hook.name)
        self._scopes.discard(scope)


def ran(run: HookRun) -> ConfiguredHookRan:
    """A log entry as an event."""
    return ConfiguredHookRan(
        name=run.hook.name,
        event=run.hook.event,
        subject=run.subject,
        decision=run.decision,
        reason=run.reason,
        duration=run.duration,
        exit_code=run.exit_code,
        message=run.message,
    )


def _reminder(context: str) -> tuple[SystemMessage, ...]:
    return (SystemMessage(content=system_reminder(context)),) if context else ()
