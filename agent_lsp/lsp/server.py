"""The server as an object, and the process that it lives in.

Invariants: reader, writer, signals, the watch over the editor's process and every job run under one root task group;
whatever ends the server ends all of them; the process is gone END_LIMIT seconds after that, come what may.
"""

import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidRequest
from pygls.lsp.server import LanguageServer

from agent_lsp.lsp.documents import EditorDocuments
from agent_lsp.lsp.jobs import Job, Jobs
from agent_lsp.lsp.protocol import SHUTDOWN_LIMIT, AgentProtocol
from agent_lsp.lsp.rpc import Stage
from agent_lsp.lsp.transport import (
    MAX_FRAME,
    FrameParser,
    FrameWriter,
    OversizedFrame,
    claim_standard_streams,
    read_chunks,
)

if TYPE_CHECKING:
    from pygls.server import ServerErrors

logger = logging.getLogger(__name__)

T = TypeVar("T")

END_LIMIT = 1.9
"""Seconds after which a process that should have ended is ended, whatever still runs in it."""

FLUSH_LIMIT = 0.2
"""Seconds for the last answers to be read."""

WATCH_INTERVAL = 1.0
"""Seconds between two looks at the editor's process."""


class AgentServer(LanguageServer):
    """A language server whose work is jobs and whose documents are mirrored as the protocol says."""

    protocol: AgentProtocol

    def __init__(self, name: str, version: str) -> None:
        super().__init__(name, version, protocol_cls=AgentProtocol)
        self.documents = EditorDocuments()
        self.jobs = Jobs()
        self.begun = anyio.Event()
        self.stopped = anyio.Event()
        self.exit_code = 0
        self.offers_code_lens = False
        self._end = threading.Event()

    def start_job(self, function: Callable[[], Awaitable[T]], name: str) -> Job[T]:
        """Start work that outlives the message that asked for it."""
        return self.jobs.start(function, name)

    def begin(self, capabilities: types.ServerCapabilities) -> None:
        """Take note of what was agreed on in ``initialize``."""
        encoding = types.PositionEncodingKind(capabilities.position_encoding or types.PositionEncodingKind.Utf16)
        self.documents.position_encoding = encoding.value
        self.begun.set()
        if (
            not gc.isenabled()
        ):  # the entry point may switch it off: imports make only what stays, and scanning it is slow
            gc.freeze()
            gc.enable()

    def stop(self, exit_code: int) -> None:
        """End the server and its process; the first reason's exit code counts."""
        if not self.stopped.is_set():
            self.exit_code = exit_code
            self.stopped.set()
            self._end.set()

    def client_left(self) -> None:
        """End the server because the client has gone, rightly or not: after ``shutdown`` it may."""
        self.stop(0 if self.protocol.stage is Stage.SHUT_DOWN else 1)

    def end_process(self) -> None:
        """Wait, in a thread, for ``stop``, and end the process if it does not end by itself."""
        self._end.wait()
        time.sleep(END_LIMIT)
        os._exit(self.exit_code)

    def report_server_error(self, error: Exception, source: "ServerErrors") -> None:
        """Log an error of the protocol; pygls would show it to the user."""
        logger.error("%s: %s", source.__name__, error)


def run(server: AgentServer) -> int:
    """Serve the client at the standard streams until it leaves: the exit code for the process."""
    requests, answers = claim_standard_streams()
    threading.Thread(target=server.end_process, name="end of process", daemon=True).start()
    return anyio.run(serve, server, requests, answers)


async def serve(server: AgentServer, requests: int, answers: int) -> int:
    """Serve one client at two descriptors until it leaves or a signal comes: the exit code for the process."""
    logging.getLogger("pygls").setLevel(logging.WARNING)  # below that it logs whole messages
    writer = FrameWriter(answers)
    server.protocol.set_writer(writer)
    async with anyio.create_task_group() as root:
        server.jobs.attach(root)
        for task in (partial(_write, writer), partial(_read, requests), _heed_signals, _watch_client):
            root.start_soon(task, server)
        await server.stopped.wait()
        await server.jobs.end(SHUTDOWN_LIMIT)
        with anyio.move_on_after(FLUSH_LIMIT):
            await writer.drain(0)
        root.cancel_scope.cancel()
    return server.exit_code


async def _read(requests: int, server: AgentServer) -> None:
    parser = FrameParser()
    try:
        async for chunk in read_chunks(requests):
            for frame in parser.feed(chunk):
                if isinstance(frame, OversizedFrame):
                    server.protocol.refuse(_too_large(frame), None)
                else:
                    await server.protocol.receive(frame)
    except OSError as error:
        logger.info("the client cannot be read: %s", error)
    server.client_left()


def _too_large(frame: OversizedFrame) -> JsonRpcInvalidRequest:
    return JsonRpcInvalidRequest(f"Invalid request: {frame.length} bytes in one message; {MAX_FRAME} are allowed")


async def _write(writer: FrameWriter, server: AgentServer) -> None:
    try:
        await writer.run()
    except OSError as error:
        logger.info("the client cannot be written to: %s", error)
        server.client_left()


async def _heed_signals(server: AgentServer) -> None:
    if sys.platform == "win32":
        return
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            server.stop(128 + number)


async def _watch_client(server: AgentServer) -> None:
    """End the server when the editor's process has gone; one that is not visible from here is not watched (F62)."""
    await server.begun.wait()
    process_id = server.process_id
    if process_id is None or not _is_running(process_id):
        return
    while _is_running(process_id):  # noqa: ASYNC110 (no event tells the end of a process that is not a child)
        await anyio.sleep(WATCH_INTERVAL)
    server.client_left()


def _is_running(process_id: int) -> bool:
    if sys.platform == "win32" or process_id <= 0:
        return False
    try:
        os.kill(process_id, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    try:  # a process that has ended and that nobody has collected yet, as in a container without an init, is no editor
        state = Path(f"/proc/{process_id}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return True  # there is no such table on this system
    return state not in (b"Z", b"X")
