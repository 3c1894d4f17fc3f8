"""The wire: the process's standard streams, frames in, frames out.

Invariants: nothing but frames reaches the client, and no child can read what the client sent; a frame larger than
MAX_FRAME is never stored; neither a silent client nor one that does not read blocks the event loop.
"""

import os
import re
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import anyio
from anyio import to_thread

MAX_FRAME = 64 * 1024 * 1024
"""Bytes of content in one incoming frame; a larger one is skipped and reported."""

MAX_UNSENT = 256 * 1024 * 1024
"""Bytes waiting for a client that does not read, after which it counts as gone."""

HIGH_WATER = 1024 * 1024
"""Bytes waiting, above which ``FrameWriter.drain`` makes its callers wait."""

_CHUNK = 256 * 1024
_LONGEST_HEADER = 8 * 1024
_LONGEST_LINE = 256
_HEADER = re.compile(
    rb"content-length[ \t]*:[ \t]*(\d{1,99})[ \t]*\r?\n(?:(?:(?!content-length)[^\r\n])+\r?\n)*\r?\n", re.IGNORECASE
)


def claim_standard_streams() -> tuple[int, int]:
    """Move the client's streams to private descriptors, which no child inherits: (requests, answers).

    Afterwards descriptor 0 reads nothing and descriptor 1 is the standard error, for ``print`` and for children.
    """
    sys.stdout.flush()
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


@dataclass(frozen=True, slots=True)
class OversizedFrame:
    """A frame that was announced with more than MAX_FRAME bytes; its content is skipped."""

    length: int


class FrameParser:
    """Cuts a byte stream into the contents of its frames, whatever the sizes of the pieces it comes in.

    Whatever is not a frame is skipped up to the next ``Content-Length`` line: other headers, garbage, the rest of a
    frame whose length was too small, and the content of an oversized frame. Valid JSON cannot contain such a line, so
    a frame whose length was too large ends there as well.
    """

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._buffer = bytearray()
        self._awaited: int | None = None
        self._searched = 0

    def feed(self, data: bytes) -> Iterator[bytes | OversizedFrame]:
        """Take the next piece of the stream and give the frames that it completes."""
        self._buffer += data
        while (frame := self._next()) is not None:
            yield frame

    def _next(self) -> bytes | OversizedFrame | None:
        if self._awaited is None:
            header = _HEADER.search(self._buffer)
            if header is None:
                del self._buffer[:-_LONGEST_HEADER]
                return None
            length = int(header[1])
            del self._buffer[: header.end()]
            if length > self._max_frame:
                return OversizedFrame(length)
            self._awaited, self._searched = length, 0
        end = self._end(self._awaited)
        if end is None:
            return None
        content = bytes(self._buffer[:end])
        del self._buffer[: max(end - _LONGEST_LINE, 0)]  # a length too large may have cut the next header's line
        self._awaited = None
        return content

    def _end(self, awaited: int) -> int | None:
        """Where the content ends, or None if that is still to come."""
        begin, self._searched = max(self._searched - _LONGEST_LINE, 0), len(self._buffer)
        if self._buffer.find(b"\n", begin) >= 0:  # spares most messages the slower search
            header = _HEADER.search(self._buffer, begin, awaited + _LONGEST_LINE)
            if header is not None and header.start() < awaited:
                return header.start()
        return awaited if len(self._buffer) >= awaited else None


async def read_chunks(descriptor: int) -> AsyncIterator[bytes]:
    """What arrives at a descriptor until its end; a lost connection is an end like any other."""
    limiter = anyio.CapacityLimiter(1)
    while chunk := await _read(descriptor, limiter):
        yield chunk


async def _read(descriptor: int, limiter: anyio.CapacityLimiter) -> bytes:
    while True:
        try:
            await anyio.wait_readable(descriptor)
        except OSError:  # it cannot be polled: a regular file, the null device, a pipe on Windows
            return await to_thread.run_sync(os.read, descriptor, _CHUNK, abandon_on_cancel=True, limiter=limiter)
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            continue
        except ConnectionError:
            return b""


class FrameWriter:
    """Sends frames in order. ``write`` never waits; ``run`` does the sending, as one task of the server."""

    def __init__(self, descriptor: int, max_unsent: int = MAX_UNSENT) -> None:
        self._descriptor = descriptor
        self._max_unsent = max_unsent
        self._frames: list[bytes] = []
        self._unsent = 0
        self._closed = False
        self._queued = anyio.Event()
        self._sent = anyio.Event()
        self._until_overflow = anyio.CancelScope()
        self._limiter = anyio.CapacityLimiter(1)
        mode = os.fstat(descriptor).st_mode
        self._pollable = sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
        if self._pollable:
            os.set_blocking(descriptor, False)

    def write(self, data: bytes) -> None:
        """Queue one frame with this content; without effect once the client is gone."""
        if self._closed:
            return
        frame = b"Content-Length: %d\r\n\r\n%b" % (len(data), data)
        self._frames.append(frame)
        self._unsent += len(frame)
        self._queued.set()
        if self._unsent > self._max_unsent:
            self._until_overflow.cancel()
            self.close()

    def close(self) -> None:
        """Take no further frames and let nobody wait for the sending of the others."""
        self._closed = True
        self._frames.clear()
        self._sent.set()

    async def drain(self, limit: int = HIGH_WATER) -> None:
        """Wait until the client has read all but ``limit`` bytes; for those who write much, and, with 0, at the end."""
        while self._unsent > limit and not self._closed:
            await self._sent.wait()

    async def run(self) -> None:
        """Send what is queued, for ever; raises OSError when the client is gone or does not read."""
        try:
            with self._until_overflow:
                await self._send_queued()
            raise BrokenPipeError(f"the client does not read: {self._unsent} bytes wait for it")
        finally:
            self.close()

    async def _send_queued(self) -> None:
        while True:
            await self._queued.wait()
            self._queued = anyio.Event()
            frames, self._frames = self._frames, []
            rest = memoryview(b"".join(frames))
            while rest:
                written = await self._write_some(rest)
                rest = rest[written:]
                self._unsent -= written
                self._sent.set()
                self._sent = anyio.Event()

    async def _write_some(self, data: memoryview) -> int:
        if not self._pollable:
            return await to_thread.run_sync(
                os.write, self._descriptor, data, abandon_on_cancel=True, limiter=self._limiter
            )
        while True:
            try:
                return os.write(self._descriptor, data)
            except BlockingIOError:
                await anyio.wait_writable(self._descriptor)
