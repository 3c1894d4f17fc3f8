"""Which linters, type checkers and tests a project has, told from its files.

Invariant: nothing is run or imported, nothing outside of the workspace is read, and the look is bounded. The same
files give the same validators in the same order.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from agent_lsp.validation.detection import compiled, javascript, python, tasks
from agent_lsp.validation.detection.tree import Folder, folders
from agent_lsp.validation.validator import Kind, Validator

_ORDER: tuple[Kind, ...] = ("lint", "types", "build", "test")


def detect(root: Path) -> tuple[Validator, ...]:
    """The validators of a project, fast ones first, then by folder; every one says what made us think of it."""
    places = [folder for folder in folders(root) if not folder.is_sample]
    found = [
        validator
        for folder in places
        for language in (python, javascript, compiled)
        for validator in language.validators(folder)
    ]
    for task in (tasks.python_sessions, tasks.make_targets, tasks.pre_commit):
        _add(found, places, task)
    return tuple(_named(sorted(found, key=lambda validator: _ORDER.index(validator.kind))))


def _add(found: list[Validator], places: Iterable[Folder], task: tasks.Task) -> None:
    """Add what a task runner offers for the kinds that nothing in its folder, or below it, covers."""
    makers: dict[Kind, list[str]] = {}
    for folder in places:
        for candidate in task(folder):
            kind = candidate.kind
            covered = any(other.kind == kind and _holds(folder.relative, other.directory) for other in found)
            covered |= any(_holds(above, folder.relative) for above in makers.get(kind, ()))
            if not covered:
                found.append(candidate)
                makers.setdefault(kind, []).append(folder.relative)


def _holds(folder: str, other: str) -> bool:
    return folder == "." or other == folder or other.startswith(f"{folder}/")


def _named(validators: Iterable[Validator]) -> Iterable[Validator]:
    """Give each a name of its own, so that each can be switched off alone."""
    taken: set[str] = set()
    for validator in validators:
        name = validator.name
        for end in (f"-{validator.kind}", *(f"-{number}" for number in range(2, 100))):
            if name not in taken:
                break
            name = f"{validator.name}{end}"
        taken.add(name)
        yield replace(validator, name=name)
