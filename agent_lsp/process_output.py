"""A program's output while it runs: what of it is kept, and how it is read until the program has ended.

Invariant: however much comes, no more than a bound is kept, and nobody waits for a pipe that somebody else holds.
"""

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Protocol, Self

import anyio

from agent_lsp.terminal_text import LiveText, clean_terminal_text, cut_middle

DRAIN_SECONDS = 0.25  # how long output may still come after the program's own end
POLL_SECONDS = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a stream carried: all of it in ``head``, or, where ``omitted`` bytes between were dropped, both ends."""

    head: bytes = b""
    tail: bytes = b""
    omitted: int = 0

    def text(self) -> str:
        """The text as it came, invalid bytes replaced, a note in the place of what was dropped."""
        return self._joined(lambda text: text)

    def readable(self, limit: int) -> str:
        """The text as a person would have seen it in a terminal, with at most about ``limit`` characters (F41)."""
        return cut_middle(self._joined(clean_terminal_text), limit)

    def _joined(self, convert: Callable[[str], str]) -> str:
        head = convert(self.head.decode(errors="replace"))
        if not self.omitted:
            return head
        return f"{head}\n[… {self.omitted:,} bytes not kept …]\n{convert(self.tail.decode(errors='replace'))}"


class Capture:
    """Keeps the first and the last half of a limit, however much comes, and passes all of it on as it comes."""

    def __init__(self, limit: int, on_output: Callable[[str], None] | None = None) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._on_output = on_output
        self._live = LiveText()

    def add(self, chunk: bytes, *, final: bool = False) -> None:
        self._total += len(chunk)
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]
        if self._on_output is not None and (text := self._live.feed(chunk, final=final)):
            self._on_output(text)

    def output(self) -> Output:
        head, tail = bytes(self._head), bytes(self._tail[-self._half :])
        omitted = self._total - len(head) - len(tail)
        return Output(head=head, tail=tail, omitted=omitted) if omitted else Output(head=head + tail)


class Watch(Protocol):
    """Reads a program's output into captures while its block runs."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_error: object) -> None: ...

    async def until_end(self) -> None:
        """Wait until the program itself has ended."""
        ...

    async def until_closed(self) -> bool:
        """Wait, but not long, until nobody holds the output any more; returns whether that is so."""
        ...


def watch(process: "subprocess.Popen[bytes]", stdout: Capture, stderr: Capture) -> Watch:
    """The way that the running loop allows: the one on Windows has no readers."""
    has_readers = type(asyncio.get_running_loop()).add_reader is not asyncio.AbstractEventLoop.add_reader
    return (_LoopWatch if has_readers else ThreadWatch)(process, stdout, stderr)


class _LoopWatch:
    """Reads a program's output and notices its end by callbacks of the loop.

    Half the price of asyncio's own pipes, tasks and child watcher, and a hook runs around every tool call (P6).
    """

    def __init__(self, process: "subprocess.Popen[bytes]", stdout: "Capture", stderr: "Capture") -> None:
        self._process = process
        self._captures = {process.stdout: stdout, process.stderr: stderr}
        self._open = set(filter(None, self._captures))
        self._ended = anyio.Event()
        self._closed = anyio.Event()
        self._pidfd = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Self:
        for stream in self._open:
            self._loop.add_reader(stream, self._read, stream)
        if self._pidfd is not None:
            self._loop.add_reader(self._pidfd, self._note_end)
        return self

    def __exit__(self, *_error: object) -> None:
        for stream in tuple(self._open):
            self._close(stream)
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)

    async def until_end(self) -> None:
        """Wait until the program itself has ended."""
        if self._pidfd is not None:
            await self._ended.wait()
        while self._process.poll() is None:  # noqa: ASYNC110 (where a process has no descriptor)
            await anyio.sleep(POLL_SECONDS)

    async def until_closed(self) -> bool:
        """Wait, but not long, until nobody holds the output any more; returns whether that is so."""
        if self._open:
            with anyio.move_on_after(DRAIN_SECONDS):
                await self._closed.wait()
        return not self._open

    def _note_end(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
        self._ended.set()

    def _read(self, stream: IO[bytes]) -> None:
        chunk = os.read(stream.fileno(), 65536)
        self._captures[stream].add(chunk, final=not chunk)
        if not chunk:
            self._close(stream)

    def _close(self, stream: IO[bytes]) -> None:
        self._loop.remove_reader(stream)
        stream.close()
        self._open.discard(stream)
        if not self._open:
            self._closed.set()
            if self._process.poll() is not None:  # it mostly has ended by then, and that spares a round of the loop
                self._ended.set()


class ThreadWatch:
    """The same with a thread for each pipe and one for the end, which live as long as their pipe or process."""

    def __init__(self, process: "subprocess.Popen[bytes]", stdout: Capture, stderr: Capture) -> None:
        self._process = process
        self._captures = [(process.stdout, stdout), (process.stderr, stderr)]
        self._open = sum(stream is not None for stream, _capture in self._captures)
        self._ended = anyio.Event()
        self._closed = anyio.Event()
        self._loop = asyncio.get_running_loop()
        self._left = False

    def __enter__(self) -> Self:
        for stream, capture in self._captures:
            if stream is not None:
                threading.Thread(target=self._pump, args=(stream, capture), daemon=True).start()
        threading.Thread(target=self._wait, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._left = True  # what still comes is for nobody; closing a pipe under a reading thread would block

    async def until_end(self) -> None:
        await self._ended.wait()

    async def until_closed(self) -> bool:
        if self._open:
            with anyio.move_on_after(DRAIN_SECONDS):
                await self._closed.wait()
        return not self._open

    def _pump(self, stream: IO[bytes], capture: Capture) -> None:
        with stream:
            while chunk := stream.read(65536):
                self._tell(self._add, capture, chunk)
        self._tell(self._close_one, capture)

    def _wait(self) -> None:
        self._process.wait()
        self._tell(self._ended.set)

    def _tell(self, function: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(function, *arguments)

    def _add(self, capture: Capture, chunk: bytes) -> None:
        if not self._left:
            capture.add(chunk)

    def _close_one(self, capture: Capture) -> None:
        if not self._left:
            capture.add(b"", final=True)
        self._open -= 1
        if not self._open:
            self._closed.set()
