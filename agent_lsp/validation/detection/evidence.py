"""From a piece of evidence to a validator: names, places, patterns and times that are alike in all languages."""

import re
from dataclasses import dataclass

from agent_lsp.validation.detection.tree import Folder
from agent_lsp.validation.validator import Kind, Validator
from agent_lsp.workspace import Place

SECONDS: dict[Kind, float] = {"lint": 60.0, "types": 120.0, "build": 180.0, "test": 300.0}
COMPILE_SECONDS = 180.0  # for a linter that compiles or installs before it looks


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What made us think of a tool: a file of a folder, the line in it, and that in words.

    ``strong`` is a configuration of its own, which holds even where a folder above has the same tool.
    """

    file: str
    why: str
    line: int = 0
    strong: bool = True


def validator(
    folder: Folder,
    evidence: Evidence,
    *,
    name: str,
    kind: Kind,
    command: tuple[str, ...],
    tool: str = "",
    patterns: tuple[str, ...] = (),
    timeout: float = 0.0,
) -> Validator:
    """A detected validator of a folder. ``patterns`` are relative to the folder; without any it is about all of it."""
    inner = folder.relative != "."
    return Validator(
        name=folder.label(name),
        command=command,
        place=Place(source=str(folder.path / evidence.file), line=evidence.line, column=1 if evidence.line else 0),
        directory=folder.relative,
        paths=tuple(f"{_literal(folder.relative)}/{pattern}" for pattern in patterns or ("**",)) if inner else patterns,
        timeout=timeout or SECONDS[kind],
        kind=kind,
        tool=tool,
        why=evidence.why,
        detected=True,
    )


def _literal(path: str) -> str:
    """A path as a gitignore pattern that means just this path."""
    return re.sub(r"[\\*?\[]|^[!#]", r"\\\g<0>", path)
