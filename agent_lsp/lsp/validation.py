"""Validation as an editor sees it: a state, diagnostics, a run by hand, and help where it ended red."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import anyio
from lsprotocol import types

from agent_lsp.lsp.diagnostics import ValidationDiagnostics
from agent_lsp.lsp.progress import work_done_progress
from agent_lsp.lsp.server import AgentServer

if TYPE_CHECKING:
    from agent_lsp.agent.events import ValidationReport
    from agent_lsp.lsp.prompts import Conversations
    from agent_lsp.session.session import Session

State: TypeAlias = Literal["idle", "running", "green", "red", "refused", "stale"]

SHOW_OUTPUT, RUN_AGAIN, ASK_TO_FIX = "Show output", "Run again", "Ask the agent to fix"


class Prompts(Protocol):
    """What of the front is needed here."""

    root: Path

    async def talk(self) -> "Conversations":
        """The conversations."""
        ...

    async def run(self, arguments: object) -> dict[str, str]:
        """Start a prompt in the background."""
        ...

    def warn(self, message: str) -> None:
        """Show a warning."""
        ...


class ValidationFront:
    """The validators' side of the front; ``state`` is what the status says."""

    def __init__(self, server: AgentServer, prompts: Prompts, diagnostics: ValidationDiagnostics) -> None:
        self.state: State = "idle"
        self._server = server
        self._prompts = prompts
        self._diagnostics = diagnostics

    def is_about(self, path: Path) -> bool:
        """Whether a change of a file would outdate anything; asked at every keystroke."""
        return self.state in ("green", "red") or self._diagnostics.has_fresh(path)

    def outdate(self, path: Path) -> None:
        """What validators said of the workspace before this file changed may not be true any more."""
        self._diagnostics.age(path)
        if self.state in ("green", "red") and path.is_relative_to(self._prompts.root):
            self.state = "stale"

    def show(self, report: "ValidationReport") -> None:
        """Show what a round of validators came to."""
        self.state = "idle" if report.status == "none" else report.status
        self._diagnostics.show(self._prompts.root, report)
        for note in report.notes:
            self._server.window_log_message(types.LogMessageParams(type=types.MessageType.Warning, message=note))
        if report.status == "refused":
            self._prompts.warn(f"Validation was not run: {'; '.join(report.notes)}")

    def start(self, session: "Session") -> bool:
        """Run all validators of a session's workspace in the background; not while a turn runs."""
        if session.running:
            return False
        self._server.start_job(partial(self._run, session), "validation")
        return True

    async def _run(self, session: "Session") -> None:
        from agent_lsp.lsp.wire import progress_reporter

        scope = anyio.CancelScope()
        report: ValidationReport | None = None
        async with work_done_progress(self._server, "Agent: validation", scope.cancel) as progress:
            unsubscribe = session.subscribe(progress_reporter(progress))
            try:
                with scope:
                    report = await session.validate()
            finally:
                unsubscribe()
            progress.finish("cancelled" if report is None else report.status)
        if report is None:
            return
        if report.status == "none":  # nothing was to be run, and so there was no round that shows it
            self.show(report)
        if report.status == "red":
            await self.offer_help(session, report)

    async def offer_help(self, session: "Session", report: "ValidationReport") -> None:
        """Say that validation ended red, and what a human can do about it."""
        talk = await self._prompts.talk()
        message = f"Validation failed: {', '.join(report.failing)} [{session.id[:8]}]"
        title = await talk.screen.offer(message, (SHOW_OUTPUT, RUN_AGAIN, ASK_TO_FIX))
        if title == SHOW_OUTPUT:
            await talk.screen.show_text("validation.log", talk.validation_output(session))
        elif title == RUN_AGAIN:
            self.start(session)
        elif title == ASK_TO_FIX:
            prompt = f"The validators {', '.join(report.failing)} fail. Find out why and fix it."
            await self._prompts.run({"sessionId": session.id, "prompt": prompt})
