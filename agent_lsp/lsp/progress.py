"""Work-done progress: what an editor shows while a job runs, with a button that cancels it.

Invariants: work never waits for the editor (some never answer ``create``); a progress that began ends exactly once;
reports are at most one each REPORT_INTERVAL, the latest wins; there is no percentage, because with one in ``begin``
VS Code shows neither the reports without one nor the end's message.
"""

import itertools
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from lsprotocol import types
from pygls.capabilities import get_capability

if TYPE_CHECKING:
    from agent_lsp.lsp.server import AgentServer

REPORT_INTERVAL = 0.1
"""Seconds between two reports of one progress."""

LIVE_INTERVAL = 1.0
"""Seconds after which a line that changes by itself is sent again."""

CREATE_LIMIT = 1.0
"""Seconds to wait for the editor's leave; a silent one is taken to agree."""

_numbers = itertools.count(1)


class Progress:
    """What a job says about itself. Both methods return at once."""

    def __init__(self) -> None:
        self._message: str | Callable[[], str] | None = None
        self.changed = anyio.Event()

    @property
    def message(self) -> str | None:
        """The line to show now."""
        return self._message() if callable(self._message) else self._message

    @property
    def is_live(self) -> bool:
        """Whether the line changes by itself."""
        return callable(self._message)

    def report(self, message: str | Callable[[], str]) -> None:
        """Show a line about what is being done now; a function gives a line that is asked again each second."""
        self._message = message
        self.changed.set()

    def finish(self, message: str) -> None:
        """Set the line that is shown when the work is over, that is, at the end of the ``async with`` block."""
        self._message = message


@asynccontextmanager
async def work_done_progress(
    server: "AgentServer",
    title: str,
    cancel: Callable[[], None],
    token: types.ProgressToken | None = None,
) -> AsyncIterator[Progress]:
    """Show a progress while the block runs; ``cancel`` is called when the user asks for it.

    ``token`` is the ``workDoneToken`` of a client's request; without it the progress is the server's own, which an
    editor that does not announce ``window.workDoneProgress`` is spared.
    """
    progress = Progress()
    if token is None and not get_capability(server.client_capabilities, "window.work_done_progress"):
        yield progress
        return
    display = _Display(server, progress, title, token)
    server.protocol.progress_cancels[display.token] = cancel
    job = server.start_job(display.run, f"progress {display.token}")
    try:
        yield progress
    finally:
        job.cancel()
        display.end()
        if server.protocol.progress_cancels.get(display.token) is cancel:  # a client may use a token twice
            del server.protocol.progress_cancels[display.token]


class _Display:
    """One progress in the editor."""

    def __init__(
        self, server: "AgentServer", progress: Progress, title: str, token: types.ProgressToken | None
    ) -> None:
        self.token = f"agent-lsp/{next(_numbers)}" if token is None else token
        self._server = server
        self._progress = progress
        self._title = title
        self._question: Future[None] | None = None if token is not None else self._create()
        self._began = False

    def _create(self) -> "Future[None]":
        create = types.WorkDoneProgressCreateParams(token=self.token)
        return self._server.window_work_done_progress_create(create)

    async def run(self) -> None:
        if not await self._may_begin():
            return
        self._begin()
        while True:
            await anyio.sleep(REPORT_INTERVAL)
            with anyio.move_on_after(LIVE_INTERVAL if self._progress.is_live else None):
                await self._progress.changed.wait()
            self._progress.changed = anyio.Event()
            self._send(types.WorkDoneProgressReport(message=self._progress.message, cancellable=True))

    def _begin(self) -> None:
        self._progress.changed = anyio.Event()
        self._send(types.WorkDoneProgressBegin(title=self._title, message=self._progress.message, cancellable=True))
        self._began = True

    def end(self) -> None:
        if self._began:
            self._send(types.WorkDoneProgressEnd(message=self._progress.message))
        if self._question is not None:
            self._question.cancel()  # without effect on one that was answered

    async def _may_begin(self) -> bool:
        """Wait for the editor's leave, but not long, and without withdrawing the question; only a refusal is a no."""
        if self._question is None:
            return True
        answered = anyio.Event()
        self._question.add_done_callback(lambda _: answered.set())
        with anyio.move_on_after(CREATE_LIMIT):
            await answered.wait()
        return not self._question.done() or self._question.exception() is None

    def _send(
        self, value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
    ) -> None:
        self._server.progress(types.ProgressParams(token=self.token, value=value))
