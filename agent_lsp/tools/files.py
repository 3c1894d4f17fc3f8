"""Files as text without loss, and their atomic, durable replacement.

Invariant: decoding and encoding an unchanged text gives the same bytes (F30); what cannot be decoded so is refused.
A write either leaves the old file or the new one, never follows a link that appeared since the path was resolved
(F23), and happens only if the content is still the one that the change was made from (F33).
"""

import codecs
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio.to_thread

from agent_lsp.approvals import content_digest
from agent_lsp.errors import ToolError
from agent_lsp.tools.base import ToolContext
from agent_lsp.tools.in_place import TornFileError, overwrite
from agent_lsp.workspace import Document, Documents, NoDocuments, ResolvedPath, Workspace, Written

MAX_FILE_BYTES = 256 * 1024 * 1024
LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
LINE_END = re.compile(r"\r\n|\n|\r")
Lines: TypeAlias = list[tuple[str, str]]

_NO_EDITOR = NoDocuments()
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LEGACY_CODECS = ("cp1252", "latin-1")  # the second takes every byte
_NOT_IN_LEGACY_TEXT = re.compile(rb"[\x00-\x06\x0e-\x19\x1c-\x1f\x7f]")
_DIRECTORY_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A file's bytes and the text they stand for; ``mark`` is the byte order mark, which the text does not hold.

    ``document`` is the editor's, where one is open; of one with unsaved text, this is that text.
    """

    content: bytes
    text: str
    codec: str
    mark: bytes = b""
    document: Document | None = None

    @property
    def digest(self) -> str:
        return content_digest(self.content)

    def encode(self, text: str) -> bytes:
        """Other text in this file's encoding. Raises UnicodeEncodeError."""
        return self.mark + text.encode(self.codec)


NEW_FILE = TextFile(content=b"", text="", codec="utf-8")


def decode(content: bytes) -> TextFile:
    """Decode by byte order mark, as UTF-8, or as an 8-bit encoding. Raises ValueError for binary content."""
    for mark, codec in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return _decode_as(content, codec, mark)
    with suppress(UnicodeDecodeError):
        return _decode_as(content, "utf-8")
    if _NOT_IN_LEGACY_TEXT.search(content):
        raise ValueError("control characters in text that is not Unicode")
    with suppress(UnicodeDecodeError):
        return _decode_as(content, _LEGACY_CODECS[0])
    return _decode_as(content, _LEGACY_CODECS[1])


def _decode_as(content: bytes, codec: str, mark: bytes = b"") -> TextFile:
    text = content[len(mark) :].decode(codec)
    if "\0" in text:
        raise ValueError("NUL characters")
    return TextFile(content=content, text=text, codec=codec, mark=mark)


def resolve_inside(workspace: Workspace, spelling: str) -> ResolvedPath:
    """Resolve a path that a tool is about to touch; the policy has judged it before, this is the second lock."""
    path = workspace.resolve(spelling)
    if not path.inside:
        raise ToolError("outside_workspace", f"Path is outside the workspace: {path.display}")
    return path


def status_of(path: ResolvedPath) -> os.stat_result | None:
    """What is at a path; None where there is nothing. Raises ToolError for what cannot be told, such as a long name."""
    try:
        return path.path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ToolError("unreadable_file", f"{path.display} cannot be read: {error.strerror}") from error


async def load(path: ResolvedPath) -> TextFile | None:
    """Read and decode a file; None where there is none. Raises ToolError for what is not readable text."""
    return await anyio.to_thread.run_sync(_load, path)


def _load(path: ResolvedPath) -> TextFile | None:
    try:
        with open_folder(path.path.parent) as folder:
            content = folder.read(path.path.name)
        return None if content is None else decode(content)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError as error:
        raise ToolError("is_directory", f"{path.display} is a directory") from error
    except OSError as error:
        raise ToolError("unreadable_file", f"{path.display} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ToolError("binary_file", f"{path.display} is not a text file ({error})") from error


async def load_for_change(path: ResolvedPath, context: ToolContext) -> TextFile | None:
    """Read a file that is to be changed, or what the editor holds of it; None where there is none.

    Raises ToolError ``stale_file`` where the approved change was made from other content or for another place.
    """
    document = await context.documents.get(path.path)
    if document is not None and document.unsaved:
        content = document.text.encode("utf-8", "surrogatepass")
        file: TextFile | None = TextFile(content=content, text=document.text, codec="utf-8", document=document)
    else:
        file = await load(path)
        file = None if file is None else replace(file, document=document)
    approved = context.change
    if approved is not None:
        digest = content_digest(None if file is None else file.content)
        if (approved.path, approved.before_digest) != (path, digest):
            raise stale(path)
    return file


def stale(path: ResolvedPath) -> ToolError:
    return ToolError("stale_file", f"{path.display} has changed since this change to it was made. Read it again")


async def save(
    path: ResolvedPath, text: str, *, previous: TextFile | None, documents: Documents = _NO_EDITOR
) -> str | None:
    """Put text in the place of the ``previous`` file, if the file still is that one; else ``stale_file``.

    An open document is changed by the editor. A file is written in its encoding; parent directories are made; mode,
    owner and hard links survive. Returns what the model should know besides.
    """
    document = None if previous is None else previous.document
    if document is not None:
        written = await documents.write(path, document, text)
        if written is Written.SAVED:
            return None
        if written is Written.HELD:
            return "It is in the editor, not saved yet: programs still find the old file"
        if written is Written.STALE:
            raise stale(path)
        now = await documents.get(path.path)
        if now is None or now.text != document.text:
            raise stale(path)
        if now.unsaved:
            raise unsaved(path)
    await _save_file(path, text, previous)
    return None


def unsaved(path: ResolvedPath) -> ToolError:
    return ToolError(
        "unsaved_changes",
        f"{path.display} has unsaved changes in the editor. Ask the user to save or discard them, then try again",
    )


async def _save_file(path: ResolvedPath, text: str, previous: TextFile | None) -> None:
    file = previous or NEW_FILE
    try:
        content = file.encode(text)
    except UnicodeEncodeError as error:
        character, line = text[error.start], line_number(text, error.start)
        message = f"{path.display} is encoded as {file.codec}, which has no {character!r} (line {line})"
        raise ToolError("cannot_encode", message) from error
    expected = None if previous is None else previous.content
    await anyio.to_thread.run_sync(partial(_save, path, content, expected))


def _save(path: ResolvedPath, content: bytes, expected: bytes | None) -> None:
    try:
        with open_folder(path.path.parent, create=True) as folder:
            if not folder.replace(path.path.name, content, expected):
                raise stale(path)
    except OSError as error:
        raise ToolError("unwritable_file", f"{path.display} cannot be written: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class Folder:
    """A directory held open, so that its files are reached by name alone. Windows has paths only."""

    path: Path
    descriptor: int | None

    def entry(self, name: str) -> str:
        return name if self.descriptor is not None else str(self.path / name)

    def status(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(self.entry(name), dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        return os.open(self.entry(name), flags | _FILE_FLAGS, mode, dir_fd=self.descriptor)

    def read(self, name: str) -> bytes | None:
        """A regular file's bytes, None where there is no file. Raises OSError, IsADirectoryError for a directory."""
        try:
            descriptor = self.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a FIFO must not hold us
        except FileNotFoundError:
            return None
        try:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, "is a directory")
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            if status.st_size > MAX_FILE_BYTES:
                raise OSError(errno.EFBIG, f"larger than {MAX_FILE_BYTES:,} bytes")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)

    def replace(self, name: str, content: bytes, expected: bytes | None) -> bool:
        """Put content in a file's place, durably; False, with nothing changed, if it is not ``expected`` any more.

        The new file takes over mode and owner. Where that would break hard links, or we may not give the file to
        its owner, the old one is overwritten instead, once the new content is safe beside it: a program killed in
        the middle of that leaves the whole new content in the temporary file, and so does a disk that fails.
        """
        status = self.status(name)
        if status is not None and not os.access(self.entry(name), os.W_OK, dir_fd=self.descriptor):
            raise PermissionError(errno.EACCES, "the file is read-only")
        temporary = f".{secrets.token_hex(8)}.tmp"
        torn = False
        try:
            can_swap = self._write_beside(temporary, content, status)
            if self.read(name) != expected:
                return False
            if can_swap:
                old, new, folder = self.entry(temporary), self.entry(name), self.descriptor
                os.replace(old, new, src_dir_fd=folder, dst_dir_fd=folder)
            else:
                overwrite(self.open(name, os.O_WRONLY), content, expected or b"", self.path / temporary)
            return True
        except TornFileError:
            torn = True
            raise
        finally:
            if not torn:
                with suppress(FileNotFoundError):
                    os.unlink(self.entry(temporary), dir_fd=self.descriptor)
            self._sync()

    def _write_beside(self, temporary: str, content: bytes, status: os.stat_result | None) -> bool:
        """Write a new file; whether it may take the place of the one that ``status`` describes."""
        descriptor = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if status is None else 0o600)
        can_swap = status is None or (status.st_nlink == 1 and _take_over(descriptor, status))
        _write(descriptor, content)
        return can_swap

    def _sync(self) -> None:
        if self.descriptor is not None:
            with suppress(OSError):  # some file systems cannot
                descriptor = os.open(".", os.O_RDONLY, dir_fd=self.descriptor)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


@contextmanager
def open_folder(path: Path, *, create: bool = False) -> Iterator[Folder]:
    """Open a resolved directory part by part, so that a link put in its way after resolving is not followed."""
    if os.open not in os.supports_dir_fd:
        if create:
            path.mkdir(parents=True, exist_ok=True)
        yield Folder(path, None)
        return
    descriptor = os.open(path.anchor, _DIRECTORY_FLAGS)
    try:
        for part in path.parts[1:]:
            parent, descriptor = descriptor, _open_below(descriptor, part, create=create)
            os.close(parent)
        yield Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _open_below(parent: int, name: str, *, create: bool) -> int:
    try:
        return os.open(name, _DIRECTORY_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
    return os.open(name, _DIRECTORY_FLAGS, dir_fd=parent)


def _take_over(descriptor: int, status: os.stat_result) -> bool:
    if sys.platform != "win32":
        try:
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except PermissionError:
            return False
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    return True


def _write(descriptor: int, content: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def count_lines(text: str) -> int:
    """How many lines a text has; a last line without an end counts."""
    return _count_line_ends(text, len(text)) + (bool(text) and text[-1] not in "\r\n")


def split_lines(text: str) -> Lines:
    """Each line's content and its end, which is empty for a last line without one."""
    lines = LINE.findall(text)
    return [(content, line[len(content) :]) for line in lines for content in [line.rstrip("\r\n")]]


def line_number(text: str, offset: int) -> int:
    """The 1-based line of an offset. Lines end at LF, CRLF and CR only."""
    return 1 + _count_line_ends(text, offset)


def _count_line_ends(text: str, stop: int) -> int:
    if "\r" not in text:  # far the most files, and the pair is slow to count
        return text.count("\n", 0, stop)
    return text.count("\n", 0, stop) + text.count("\r", 0, stop) - text.count("\r\n", 0, stop)


def uniform_line_end(text: str) -> str | None:
    """The one line end that a text uses throughout, or None for several kinds or none."""
    kinds = set(LINE_END.findall(text))
    return kinds.pop() if len(kinds) == 1 else None
