"""An editor without a screen: documents with versions, edits at the protocol's positions, saves, and their order.

Invariants: a document's text and the notifications about it change in one order; an edit that the server asks for is
made on the version that it is about, as a whole, or refused; positions are read strictly.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import anyio

from tests.support.jsonrpc_client import Client

Change: TypeAlias = tuple[int, int, str]
"""A start and an end in a text, and what stands between them afterwards."""

CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
_LINE_END = re.compile(r"\r\n|\n|\r")


def read(path: Path) -> str | None:
    """A file's text with its line ends; None where there is none."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None


def line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in _LINE_END.finditer(text))]


def position(text: str, offset: int, encoding: str) -> dict[str, int]:
    """The protocol's position of an offset."""
    codec, width = CODECS[encoding]
    starts = line_starts(text)
    line = bisect_right(starts, offset) - 1
    return {"line": line, "character": len(text[starts[line] : offset].encode(codec)) // width}


def offset(text: str, place: dict[str, int], encoding: str) -> int:
    """The offset of a position, which must lie in the text and not inside a character."""
    codec, width = CODECS[encoding]
    starts = line_starts(text)
    line = text[starts[place["line"]] :].encode(codec)
    return starts[place["line"]] + len(line[: place["character"] * width].decode(codec))


def applied(text: str, changes: Sequence[Change]) -> str:
    """A text after changes, each of which is about the outcome of the one before."""
    for start, end, new in changes:
        text = text[:start] + new + text[end:]
    return text


@dataclass
class Buffer:
    """An open document. ``on_disk`` is what the file held when it was last read or written here."""

    path: Path
    text: str
    on_disk: str | None
    version: int = 1

    @property
    def dirty(self) -> bool:
        return self.text != self.on_disk

    @property
    def identifier(self) -> dict[str, Any]:
        return {"uri": self.path.as_uri(), "version": self.version}


class Saw(Protocol):
    """Hears of each text that a path comes to have, in the editor or on disk."""

    def __call__(self, path: Path, text: str | None, *, on_disk: bool) -> None: ...


class SimulatedEditor:
    """Holds its documents however often the server is another.

    ``lag`` is for how many seconds changes are collected before they are sent, as Neovim does it; the version
    changes when they are. ``saves_edits`` says that what the server edits is saved at once.
    """

    def __init__(self, saw: Saw) -> None:
        self.buffers: dict[Path, Buffer] = {}
        self.encoding = "utf-16"
        self.lag = 0.0
        self.saves_edits = False
        self._saw = saw
        self._client: Client | None = None
        self._unsent: dict[Path, list[dict[str, Any]]] = {}

    async def connect(self, client: Client, encoding: str) -> None:
        """Go on with another server: open there what is open here."""
        self._client, self.encoding = client, encoding
        self._unsent.clear()
        for buffer in tuple(self.buffers.values()):
            await self._did_open(buffer)

    def view(self, path: Path) -> str | None:
        """What a user sees of a path: the document, else the file."""
        buffer = self.buffers.get(path)
        return read(path) if buffer is None else buffer.text

    # What users do

    async def open(self, path: Path) -> None:
        text = read(path)
        if text is not None and path not in self.buffers:
            buffer = self.buffers[path] = Buffer(path=path, text=text, on_disk=text)
            self._saw(path, text, on_disk=False)
            await self._did_open(buffer)

    async def change(self, path: Path, changes: Sequence[Change]) -> None:
        """Edit a document."""
        buffer = self.buffers[path]
        events = []
        for start, end, new in changes:
            span = {"start": self._position(buffer, start), "end": self._position(buffer, end)}
            events.append({"range": span, "text": new})
            buffer.text = applied(buffer.text, [(start, end, new)])
        self._saw(path, buffer.text, on_disk=False)
        self._unsent.setdefault(path, []).extend(events)
        if not self.lag:
            await self.flush(path)

    async def flush(self, path: Path) -> None:
        """Send what is collected."""
        if path in self.buffers and (events := self._unsent.pop(path, None)):
            self.buffers[path].version += 1
            params = {"textDocument": self.buffers[path].identifier, "contentChanges": events}
            await self._tell("textDocument/didChange", params)

    async def flush_all(self) -> None:
        for path in tuple(self._unsent):
            await self.flush(path)

    async def save(self, path: Path) -> None:
        """Write a document over its file, whatever that holds by now."""
        buffer = self.buffers[path]
        self._saw(path, read(path), on_disk=False)
        write(path, buffer.text)
        buffer.on_disk = buffer.text
        self._saw(path, buffer.text, on_disk=True)
        await self.flush(path)
        await self._tell("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})

    async def close(self, path: Path) -> None:
        """Close a document and drop what is not saved of it."""
        self._unsent.pop(path, None)
        del self.buffers[path]
        await self._tell("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})

    async def read_anew(self, path: Path) -> None:
        """Take over what another program wrote to a file whose document has no changes of its own."""
        buffer, text = self.buffers.get(path), read(path)
        if buffer is not None and not buffer.dirty and text is not None and text != buffer.text:
            buffer.on_disk = text
            await self.change(path, [(0, len(buffer.text), text)])

    # What the server asks for

    async def apply_edit(self, params: Any) -> Any:
        """``workspace/applyEdit``"""
        for change in params["edit"]["documentChanges"]:
            if not await self._edit(change["textDocument"], change["edits"], save=self.saves_edits):
                return {"applied": False, "failureReason": "the document has changed"}
        return {"applied": True}

    async def write_document(self, params: Any) -> Any:
        """``agent/writeDocument``"""
        identifier = {"uri": params["uri"], "version": params["version"]}
        if await self._edit(identifier, params["edits"], save=params["save"]):
            return {"applied": True}
        return {"applied": False, "reason": "the document has changed"}

    async def read_document(self, params: Any) -> Any:
        """``agent/readDocument``"""
        buffer = next((each for each in self.buffers.values() if each.path.as_uri() == params["uri"]), None)
        return None if buffer is None else {"text": buffer.text, "version": buffer.version}

    async def _edit(self, identifier: dict[str, Any], edits: list[Any], *, save: bool) -> bool:
        buffer = next((each for each in self.buffers.values() if each.identifier == identifier), None)
        if buffer is None or buffer.path in self._unsent:
            return False
        changes = [
            (*(offset(buffer.text, edit["range"][end], self.encoding) for end in ("start", "end")), edit["newText"])
            for edit in edits
        ]
        ordered = sorted(changes, reverse=True)
        assert all(later[0] >= earlier[1] for later, earlier in pairwise(ordered)), changes
        await self.change(buffer.path, ordered)
        if save and buffer.path in self.buffers:
            await self.save(buffer.path)
        return True

    # Sending

    def _position(self, buffer: Buffer, place: int) -> dict[str, int]:
        return position(buffer.text, place, self.encoding)

    async def _did_open(self, buffer: Buffer) -> None:
        item = {**buffer.identifier, "languageId": "text", "text": buffer.text}
        await self._tell("textDocument/didOpen", {"textDocument": item})

    async def _tell(self, method: str, params: Any) -> None:
        if self._client is not None:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the server is gone
                await self._client.notify(method, params)


def write(path: Path, text: str) -> None:
    """Replace a file as a whole."""
    temporary = path.parent.parent / f"{path.name}.new"
    temporary.write_bytes(text.encode())
    temporary.replace(path)
