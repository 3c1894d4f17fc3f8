"""What is at a path, to the last bit that undo gives back: kind, mode, content, target; and where contents are kept.

Invariant: a kept content is whole, whenever the process that kept it was killed, and is found by its digest.
"""

import errno
import hashlib
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_lsp.workspace import Document

MAX_KEPT = 64 * 1024 * 1024
"""Bytes of a file above which its content is not kept."""

_UNREAD = "unread"
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """``kind`` is file, link, directory, missing or other. ``mode`` is the permission bits.

    ``digest`` is that of the content or of the link's target; empty where it is not known. ``held`` says that the
    content is the text that an editor held and had not saved.
    """

    kind: str
    mode: int = 0
    digest: str = ""
    size: int = 0
    held: bool = False


MISSING = FileState(kind="missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A path before a turn's first change of it, and after the last one; ``after`` is None where that is not known.

    ``mixed`` says that somebody else changed it in between.
    """

    before: FileState
    after: FileState | None
    mixed: bool = False

    @property
    def is_of_file(self) -> bool:
        """Whether a file was made, changed or deleted; directories aside."""
        kinds = {self.before.kind, "missing" if self.after is None else self.after.kind}
        return self.before != self.after and not kinds <= {"missing", "directory"}


class Objects:
    """Contents by digest, one private file each. ``sync`` makes them last."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._unsynced: list[Path] = []

    def put(self, content: bytes) -> str:
        """Keep a content. Raises OSError."""
        digest = hashlib.sha256(content).hexdigest()
        path = self._directory / digest
        if not path.exists():
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            part = self._directory / f"{secrets.token_hex(8)}.part"
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            part.replace(path)
            self._unsynced.append(path)
        return digest

    def get(self, digest: str) -> bytes | None:
        """A content; None for one that was not kept, or is damaged."""
        if not digest:
            return None
        try:
            content = (self._directory / digest).read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == digest else None

    def sync(self) -> None:
        """Write through what was put since the last time; blocks."""
        paths, self._unsynced = self._unsynced, []
        for path in [*paths, *([self._directory] if paths else [])]:
            with suppress(OSError):  # Windows opens no directories
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


def state_at(path: Path, objects: Objects | None = None, *, largest: int = MAX_KEPT) -> FileState:
    """What is at a path now; its content, if it is not too large, is put into the objects. Raises OSError.

    Behind a link there is nothing: what a path reaches through one is at another path.
    """
    try:
        if os.path.realpath(path.parent) != str(path.parent):
            return MISSING
        status = path.lstat()
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return MISSING
        raise
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(path.readlink())
        return FileState(kind="link", digest=_kept(target, objects), size=len(target))
    if stat.S_ISDIR(status.st_mode):
        return FileState(kind="directory", mode=mode)
    if not stat.S_ISREG(status.st_mode):
        return FileState(kind="other", mode=mode)
    try:
        digest = _digest_of(path) if status.st_size > largest else _kept(read_file(path), objects)
    except PermissionError:  # its owner may take away the right to read it, and give it back
        digest = f"{_UNREAD} {status.st_ino} {status.st_size} {status.st_mtime_ns}"
    return FileState(kind="file", mode=mode, digest=digest, size=status.st_size)


def state_of_document(document: Document, path: Path, objects: Objects | None = None) -> FileState:
    """What an editor holds of a file and has not saved."""
    content = document.text.encode("utf-8", "surrogatepass")
    mode = 0
    with suppress(OSError):
        mode = stat.S_IMODE(path.stat().st_mode)
    return FileState(kind="file", mode=mode, digest=_kept(content, objects), size=len(content), held=True)


def is_content_of(state: FileState, content: bytes | None) -> bool:
    """Whether a file's state is one with this content, as far as it was read."""
    if content is None or state.digest.startswith(_UNREAD):
        return content is not None
    return hashlib.sha256(content).hexdigest() == state.digest


def _kept(content: bytes, objects: Objects | None) -> str:
    return hashlib.sha256(content).hexdigest() if objects is None else objects.put(content)


def read_file(path: Path) -> bytes:
    """The bytes of a regular file, through no link. Raises OSError."""
    descriptor = os.open(path, _READ | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a regular file")
        return file.read()


def _digest_of(path: Path) -> str:
    descriptor = os.open(path, _READ | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
