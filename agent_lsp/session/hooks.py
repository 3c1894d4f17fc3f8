"""The configured hooks of a session at their positions: the one adapter between ``hooks.runner`` and a run (B40).

What may block is a callback or a watcher that the run waits for. What only observes listens to the event stream and
runs beside the run: it outlives a cancelled one, and is waited for, with a bound, when the session closes (B30, B31).
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from agent_lsp.agent.events import (
    AgentEvent,
    ApprovalRequested,
    CommandRan,
    ConfiguredHookRan,
    FileChanged,
    SubagentEvent,
    SubagentFinished,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from agent_lsp.agent.subagents import current_agent
from agent_lsp.errors import PromptRejected, ToolError
from agent_lsp.hooks.contract import HookContext, HookEvent, HookResult
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.hooks.runner import HookRun as HookRun
from agent_lsp.hooks.runner import HookRunner, Occasion
from agent_lsp.hooks.settings import STOP, ConfiguredHook
from agent_lsp.messages import JsonObject, SystemMessage, ToolResult, UserMessage, system_reminder
from agent_lsp.tools.base import PreparedCall
from agent_lsp.tools.task import Task
from agent_lsp.workspace import Access

_log = logging.getLogger(__name__)

SIDE_BY_SIDE = 8
"""How many observers run at once."""

SETTLE_SECONDS = 10.0
"""How long a change waits for the observers of the changes before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What a call may have changed: one file, or, by a program, any (None)."""

    path: Path | None


class ConfiguredHooks:
    """Puts a runner's hooks into a registry, a task list and an event stream."""

    def __init__(self, runner: HookRunner, root: Path) -> None:
        self.runner = runner
        self._root = root
        self._observers: TaskGroup | None = None
        self._scopes: set[anyio.CancelScope] = set()
        self._arguments: dict[tuple[str, ...], JsonObject] = {}
        self._changes: dict[tuple[str, ...], _Change] = {}
        self._places = anyio.CapacityLimiter(SIDE_BY_SIDE)
        self._unsettled = 0
        self._settled = anyio.Event()
        self._notes: list[str] = []
        self.changed: Callable[[Path], Awaitable[None]] = _forget
        """Hears of a file that an observer changed after a call did."""

    # What may block

    def install(self, registry: HookRegistry) -> None:
        """Register behind every in-process hook (R1)."""
        registry.register(HookEvent.USER_PROMPT_SUBMIT, self._submit, name="configured hooks")
        registry.register(HookEvent.PRE_TOOL_USE, self._pre, name="configured hooks")
        registry.register(HookEvent.STOP, self._stop, name="configured hooks")
        registry.register_guard("observers of earlier changes", self._settle)

    async def ask_for_trust(self) -> None:
        """Put the one question about what is not trusted before anything runs, not in the middle of it (S4)."""
        for hook in self.runner.hooks:
            if await self.runner.refusal(hook) is not None:
                return

    async def _settle(self, prepared: PreparedCall) -> None:
        """A guard that denies nothing: a formatter of the last edit must not write over the next one (F10)."""
        if prepared.definition.access in (Access.WRITE, Access.EXECUTE) and self._unsettled:
            self._settled = anyio.Event()
            with anyio.move_on_after(SETTLE_SECONDS):
                await self._settled.wait()

    async def _submit(self, context: HookContext) -> HookResult:
        prompt = context.message.content if context.message is not None else ""
        outcome = await self.runner.run(Occasion(event="UserPromptSubmit", payload={"prompt": prompt}))
        if outcome.blocked_by is not None:
            raise PromptRejected(f"The prompt was blocked by hook {outcome.blocked_by}: {outcome.reason}")
        return HookResult(additional_context=self._context(outcome.context))

    def _context(self, context: str) -> tuple[SystemMessage, ...]:
        """A hook's context, and what observers did to files since the model last heard."""
        notes, self._notes = self._notes, []
        told = "\n\n".join(filter(None, (*notes, context)))
        return (SystemMessage(content=system_reminder(told)),) if told else ()

    async def _pre(self, context: HookContext) -> HookResult:
        prepared = context.prepared
        if prepared is None:
            return HookResult()
        payload = {"tool": prepared.name, "agent": current_agent.get()}
        occasion = Occasion(event="PreToolUse", subject=prepared.name, args=prepared.arguments, payload=payload)
        outcome = await self.runner.run(occasion)
        if outcome.blocked_by is not None:
            metadata = {"fired_by": outcome.blocked_by, "reason": outcome.reason}
            denial = ToolResult.error("hook_blocked", f"blocked by hook: {outcome.reason}", metadata)
            return HookResult(blocking_error=denial, additional_context=self._context(outcome.context))
        return HookResult(
            permission_behavior=outcome.advice,
            updated_input=None if outcome.args is None else replace(prepared, arguments=outcome.args),
            additional_context=self._context(outcome.context),
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
                self.runner.close()
                for scope in self._scopes:
                    scope.deadline = anyio.current_time() + drain

    def abandon(self) -> None:
        """End every observer now and start no other: whoever waited for them does not any more."""
        self._observers = None
        for scope in self._scopes:
            scope.cancel()

    def __call__(self, event: AgentEvent, agent: str = "", trail: tuple[str, ...] = ()) -> None:
        """Hear the event stream; ``trail`` are the calls that lead to a sub-agent, because call ids are its own."""
        match event:
            case ToolStarted():
                self._arguments[*trail, event.call_id] = event.arguments
            case FileChanged():
                self._changes[*trail, event.call_id] = _Change(path=Path(event.path))
            case CommandRan():
                self._changes[*trail, event.call_id] = _Change(path=None)
            case ToolFinished(handler_ran=True):
                call = (*trail, event.call_id)
                self._observe(
                    "PostToolUse",
                    subject=event.tool,
                    args=self._arguments.pop(call, None),
                    change=self._changes.pop(call, None),
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
                self._changes.clear()
                message = f"The agent has ended: {event.error or event.text or event.stop_reason}"
                self._observe("Notification", message=message, is_error=event.error is not None)

    def _observe(
        self,
        event: str,
        *,
        subject: str = "",
        args: JsonObject | None = None,
        change: "_Change | None" = None,
        **payload: Any,
    ) -> None:
        """Start each hook of an occasion by itself: a slow one delays nobody, and a cancelled run ends none of them.

        ``change`` is what the call may have changed, for hooks that could change it once more.
        """
        if self._observers is None:
            return
        occasion = Occasion(event=event, subject=subject, args=args, payload=payload)
        for hook in self.runner.matching(occasion):
            scope = anyio.CancelScope(shield=True)
            self._scopes.add(scope)
            if change is not None:
                self._unsettled += 1
            self._observers.start_soon(self._run_observer, hook, occasion, scope, change, name=hook.name)

    async def _run_observer(
        self,
        hook: ConfiguredHook,
        occasion: Occasion,
        scope: anyio.CancelScope,
        change: "_Change | None",
    ) -> None:
        with scope:
            async with self._places:
                before = _content(self._root, change)
                try:
                    await self.runner.run_one(hook, occasion)
                except Exception:  # an observer is logged and never raises (B33)
                    _log.exception("hook %s failed", hook.name)
                if change is not None and _content(self._root, change) != before:
                    self._notes.append(f"The hook {hook.name} changed {change.path} after you did; read it again.")
                    if change.path is not None:
                        await self.changed(self._root / change.path)
        self._scopes.discard(scope)
        if change is not None:
            self._unsettled -= 1
            if not self._unsettled:
                self._settled.set()


async def _forget(_path: Path) -> None:
    """Nobody wants to hear of it."""


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


def _content(root: Path, change: _Change | None) -> str:
    """What the changed file holds, as a digest; nothing where there is no one file."""
    if change is None or change.path is None:
        return ""
    try:
        return hashlib.sha256((root / change.path).read_bytes()).hexdigest()
    except OSError:
        return "missing"
