"""The terminal as a subscriber (the lifecycle log on stderr) and as the human's door (the approval prompt)."""

import json
import os
import sys
from typing import TextIO

import anyio
import anyio.to_thread

from agent_lsp.agent.events import (
    AgentEvent,
    ConfiguredHookRan,
    HistoryCompacted,
    HookActed,
    HookFailed,
    HookReached,
    ModelRetry,
    PermissionDecided,
    SubagentEvent,
    TurnFinished,
    ValidationFinished,
    ValidationStarted,
    ValidatorFinished,
)
from agent_lsp.approvals import ApprovalReply, ApprovalRequest, Scope, visible
from agent_lsp.cli.lines import one_line
from agent_lsp.messages import Usage, thaw


class LifecycleLog:
    """Writes one line for each lifecycle event, in the form of A66 and A67; on a terminal, what a turn took as well."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, event: AgentEvent) -> None:
        line = _line(event)
        if isinstance(event, TurnFinished) and event.usage != Usage() and self._stream.isatty():
            line = f"[Usage] {event.usage}"
        if line is not None:
            print(one_line(line), file=self._stream, flush=True)


def _line(event: AgentEvent) -> str | None:
    match event:
        case HookReached(event=name, tool=None):
            return f"[Hook] {name}"
        case HookReached(event=name, tool=tool, outcome=None):
            return f"[Hook] {name}: {tool}"
        case HookReached(event=name, tool=tool, outcome=outcome):
            return f"[Hook] {name}: {tool} -> {outcome}"
        case HookActed():
            return f"[Hook] {event.fired_by}: {event.action} {event.tool or ''} - {event.reason}"
        case HookFailed():
            return f"[Hook] {event.phase} hook failed: {event.tool} - {event.error}"
        case ConfiguredHookRan(decision=decision) if decision != "passed" or event.message:
            said = " - ".join(filter(None, (event.reason, event.message)))
            return f"[Hook] {event.name}: {decision} {event.subject} - {said}"
        case ValidationStarted() | ValidatorFinished() | ValidationFinished():
            return _validation_line(event)
        case SubagentEvent():
            line = _line(event.event)
            return None if line is None else f"[Agent {event.agent}] {line}"
        case PermissionDecided():
            return f"[Permission] {event.tool}: {event.behavior} ({event.source}) - {event.reason}"
        case HistoryCompacted():
            sizes = f"{event.tokens_before:,} → {event.tokens_after:,} tokens"
            return f"[Model] the conversation was made shorter ({event.how}, {event.reason}): {sizes}"
        case ModelRetry():
            return f"[Model] retry {event.attempt} in {event.delay:.1f} s - {event.reason}"
        case _:
            return None


def _validation_line(event: ValidationStarted | ValidatorFinished | ValidationFinished) -> str:
    match event:
        case ValidationStarted():
            return f"[Validation] {event.attempt}: {', '.join(event.validators)}"
        case ValidatorFinished():
            return f"[Validation] {event.name}: {event.status} ({event.duration:.1f} s)"
        case ValidationFinished(report=report):
            before = f"already failing before the changes: {', '.join(report.already_failing)}"
            told = [*report.failing, *report.notes, *([before] if report.already_failing else [])]
            return f"[Validation] {report.status}{': ' if told else ''}{'; '.join(told)}"


class TerminalApprover:
    """Asks on the terminal. Without one, every question is answered with a refusal (A68)."""

    def __init__(self, source: TextIO, prompt: TextIO) -> None:
        self._source = source
        self._prompt = prompt
        self._asking = anyio.Lock()

    async def ask(self, request: ApprovalRequest) -> ApprovalReply:
        if not self._source.isatty():
            way_out = "; use --trust or agent-lsp trust" if request.source == "trust" else ""
            return ApprovalReply(allowed=False, feedback=f"No interactive approval input was available{way_out}")
        async with self._asking:  # hooks beside the run ask too, and an answer must not reach another question
            _forget_typed(self._source)
            print(describe(request), file=self._prompt)
            remember = f", s (this session), a (always: {request.rule})" if request.rule else ""
            once = "until it changes" if request.source == "trust" else "once"
            print(f"Allow? y ({once}){remember}, anything else denies: ", end="", file=self._prompt, flush=True)
            return parse_answer(await self._read_line(), offered=request.rule is not None)

    async def _read_line(self) -> str:
        """One line, cancellable: the thread pool could not be left while a read is pending."""
        if os.name == "posix":
            await anyio.wait_readable(self._source.fileno())
            return self._source.readline()
        return await anyio.to_thread.run_sync(self._source.readline, abandon_on_cancel=True)


def _forget_typed(source: TextIO) -> None:
    """Drop what was typed before the question: it answers something that was not there yet."""
    if sys.platform != "win32":
        import termios

        termios.tcflush(source.fileno(), termios.TCIFLUSH)


def describe(request: ApprovalRequest) -> str:
    """The question as text: tool, reason, and the change or the arguments, with misleading characters visible."""
    if request.change is not None:
        details = request.change.diff()
    else:
        details = visible(json.dumps(thaw(request.arguments), indent=2, ensure_ascii=False))
    return f"\n{request.action.tool}: {request.target}\nreason: {request.reason}\n{details.rstrip()}"


def parse_answer(line: str, *, offered: bool) -> ApprovalReply:
    """``y`` or ``yes`` allows once; ``s`` and ``a`` where a rule was offered; all else denies, as feedback."""
    answer = line.strip()
    if not line.endswith("\n"):  # the input ended in the middle of the line
        return ApprovalReply(allowed=False)
    match answer.lower():
        case "y" | "yes":
            return ApprovalReply(allowed=True)
        case "s" if offered:
            return ApprovalReply(allowed=True, scope=Scope.SESSION)
        case "a" if offered:
            return ApprovalReply(allowed=True, scope=Scope.ALWAYS)
        case "" | "n" | "no":
            return ApprovalReply(allowed=False)
        case _:
            return ApprovalReply(allowed=False, feedback=f"The user denied this call: {answer}")
