"""Sessions on disk: for each a private directory with one file of JSON lines, in the user's state directory.

Invariants: a line is appended when the thing happens, and is on the disk for good once its turn has ended; only one
process writes a session at a time; whatever moment a process is killed in, what it had written can be read (F61).
"""

import hashlib
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_lsp.errors import ConfigurationError
from agent_lsp.session.lock import Busy, Lock, is_held
from agent_lsp.session.records import (
    FORMAT,
    MIGRATIONS,
    Migration,
    NewerFormat,
    Record,
    Replay,
    encoded,
    message_record,
    replay,
)

_log = logging.getLogger(__name__)

_LINES, _LOCK, _OBJECTS, _DAMAGED = "session.jsonl", "lock", "objects", "damaged.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A session at a glance; times in seconds since the epoch. ``is_open`` says that some process writes it."""

    id: str
    title: str
    created: float
    updated: float
    turns: int
    messages: int
    is_open: bool


class SessionStore:
    """The sessions of one workspace. ``directory`` appears with the first of them."""

    def __init__(self, state: Path, root: Path) -> None:
        self.root = root
        self.directory = state / "sessions" / hashlib.sha256(os.fsencode(root)).hexdigest()[:32]

    def ids(self) -> list[str]:
        """All stored sessions, the one written last first."""
        dated = [(lines.stat().st_mtime, lines.parent.name) for lines in self._files()]
        return [id_ for _, id_ in sorted(dated, reverse=True)]

    def _files(self) -> Iterator[Path]:
        with suppress(OSError):
            for entry in self.directory.iterdir():
                if (lines := entry / _LINES).is_file():
                    yield lines

    def find(self, text: str) -> str:
        """The id of a session by its beginning. Raises ConfigurationError for none or several."""
        found = [id_ for id_ in self.ids() if id_.startswith(text)] if text else []
        if text in found or len(found) == 1:
            return text if text in found else found[0]
        if found:
            raise ConfigurationError(f"Several sessions begin with {text}: {', '.join(found[:5])}")
        raise ConfigurationError(f"There is no session {text} in {self.root}; agent-lsp sessions list shows all")

    def latest(self) -> str:
        """The session written last. Raises ConfigurationError where there is none."""
        for id_ in self.ids():
            return id_
        raise ConfigurationError(f"There is no session to continue in {self.root}")

    def summaries(self) -> list[Summary]:
        """All stored sessions at a glance, the one written last first."""
        return [summary for id_ in self.ids() if (summary := _summary(self.directory / id_)) is not None]

    def read(self, id_: str) -> Replay:
        """What a session holds. Raises ConfigurationError for one that cannot be read at all."""
        return _read(self.directory / id_ / _LINES)

    def is_open(self, id_: str) -> bool:
        """Whether some process writes it."""
        return is_held(self.directory / id_ / _LOCK)

    def objects(self, id_: str) -> Path:
        """Where the contents of a session's files are kept."""
        return self.directory / id_ / _OBJECTS

    def begin(self, id_: str) -> "SessionFile":
        """A new session; it is on the disk with its first record."""
        return SessionFile(self.directory / id_, self.root)

    def resume(self, id_: str) -> "tuple[SessionFile, Replay]":
        """Take over a stored session. Raises ConfigurationError where that cannot be."""
        file = SessionFile(self.directory / id_, self.root)
        return file, file.take_over()

    def delete(self, id_: str) -> None:
        """Delete a session with all that was kept for it. Raises ConfigurationError while it is open."""
        directory = self.directory / id_
        lock = _lock(directory)
        try:
            (directory / _LINES).unlink(missing_ok=True)  # first: what is left of it then is no session
            shutil.rmtree(directory)
        finally:
            lock.release()

    def prune(self, keep_days: float) -> list[str]:
        """Delete the sessions that nothing was written to for so many days; gives their ids."""
        limit = time.time() - keep_days * 86_400
        old = [lines.parent.name for lines in self._files() if lines.stat().st_mtime < limit]
        deleted = []
        for id_ in old:
            with suppress(ConfigurationError, OSError):
                self.delete(id_)
                deleted.append(id_)
        return deleted


_MESSAGES = (b"user", b"system", b"assistant", b"tool")


def _summary(directory: Path) -> Summary | None:
    """What a list shows of a session, without reading all of it as JSON; None where it is none."""
    try:
        data = (directory / _LINES).read_bytes()
        updated = (directory / _LINES).stat().st_mtime
        head = json.loads(data[: data.index(b"\n")])
        created = float(head["created"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    prompt = ""
    with suppress(ValueError, KeyError, TypeError):
        begin = data.index(_begin(b"turn")) + 1
        prompt = str(json.loads(data[begin : data.index(b"\n", begin)])["prompt"])
    return Summary(
        id=directory.name,
        title=next((line.strip() for line in prompt.splitlines() if line.strip()), ""),
        created=created,
        updated=updated,
        turns=data.count(_begin(b"turn")),
        messages=sum(data.count(_begin(kind)) for kind in _MESSAGES),
        is_open=is_held(directory / _LOCK),
    )


def _begin(kind: bytes) -> bytes:
    """How a record of a kind begins, behind the end of the one before; no text inside of one looks like it."""
    return b'\n{"type":"' + kind + b'",'


def _lock(directory: Path) -> Lock:
    try:
        return Lock(directory / _LOCK)
    except Busy as busy:
        holder = f" (number {busy.process})" if busy.process else ""
        raise ConfigurationError(
            f"Session {directory.name} is open in another process{holder}, and only one may write it. "
            "Go on there, or end that process first"
        ) from busy
    except OSError as error:
        raise ConfigurationError(f"Session {directory.name} cannot be opened: {error}") from error


def _read(lines: Path, *, format_: int = FORMAT, migrations: Mapping[int, Migration] = MIGRATIONS) -> Replay:
    try:
        found = replay(lines.read_bytes(), format_=format_, migrations=migrations)
    except OSError as error:
        raise ConfigurationError(f"Session {lines.parent.name} cannot be read: {error.strerror}") from error
    except NewerFormat as error:
        raise ConfigurationError(f"Session {lines.parent.name} cannot be read: {error}") from error
    if not found.id:
        raise ConfigurationError(f"Session {lines.parent.name} cannot be read: {found.problem or 'it is empty'}")
    return found


class SessionFile:
    """The writer of one session. ``redact`` takes secrets out of every text that is written.

    Where the disk fails the session goes on without being kept, and says so once: ``problem``.
    """

    def __init__(self, directory: Path, root: Path) -> None:
        self.redact: Callable[[str], str] = str
        self.problem = ""
        self._directory = directory
        self._root = root
        self._lock: Lock | None = None
        self._descriptor: int | None = None
        self._unsynced = self._is_new = False

    @property
    def objects(self) -> Path:
        return self._directory / _OBJECTS

    def append(self, record: Mapping[str, Any], *, as_it_is: bool = False) -> None:
        """Write one record, at once; ``as_it_is`` where texts name files, which redacting could rename."""
        if self.problem:
            return
        try:
            if self._descriptor is None:
                self._create()
            self._write(encoded(record if as_it_is else {key: self._clean(value) for key, value in record.items()}))
        except (OSError, ConfigurationError) as error:
            self.problem = f"The session is not kept from here on: {error}"
            _log.warning("%s", self.problem)

    def _clean(self, value: Any) -> Any:
        match value:
            case str():
                return self.redact(value)
            case list() | tuple():
                return [self._clean(item) for item in value]
            case dict():
                return {key: self._clean(item) for key, item in value.items()}
        return value

    def _write(self, line: bytes) -> None:
        if self._descriptor is None:
            raise OSError("it is closed")
        self._unsynced = True
        written = os.write(self._descriptor, line)
        while written < len(line):  # a disk that is full raises with the next try
            written += os.write(self._descriptor, line[written:])

    def _create(self) -> None:
        _private(self._directory.parent.parent)
        _private(self._directory.parent)
        _private(self._directory)
        self._lock = _lock(self._directory)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(self._directory / _LINES, flags, 0o600)
        head: Record = {
            "type": "session",
            "format": FORMAT,
            "id": self._directory.name,
            "root": str(self._root),
            "created": time.time(),
        }
        self._write(encoded(head))
        self._is_new = True

    def take_over(self, *, format_: int = FORMAT, migrations: Mapping[int, Migration] = MIGRATIONS) -> Replay:
        """Become the writer of what is there, and put right how it ends. Raises ConfigurationError."""
        lines = self._directory / _LINES
        if not lines.is_file():
            raise ConfigurationError(f"There is no session {self._directory.name} in {self._root}")
        self._lock = _lock(self._directory)
        try:
            found = _read(lines, format_=format_, migrations=migrations)
            if found.problem:
                shutil.copyfile(lines, self._directory / _DAMAGED)
                (self._directory / _DAMAGED).chmod(0o600)
            if found.format < format_:
                _migrate(lines, found, format_, migrations)
            self._descriptor = os.open(lines, os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0))
            if found.format == format_:
                os.ftruncate(self._descriptor, found.size)
        except BaseException:
            self.close()
            raise
        for message in found.close_calls():
            self.append(message_record(message))
        return found

    def sync(self) -> None:
        """Make what was written last; blocks."""
        if self._unsynced and self._descriptor is not None:
            self._unsynced = False
            try:
                os.fsync(self._descriptor)
                if self._is_new:
                    self._is_new = False
                    for directory in (self._directory, *self._directory.parents[:2]):
                        _sync_directory(directory)
            except OSError as error:
                self.problem = f"The session is not kept from here on: {error}"
                _log.warning("%s", self.problem)

    def close(self) -> None:
        """Let another process write it."""
        self.sync()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self.problem = self.problem or "The session is closed"
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _migrate(lines: Path, found: Replay, format_: int, migrations: Mapping[int, Migration]) -> None:
    """Write the good lines of an older format anew, in the place of the old file."""
    good = lines.read_bytes()[: found.size].decode("ascii").splitlines()
    new = lines.with_suffix(".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        for number, line in enumerate(good):
            record = json.loads(line)
            for step in range(found.format, format_):
                record = migrations[step](record)
            file.write(encoded({**record, "format": format_} if number == 0 else record))
        file.flush()
        os.fsync(file.fileno())
    new.replace(lines)
    _sync_directory(lines.parent)


def _private(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory.chmod(0o700)


def _sync_directory(directory: Path) -> None:
    if sys.platform == "win32":
        return
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
