"""A validator and what it says about a project, as values."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_lsp.workspace import Place

Kind: TypeAlias = Literal["lint", "types", "build", "test"]
"""What a validator looks at, from the fast ones to the slow ones."""

DEFAULT_SECONDS = 60.0

REPORT = "{report}"
"""In an argument of a list: the path of a private file into which the tool writes its report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validator:
    """One program that fails where the project is broken.

    ``command`` is a line for the shell, or a list of arguments run without one. ``directory`` is where it runs,
    relative to the workspace. ``paths`` are patterns as in ``.gitignore``, relative to the workspace, of the files
    that it is about; without any it is about all. ``tool`` names whose output it prints, for the findings, where that
    is known. ``why`` says what made us think of it; ``place`` is where that stands. Seconds in ``timeout``.
    """

    name: str
    command: str | tuple[str, ...]
    place: Place
    directory: str = "."
    paths: tuple[str, ...] = ()
    timeout: float = DEFAULT_SECONDS
    kind: Kind = "lint"
    tool: str = ""
    why: str = ""
    detected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a validator found. ``path`` is relative to the workspace; ``line`` and ``column`` count from 1,
    and are 0 where the tool does not say.
    """

    path: str
    line: int
    message: str
    column: int = 0
    code: str = ""
    tool: str = ""
    severity: Literal["error", "warning"] = "error"
