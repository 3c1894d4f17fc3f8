"""``agent-lsp run`` and ``agent-lsp demo``: one prompt, the answer on stdout, everything else on stderr (A66)."""

import argparse
import gc
import json
import signal
import sys
from typing import TextIO

import anyio
from anyio.abc import TaskStatus

from agent_lsp.agent.events import AgentEvent, TurnFinished, event_json, to_json
from agent_lsp.cli.exit_codes import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK
from agent_lsp.cli.lines import one_line
from agent_lsp.cli.terminal import LifecycleLog, TerminalApprover
from agent_lsp.errors import AgentLspError, ConfigurationError
from agent_lsp.session.assemble import SessionOptions, open_session
from agent_lsp.session.session import Session

_DRAIN_SECONDS = 5.0  # for what hooks still do when the answer is there


def run_prompt(options: argparse.Namespace) -> int:
    """Run one prompt through a session; returns the exit code."""
    prompt = options.prompt if options.prompt != "-" else sys.stdin.read() if sys.stdin else ""
    if not prompt.strip():
        raise ConfigurationError("The prompt is empty; give --prompt TEXT, or --prompt - and text on stdin")
    session = open_session(
        SessionOptions(
            root=options.cwd,
            resume=_resumed(options),
            approver=TerminalApprover(sys.stdin, sys.stderr),
            level=options.chapter,
            model_name=options.model,
            mode=options.mode,
            max_turns=options.max_turns,
            trusted=options.trust,
            validate=not options.no_validate,
        )
    )
    for problem in session.problems:
        print(f"[Settings] {one_line(problem)}", file=sys.stderr)
    if session.history.problem:
        print(f"[Session] its end was damaged and is left out: {one_line(session.history.problem)}", file=sys.stderr)
    session.subscribe(LifecycleLog(sys.stderr))
    lines: _JsonLines | None = None
    if options.output == "stream-json":
        session.subscribe(lines := _JsonLines(session, sys.stdout))

    session.connect()
    gc.freeze()
    gc.enable()
    finished, killed_by = anyio.run(_run_once, session, prompt)
    if lines is not None and lines.broken is not None:
        raise lines.broken
    if options.output == "json":
        body = to_json(finished)
        _print_json(sys.stdout, {"session_id": session.id, **(body if isinstance(body, dict) else {})})
    elif options.output == "text" and finished.error is None and finished.stop_reason != "cancelled":
        print(finished.text, flush=True)
    if killed_by == signal.SIGINT:
        raise KeyboardInterrupt
    if killed_by is not None:
        return 128 + killed_by
    if finished.error is not None:
        raise AgentLspError(finished.error)
    if finished.stop_reason == "validation_failed":
        return EXIT_FAILED
    return EXIT_INTERRUPTED if finished.stop_reason == "cancelled" else EXIT_OK


def _resumed(options: argparse.Namespace) -> str | None:
    """The session to go on with. Raises ConfigurationError for one that is not there."""
    if options.session is None and not options.continue_:
        return None
    from agent_lsp.session.stored import stored_sessions

    return stored_sessions(options.cwd).find(options.session)


async def _run_once(session: Session, prompt: str) -> tuple[TurnFinished, int | None]:
    """The finished turn, and the signal that ended it early. A process that is told to end takes its children along.

    The first signal cancels the turn and leaves its hooks the usual time; the next, or one behind the turn, does not.
    """
    killed_by: int | None = None
    finished = TurnFinished(stop_reason="cancelled")

    async def heed_signals(*, task_status: TaskStatus[None]) -> None:
        nonlocal killed_by
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            task_status.started()
            async for number in signals:
                told_before, killed_by = killed_by is not None, killed_by or number
                if not session.cancel() or told_before:
                    work.cancel()
                    session.abandon_observers()

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as work:
            if sys.platform != "win32":
                await group.start(heed_signals)
            async with session.opened(drain=_DRAIN_SECONDS):
                finished = await session.run(prompt)
        group.cancel_scope.cancel()
    return finished, killed_by


def run_demo(options: argparse.Namespace) -> int:
    """Run the demo; returns the exit code."""
    from agent_lsp.session import demo

    gc.enable()
    approver = TerminalApprover(sys.stdin, sys.stderr) if options.interactive else None
    report = anyio.run(lambda: demo.run_demo(LifecycleLog(sys.stderr), approver=approver, keep=options.keep))
    print(report.text)
    return EXIT_OK if report.fixed else EXIT_FAILED


def _print_json(stream: TextIO, value: object) -> None:
    print(json.dumps(value, ensure_ascii=False), file=stream, flush=True)


class _JsonLines:
    """A subscriber that prints each event, until nobody reads any more."""

    def __init__(self, session: Session, stream: TextIO) -> None:
        self._session = session
        self._stream = stream
        self.broken: OSError | None = None

    def __call__(self, event: AgentEvent) -> None:
        if self.broken is None:
            try:
                _print_json(self._stream, {"session_id": self._session.id, "event": event_json(event)})
            except OSError as error:
                self.broken = error
                self._session.cancel()
