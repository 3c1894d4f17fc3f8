"""Server-sent events: the data of each event, from bytes that may be split anywhere.

Invariant: how the bytes are split never changes what comes out. Comments and all fields but ``data`` are dropped.
"""

import re
from collections.abc import Iterator

_LINE_END = re.compile(rb"\r\n|\n|\r")


class EventDecoder:
    """Decodes one stream. Time is linear in its bytes, however long a line is."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._after_return = False

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The data of the events that this chunk completes."""
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        self._after_return = chunk.endswith(b"\r") or self._after_return
        start, *others = _LINE_END.split(chunk)
        self._line.append(start)
        for following in others:
            yield from self._end_line()
            self._line.append(following)

    def finish(self) -> Iterator[str]:
        """The data of a last event that the server left without its blank line."""
        yield from self._end_line()
        yield from self._end_line()

    def _end_line(self) -> Iterator[str]:
        line = b"".join(self._line)
        self._line.clear()
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif not line and self._data:
            yield b"\n".join(self._data).decode(errors="replace")
            self._data.clear()
