"""The editor's open documents, mirrored from its notifications.

A document is a list of lines with their endings, so that an edit touches only the lines it is about. Invariant: the
lines, joined, are the text that the editor holds, and each but the last ends in one of the three line endings that
the protocol knows (``\\n``, ``\\r\\n``, ``\\r``). What the editor cannot mean is clamped as the protocol says.
"""

import logging
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import anyio
from lsprotocol import types

from agent_lsp.workspace import Document, lines_with_ends

logger = logging.getLogger(__name__)

LARGEST_COMPARED = 16 * 1024 * 1024
"""Bytes of a file above which only its size is compared with a document's, without reading the file."""

_CODECS = ("utf-8-sig", "utf-16", "cp1252", "latin-1")
_CODE_UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2)}
_LINE_END = re.compile(r"\r\n|\n|\r")
_SURROGATE = re.compile("[\ud800-\udfff]")  # a lone one has no encoding; U+FFFD takes as many code units


class EditorDocuments:
    """What the editor holds in memory, as it told us."""

    def __init__(self) -> None:
        self._changed = anyio.Event()
        self.position_encoding: str = types.PositionEncodingKind.Utf16
        self._by_uri: dict[str, _OpenDocument] = {}
        self.saves: dict[Path, int] = {}
        """How often the editor has saved each file."""

    def get(self, path: Path) -> Document | None:
        """The open document of a resolved path; the one opened last where an editor has several."""
        document = self._find(path)
        return None if document is None else document.snapshot()

    def uri(self, path: Path) -> str:
        """The URI of a resolved path: the editor's own spelling where the document is open."""
        document = self._find(path)
        return path.as_uri() if document is None else document.uri

    def _find(self, path: Path) -> "_OpenDocument | None":
        """The document of a path; of several, one with unsaved text, else the one opened last."""
        found = [document for document in reversed(self._by_uri.values()) if document.path == path]
        return next((each for each in found[1:] and found if each.is_unsaved()), found[0] if found else None)

    async def next_change(self) -> None:
        """Wait until some document was opened, changed, saved or closed."""
        await self._changed.wait()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def note_ours(self, path: Path, text: str) -> None:
        """A document has this text from us."""
        if (document := self._find(path)) is not None:
            document.ours = text

    def unsaved(self) -> tuple[tuple[Path, Document], ...]:
        """The documents with unsaved text, each path once."""
        snapshots = {
            document.path: document.snapshot() for document in self._by_uri.values() if document.path is not None
        }
        return tuple((path, document) for path, document in snapshots.items() if document.unsaved)

    def unsaved_ours(self) -> tuple[tuple[Path, str], ...]:
        """The documents that we changed and that are not saved since, with their texts."""
        return tuple(
            (document.path, document.text)
            for document in self._by_uri.values()
            if document.path is not None and document.ours is not None and document.is_unsaved()
        )

    def open(self, item: types.TextDocumentItem) -> None:
        """Take a document that the editor has opened."""
        self._by_uri.pop(item.uri, None)
        self._by_uri[item.uri] = _OpenDocument(item)
        self._note_change()

    def change(
        self,
        identifier: types.VersionedTextDocumentIdentifier,
        changes: Sequence[types.TextDocumentContentChangeEvent],
    ) -> None:
        """Apply the editor's changes, in order, each to the outcome of the one before."""
        document = self._by_uri.get(identifier.uri)
        if document is None:
            logger.warning("ignored a change of a document that is not open: %s", identifier.uri)
            return
        for change in changes:
            document.apply(change, self.position_encoding)
        document.version = identifier.version
        self._note_change()

    def text(self, uri: str) -> str | None:
        """The text of a document; None for one that is not open."""
        document = self._by_uri.get(uri)
        return None if document is None else document.text

    def path(self, uri: str) -> Path | None:
        """The path that a URI names, however it is spelled; None as for ``path_of``."""
        document = self._by_uri.get(uri)
        return path_of(uri) if document is None else document.path

    def version(self, path: Path) -> int | None:
        """The version of a file's document; None for one that is not open."""
        document = self._find(path)
        return None if document is None else document.version

    def is_unsaved(self, uri: str) -> bool:
        """Whether a document differs from its file; one that is not open does not."""
        document = self._by_uri.get(uri)
        return document is not None and document.is_unsaved()

    def save(self, uri: str) -> None:
        """Note that the editor has written the document to disk as it is now."""
        if (document := self._by_uri.get(uri)) is not None:
            document.saved, document.ours = document.text, None
            if document.path is not None:
                self.saves[document.path] = self.saves.get(document.path, 0) + 1
            self._note_change()

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._by_uri.pop(uri, None)
        self._note_change()


class _OpenDocument:
    def __init__(self, item: types.TextDocumentItem) -> None:
        self.uri = item.uri
        self.path = path_of(item.uri)
        self.version = item.version
        self._lines = all_lines(item.text)
        self._text: str | None = item.text
        self.ours: str | None = None
        self.saved = item.text if self.path is None or _is_on_disk(self.path, item.text) else None

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = "".join(self._lines)
        return self._text

    def is_unsaved(self) -> bool:
        """Whether the file on disk has another text; an editor that reads a changed file anew tells no save."""
        if self.text != self.saved and self.path is not None and _is_on_disk(self.path, self.text):
            self.saved = self.text
        return self.text != self.saved

    def snapshot(self) -> Document:
        unsaved = self.is_unsaved()
        typed = unsaved and (self.ours is None or not same_text(self, self.ours))
        return Document(text=self.text, version=self.version, unsaved=unsaved, typed=typed)

    def apply(self, change: types.TextDocumentContentChangeEvent, encoding: str) -> None:
        if isinstance(change, types.TextDocumentContentChangeWholeDocument):
            self._lines, self._text = all_lines(change.text), change.text
        else:
            replace(self._lines, change.range, change.text, encoding)
            self._text = None


def all_lines(text: str) -> list[str]:
    """The lines of a text with their endings; the last one has none and may be empty."""
    lines = lines_with_ends(text)
    if not lines or lines[-1].endswith(("\n", "\r")):
        lines.append("")
    return lines


def replace(lines: list[str], span: types.Range, text: str, encoding: str) -> None:
    """Replace a range of the lines by a text, in place; the positions count code units of the encoding."""
    first, start = _locate(lines, span.start, encoding)
    last, end = max((first, start), _locate(lines, span.end, encoding))
    head, tail = lines[first][:start], lines[last][end:]
    if not head and first > 0 and lines[first - 1].endswith("\r"):  # a \n that follows now belongs to that line's end
        first -= 1
        head = lines[first]
    replacement = all_lines(f"{head}{text}{tail}")
    if last + 1 < len(lines):
        replacement.pop()  # the empty piece after the ending of the last line
    lines[first : last + 1] = replacement


def _locate(lines: list[str], position: types.Position, encoding: str) -> tuple[int, int]:
    if position.line >= len(lines):
        return len(lines) - 1, len(lines[-1])
    if position.line < 0:
        return 0, 0
    return position.line, character_index(lines[position.line], max(position.character, 0), encoding)


def character_index(line: str, units: int, encoding: str) -> int:
    """The index into a line for a count of code units; a count inside a character is that character's start."""
    content = line.rstrip("\r\n")
    if content.isascii() or encoding not in _CODE_UNITS:
        return min(units, len(content))
    codec, width = _CODE_UNITS[encoding]
    before = _SURROGATE.sub("\ufffd", content).encode(codec)[: units * width]
    return len(before.decode(codec, "ignore"))


def code_units(text: str, encoding: str) -> int:
    """How many units of a position encoding a text takes."""
    codec, size = _CODE_UNITS.get(encoding, ("utf-32-le", 4))
    return len(text.encode(codec, "surrogatepass")) // size


def path_of(uri: str) -> Path | None:
    """The path of a ``file:`` URI, free of symbolic links; None for another scheme, another host, or no path at all."""
    name = file_name(uri)
    try:
        return None if name is None else real_path(name)
    except (OSError, ValueError):
        return None


def real_path(name: str | Path) -> Path:
    """A path free of symbolic links, as files are told apart by it."""
    return Path(os.path.realpath(name))


def file_name(uri: str, *, windows: bool = os.name == "nt") -> str | None:
    """What a ``file:`` URI names in the system's spelling, unresolved; None as for ``path_of``."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path, errors="surrogateescape")
    if parts.scheme != "file" or not path.startswith("/"):
        return None
    if parts.netloc not in ("", "localhost"):
        return f"//{parts.netloc}{path}" if windows else None
    has_drive = windows and path[2:3] == ":" and path[1:2].isalpha()
    return path[1:] if has_drive else path


def _is_on_disk(path: Path, text: str) -> bool:
    """Whether a file holds a text, in whatever encoding the editor may have read it; no file holds no text.

    Some editors read all line endings as one kind, and some drop a byte order mark: neither counts as a difference.
    Where it cannot be told the answer is no, so that what the editor holds counts.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe or a device may never end
            return False
        if status.st_size > LARGEST_COMPARED:
            return status.st_size == len(text.encode("utf-8", "surrogatepass"))
        content = path.read_bytes()
    except FileNotFoundError:
        return not text
    except OSError:
        return False
    return any(_reads_as(content, codec, text) for codec in _CODECS)


def _reads_as(content: bytes, codec: str, text: str) -> bool:
    try:
        return _same_line_ends(content.decode(codec)) == _same_line_ends(text)
    except ValueError:
        return False


def _same_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def same_text(document: "Document | _OpenDocument | None", text: str) -> bool:
    """Whether a document has a text, as far as editors keep it: some have one kind of line end, and one at the end."""
    if document is None:
        return False
    one, other = (_same_line_ends(each).removesuffix("\n") for each in (document.text, text))
    return one == other


def with_line_ends_of(model: str, text: str) -> str:
    """A text with the line end that another uses throughout; as it is where that uses several or none."""
    kinds = set(_LINE_END.findall(model))
    return _LINE_END.sub(kinds.pop(), text) if len(kinds) == 1 else text


def document_of(path: Path, text: str, version: int) -> Document:
    """A document that the editor holds and told nothing of."""
    unsaved = not _is_on_disk(path, text)
    return Document(text=text, version=version, unsaved=unsaved, typed=unsaved)
