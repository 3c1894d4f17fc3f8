"""The tool calls of one assistant message, each through its stages in the one order (A3, R1)::

    prepare → Pre hooks → policy → approval → guards → handler → Post hooks → result

A stage passes the call on or ends it with a result; nothing goes back. This is the one place where a ToolError or
a fault becomes an error result (table A.7), and where results enter history: exactly one for each call, in call
order, whatever happens (A54).
"""

import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

import anyio
import anyio.to_thread

from agent_lsp.agent.agent import Agent
from agent_lsp.agent.events import (
    ApprovalRequested,
    ApprovalResolved,
    CommandRan,
    FileChanged,
    HookFailed,
    HookReached,
    PermissionDecided,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from agent_lsp.agent.live_output import LiveOutput
from agent_lsp.agent.stop import acted
from agent_lsp.approvals import Action, ApprovalReply, ApprovalRequest, FileChange, PermissionBehavior, Permit, digest
from agent_lsp.errors import HookContractError, ToolError
from agent_lsp.hooks.contract import HookContext, HookEvent, HookResult
from agent_lsp.hooks.registry import HookOutcome
from agent_lsp.messages import SystemMessage, ToolCall, ToolMessage, ToolResult, Transcript, escape_reminders
from agent_lsp.permissions.evaluation import Evaluation
from agent_lsp.permissions.policy import Advice
from agent_lsp.tools.base import PreparedCall, ToolContext
from agent_lsp.workspace import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """A stage answered the call itself."""

    result: ToolResult
    phase: str
    handler_ran: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Admitted:
    """A call that may run: final arguments, the permit for them, what was judged, and the change that was allowed.

    ``refused`` is what of the change that was shown was not allowed.
    """

    prepared: PreparedCall
    permit: Permit
    action: Action
    change: FileChange | None
    refused: FileChange | None = None


class ToolRound:
    """All calls of one assistant message."""

    def __init__(self, agent: Agent, transcript: Transcript, calls: tuple[ToolCall, ...]) -> None:
        self._agent = agent
        self._transcript = transcript
        self._calls = calls
        self.results: dict[str, ToolResult] = {}
        """By call id, what the calls have come to."""
        self._running: set[str] = set()
        self._contexts: list[SystemMessage] = []
        self._stopped: ToolResult | None = None

    async def run(self) -> ToolResult | None:
        """Run all calls and write all results; returns the stopping call's result where a Post hook stopped (A49).

        On cancellation the open calls are closed, finished ones with their true result, and the cancel goes on.
        """
        try:
            prepared = [self._prepare(call) for call in self._calls]
            if self._may_run_together(prepared):
                await self._run_together(prepared)
            else:
                await self._run_in_turn(prepared)
        finally:
            self._transcript.close_open_calls(self._close)
            self._transcript.extend(*self._contexts)
        return self._stopped

    def _may_run_together(self, prepared: list[PreparedCall | _Ended]) -> bool:
        """Reads run together unless a Post callback may rewrite or stop (R10)."""
        reads = all(isinstance(call, _Ended) or call.definition.access is Access.READ for call in prepared)
        return len(prepared) > 1 and reads and (self._agent.hooks is None or not self._agent.hooks.may_change_results)

    async def _run_in_turn(self, prepared: list[PreparedCall | _Ended]) -> None:
        for call, ready in zip(self._calls, prepared, strict=True):
            if self._stopped is not None:
                self._answer(call, _Ended(result=_SKIPPED, phase="skipped"))
                continue
            admitted = await self._admit(ready)
            ended = admitted if isinstance(admitted, _Ended) else await self._post(*await self._execute(admitted))
            self._answer(call, ended)

    async def _run_together(self, prepared: list[PreparedCall | _Ended]) -> None:
        """Gate one by one, run handlers side by side, Post one by one (C11)."""
        admitted = [await self._admit(ready) for ready in prepared]
        finished: dict[str, tuple[_Admitted, ToolResult]] = {}

        async def execute(call: _Admitted) -> None:
            finished[call.prepared.call_id] = await self._execute(call)

        async with anyio.create_task_group() as group:
            for entry in admitted:
                if isinstance(entry, _Admitted):
                    group.start_soon(execute, entry)
        for call, entry in zip(self._calls, admitted, strict=True):
            self._answer(call, entry if isinstance(entry, _Ended) else await self._post(*finished[call.id]))

    # The stages

    def _prepare(self, call: ToolCall) -> PreparedCall | _Ended:
        try:
            prepared = self._agent.tools.prepare(call)
        except Exception:
            return _Ended(result=ToolResult.error("tool_preparation_error", "Tool preparation failed"), phase="prepare")
        return _Ended(result=prepared, phase="prepare") if isinstance(prepared, ToolResult) else prepared

    async def _admit(self, ready: PreparedCall | _Ended) -> _Admitted | _Ended:
        """Everything before the handler."""
        if isinstance(ready, _Ended):
            return ready
        hooked = await self._pre(ready)
        if isinstance(hooked, _Ended):
            return hooked
        prepared, advice = hooked
        admitted = await self._authorize(prepared, advice)
        if isinstance(admitted, _Ended):
            return admitted
        return await self._guard(admitted)

    async def _pre(self, prepared: PreparedCall) -> tuple[PreparedCall, Advice | None] | _Ended:
        hooks = self._agent.hooks
        if hooks is None:
            return prepared, None
        self._agent.emit(HookReached(event=HookEvent.PRE_TOOL_USE.value, tool=prepared.name))
        try:
            outcome = await hooks.run(HookContext(event=HookEvent.PRE_TOOL_USE, prepared=prepared))
        except HookContractError as error:
            return self._hook_failed(
                prepared, error, "hook_contract_error", "PreToolUse hook returned an invalid update"
            )
        except Exception as error:
            return self._hook_failed(prepared, error, "hook_execution_error", "PreToolUse hook failed")
        self._note(HookEvent.PRE_TOOL_USE, prepared, outcome)
        result = outcome.result
        if result.blocking_error is not None:
            return _Ended(result=result.blocking_error, phase="pre")
        return result.updated_input or prepared, _advice(result)

    async def _authorize(self, prepared: PreparedCall, advice: Advice | None) -> _Admitted | _Ended:
        try:
            action = prepared.action(self._agent.workspace)
            evaluation = self._agent.policy.decide(action, advice)
            event = PermissionDecided(
                tool=prepared.name,
                call_id=prepared.call_id,
                behavior=str(evaluation.behavior),
                source=evaluation.source,
                reason=evaluation.reason,
            )
            self._agent.audit(event)
            self._agent.emit(event)
            if evaluation.behavior is PermissionBehavior.DENY:
                return _denied(evaluation.reason)
            if evaluation.behavior is PermissionBehavior.ASK:
                return await self._ask(prepared, action, evaluation)
        except ToolError as error:
            return _Ended(result=ToolResult.error(error.code, error.message), phase="permission")
        except Exception:
            return _Ended(
                result=ToolResult.error("permission_evaluation_error", "Permission evaluation failed"),
                phase="permission",
            )
        permit = Permit(call_id=prepared.call_id, digest=digest(prepared.arguments, None))
        return _Admitted(prepared=prepared, permit=permit, action=action, change=None)

    async def _ask(self, prepared: PreparedCall, action: Action, evaluation: Evaluation) -> _Admitted | _Ended:
        """Ask until the answer was given on what would still be written now (A40)."""
        change = await prepared.preview(self._context(prepared))
        while True:
            if change is not None:
                await anyio.to_thread.run_sync(change.hunks)  # those who show it find them ready
            request = ApprovalRequest(
                id=uuid.uuid4().hex,
                action=action,
                reason=evaluation.reason,
                source=evaluation.source,
                arguments=prepared.arguments,
                change=change,
                rule=self._agent.policy.rule_for(action),
            )
            reply = await self._put_to_human(request)
            if not reply.allowed or reply.hunks == ():
                return _denied(reply.feedback or "The user denied this call")
            change = await prepared.preview(self._context(prepared))
            if digest(prepared.arguments, change) == request.digest:
                return self._allowed(prepared, action, change, reply)

    def _allowed(
        self, prepared: PreparedCall, action: Action, change: FileChange | None, reply: ApprovalReply
    ) -> _Admitted:
        """What a human's Allow admits: all that was shown, or the parts of it that were taken."""
        refused = None
        part = None if change is None or reply.hunks is None else change.only(reply.hunks)
        if change is not None and part is not None and part.after != change.after:
            refused, change = replace(change, before=part.after), part
        else:
            self._agent.policy.remember(action, reply.scope)
        permit = Permit(call_id=prepared.call_id, digest=digest(prepared.arguments, change))
        return _Admitted(prepared=prepared, permit=permit, action=action, change=change, refused=refused)

    async def _put_to_human(self, request: ApprovalRequest) -> ApprovalReply:
        """Ask, and say so; a cancelled question is resolved too."""
        self._agent.emit(ApprovalRequested(id=request.id, tool=request.action.tool, target=request.target))
        reply = ApprovalReply(allowed=False, feedback="The question was withdrawn")
        try:
            reply = await self._agent.approver.ask(request)
        finally:
            self._agent.emit(
                ApprovalResolved(id=request.id, allowed=reply.allowed, scope=reply.scope.value, feedback=reply.feedback)
            )
        return reply

    async def _guard(self, admitted: _Admitted) -> _Admitted | _Ended:
        """The last word before the handler (C10)."""
        if self._agent.hooks is None:
            return admitted
        prepared = admitted.prepared
        denial = await self._agent.hooks.check_guards(prepared)
        if denial is None:
            return admitted
        self._agent.emit(acted("guard", denial, prepared, paths=self._paths(prepared)))
        return _Ended(result=ToolResult.error("hook_blocked", f"blocked by hook: {denial.reason}"), phase="guard")

    async def _execute(self, admitted: _Admitted) -> tuple[_Admitted, ToolResult]:
        prepared = admitted.prepared
        if admitted.permit.digest != digest(prepared.arguments, admitted.change):
            raise AssertionError("a permit for other arguments reached the handler")
        self._agent.emit(ToolStarted(tool=prepared.name, call_id=prepared.call_id, arguments=prepared.arguments))
        self._running.add(prepared.call_id)
        if prepared.definition.access is Access.EXECUTE:
            self._agent.emit(CommandRan(call_id=prepared.call_id))
        try:
            if prepared.action(self._agent.workspace) != admitted.action:  # a link was put in the way (A40, F23)
                raise ToolError("path_changed", "The path leads elsewhere than when the call was judged; try again")
            async with self._agent.recorder.recording(admitted.action):
                result = await prepared.run(replace(self._context(prepared), change=admitted.change))
            if admitted.refused is not None:
                note = f"{result.content}\nThe user allowed only a part of this change. Not made was:"
                result = replace(result, content=f"{note}\n{admitted.refused.diff()}")
        except ToolError as error:
            result = ToolResult.error(error.code, error.message)
        except Exception as error:
            result = ToolResult.error("tool_execution_error", f"Tool failed: {type(error).__name__}")
        self._running.discard(prepared.call_id)
        self.results[prepared.call_id] = result
        if result.metadata.get("changed") is True:
            self._agent.emit(FileChanged(call_id=prepared.call_id, path=str(result.metadata["path"])))
        return admitted, result

    async def _post(self, admitted: _Admitted, result: ToolResult) -> _Ended:
        hooks, prepared = self._agent.hooks, admitted.prepared
        if hooks is None:
            return _Ended(result=result, phase="handler", handler_ran=True)
        try:
            outcome = await hooks.run(HookContext(event=HookEvent.POST_TOOL_USE, prepared=prepared, result=result))
        except Exception as error:
            self._reached_post(prepared, "error")
            return self._hook_failed(
                prepared, error, "hook_execution_error", "PostToolUse hook failed", phase="post", handler_ran=True
            )
        result = outcome.result.updated_output or result
        self._reached_post(prepared, "error" if result.is_error else "ok")
        self._note(HookEvent.POST_TOOL_USE, prepared, outcome)
        if outcome.result.prevent_continuation:
            self._stopped = result
        return _Ended(result=result, phase="post", handler_ran=True)

    # What the stages share

    def _context(self, prepared: PreparedCall) -> ToolContext:
        agent, call_id = self._agent, prepared.call_id
        return ToolContext(
            call_id=call_id,
            workspace=agent.workspace,
            documents=agent.documents,
            environment=agent.environment,
            may_read=agent.policy.may_read,
            output=LiveOutput(lambda text: agent.emit(ToolOutput(call_id=call_id, text=text))),
        )

    def _reached_post(self, prepared: PreparedCall, outcome: Literal["ok", "error"]) -> None:
        self._agent.emit(HookReached(event=HookEvent.POST_TOOL_USE.value, tool=prepared.name, outcome=outcome))

    def _note(self, event: HookEvent, prepared: PreparedCall, outcome: HookOutcome) -> None:
        """Keep the hooks' context for after the results, and say what they did (A50, C7, C8)."""
        self._contexts.extend(outcome.result.additional_context)
        for action in outcome.actions:
            self._agent.emit(acted(event.value, action, prepared, paths=self._paths(prepared)))

    def _paths(self, prepared: PreparedCall) -> tuple[str, ...]:
        """The files that a call names, as the workspace shows them."""
        with suppress(ToolError):  # such a path is answered where the call is judged
            return tuple(path.display for path in prepared.action(self._agent.workspace).paths)
        return ()

    def _hook_failed(
        self,
        prepared: PreparedCall,
        error: Exception,
        code: str,
        message: str,
        *,
        phase: str = "pre",
        handler_ran: bool = False,
    ) -> _Ended:
        self._agent.emit(
            HookFailed(
                phase=phase,
                tool=prepared.name,
                call_id=prepared.call_id,
                error=f"{type(error).__name__}: {error}",
                handler_ran=handler_ran,
            )
        )
        result = ToolResult.error(code, message, {"phase": phase, "handler_ran": handler_ran})
        return _Ended(result=result, phase=phase, handler_ran=handler_ran)

    def _answer(self, call: ToolCall, ended: _Ended) -> None:
        """Write one call's result, with our own tags in it disarmed (F44)."""
        result = replace(ended.result, content=escape_reminders(ended.result.content))
        self.results[call.id] = result
        self._transcript.append(ToolMessage(tool_call_id=call.id, content=result.content))
        self._agent.emit(
            ToolFinished(
                tool=call.name, call_id=call.id, result=result, phase=ended.phase, handler_ran=ended.handler_ran
            )
        )

    def _close(self, call_id: str) -> ToolResult:
        """The answer of a call that the round did not get to answer: its true result if it has one (A60, R10)."""
        running = call_id in self._running
        result = self.results.get(call_id) or ToolResult.error(
            "cancelled", f"Cancelled {'while running' if running else 'before completion'}"
        )
        result = replace(result, content=escape_reminders(result.content))
        tool = next(call.name for call in self._calls if call.id == call_id)
        ran = running or call_id in self.results
        self._agent.emit(ToolFinished(tool=tool, call_id=call_id, result=result, phase="cancelled", handler_ran=ran))
        return result


_SKIPPED = ToolResult.error("hook_stopped_continuation", "Skipped after PostToolUse requested a stop")


def _denied(reason: str) -> _Ended:
    return _Ended(result=ToolResult.error("permission_denied", reason), phase="permission")


def _advice(result: HookResult) -> Advice | None:
    behavior = result.permission_behavior
    if behavior is PermissionBehavior.PASSTHROUGH:
        return None
    return Advice(behavior=behavior, reason=f"PreToolUse hook requested {behavior}", source="pre-tool-hook")
