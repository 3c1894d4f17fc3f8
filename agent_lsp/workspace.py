"""Where the agent works: the roots, how a path is judged against them, and the text that an editor holds.

Invariant: a ResolvedPath is absolute and free of symbolic links at the time of the check; ``inside`` is true only
if it lies in a root after resolving (F23). Tools get resolved paths, never the model's own spelling.
"""

import enum
import io
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_lsp.errors import ConfigurationError, ToolError


class Access(enum.Enum):
    """What a tool does to the world; a rule group and a mode speak about these."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"
    INTERNAL = "internal"
    """The session's own affairs: tasks, and sub-agents, whose calls are judged one by one."""


HARMLESS = (Access.READ, Access.INTERNAL)
"""What plan mode allows: it changes nothing outside of the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a setting stands; ``line`` and ``column`` count from 1 and are 0 where there is no file."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPath:
    """A path after resolving: ``path`` for the system, ``display`` for people and rules.

    ``display`` is relative to the first root with forward slashes where that root holds it, else absolute.
    """

    path: Path
    display: str
    inside: bool


class Workspace:
    """One or more root directories; the first is the working directory of programs."""

    def __init__(self, root: Path, *, additional: Iterable[Path] = ()) -> None:
        self.root = self._existing_directory(root)
        self.set_additional(additional)

    def set_additional(self, additional: Iterable[Path]) -> None:
        """Replace the further roots."""
        self.roots = (self.root, *map(self._existing_directory, additional))

    @staticmethod
    def _existing_directory(path: Path) -> Path:
        if not path.is_dir():
            raise ConfigurationError(f"Workspace folder does not exist: {path}")
        return path.resolve()

    def resolve(self, spelling: str) -> ResolvedPath:
        """Resolve the model's spelling of a path, relative ones against the first root.

        Raises ToolError ``invalid_path`` for what no system call takes: an empty path, a NUL, a link that loops.
        """
        if not spelling or "\0" in spelling:
            raise ToolError("invalid_path", "Path must not be empty or contain NUL characters")
        try:
            path = Path(os.path.realpath(self.root / Path(spelling).expanduser()))
        except (OSError, RuntimeError, ValueError) as error:
            raise ToolError("invalid_path", f"Path cannot be resolved: {spelling} ({error})") from error
        return ResolvedPath(path=path, display=self.display(path), inside=self.contains(path))

    def contains(self, path: Path) -> bool:
        """Whether an already resolved path is a root or lies below one, compared by component."""
        return any(path == root or root in path.parents for root in self.roots)

    def display(self, path: Path) -> str:
        """A resolved path for people: relative to the first root where that holds it."""
        return path.relative_to(self.root).as_posix() if self.root in (path, *path.parents) else path.as_posix()


def lines_with_ends(text: str) -> list[str]:
    """The lines of a text with their ends, which are LF, CRLF and CR alone, as editors and the protocol count them."""
    return io.StringIO(text, newline="").readlines()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An open document's text.

    ``unsaved`` says that it differs from the file on disk, ``typed`` that this is the user's doing and not ours.
    """

    text: str
    version: int
    unsaved: bool
    typed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One diagnostic of some language server; ``line`` and ``column`` count from 1, columns in the editor's units."""

    line: int
    column: int
    message: str
    severity: str
    source: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProblems:
    """What is reported of a file; ``is_current`` says that its text is still the one that this is about."""

    path: Path
    problems: tuple[Problem, ...]
    is_current: bool = True


class Written(enum.Enum):
    """What came of a write to an open document; of the last two, nothing."""

    SAVED = enum.auto()
    HELD = enum.auto()
    """The editor has it, and has not saved it."""
    STALE = enum.auto()
    """The document is another by now."""
    CANNOT = enum.auto()
    """The editor takes no edits."""


class Documents(Protocol):
    """What the editor holds in memory; unsaved text is what tools read (F34)."""

    async def get(self, path: Path) -> Document | None:
        """The open document of a resolved path, or None where the editor has none."""
        ...

    def unsaved(self) -> tuple[tuple[Path, Document], ...]:
        """The open documents with unsaved text, as far as the editor told."""
        ...

    async def write(self, path: ResolvedPath, document: Document, text: str) -> Written:
        """Make the text of an open document another one, as one undo step, and save it where the editor can.

        Raises ToolError where the editor does not do it.
        """
        ...

    def saves(self) -> Mapping[Path, int]:
        """How often the editor has saved each file so far."""
        ...

    async def until_saved(self, paths: Collection[Path], waiting: Callable[[tuple[str, ...]], None]) -> tuple[str, ...]:
        """Wait for the human to save those of the resolved paths that were written; the names of what still is not.

        ``waiting`` is called with the names before there is a wait.
        """
        ...

    async def problems(self, path: Path | None) -> tuple[FileProblems, ...]:
        """What the editor's language servers report of a resolved path, or of all files."""
        ...


class NoDocuments:
    """The Documents of a front without an editor."""

    async def get(self, path: Path) -> Document | None:
        return None

    def unsaved(self) -> tuple[tuple[Path, Document], ...]:
        return ()

    async def write(self, path: ResolvedPath, document: Document, text: str) -> Written:
        return Written.CANNOT

    def saves(self) -> Mapping[Path, int]:
        return {}

    async def until_saved(self, paths: Collection[Path], waiting: Callable[[tuple[str, ...]], None]) -> tuple[str, ...]:
        return ()

    async def problems(self, path: Path | None) -> tuple[FileProblems, ...]:
        return ()
