"""The slow way to find files where ripgrep is missing: same rules, in Python.

Hidden files count, ``.git`` does not, ``.gitignore`` files hold from the workspace root down, and links are not
followed.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import anyio.from_thread
from pathspec import GitIgnoreSpec

SLOW_NOTE = "ripgrep not found; slow search in Python"


def walk_files(directory: Path, root: Path) -> Iterator[str]:
    """The files below a directory, relative to it, sorted by name within each directory.

    For worker threads of anyio: ends with the cancellation of the task that waits.
    """
    above = [parent for parent in reversed(directory.parents) if root in (parent, *parent.parents)]
    rules = [rule for parent in above for rule in _rules(parent)]
    # A directory that is ignored itself is shown when it is asked for: rules that would hide all of it do not count.
    rules = [rule for rule in rules if not _is_ignored(directory, [rule], is_directory=True)]
    yield from _walk(directory, "", rules)


def _walk(directory: Path, prefix: str, rules: list[tuple[Path, GitIgnoreSpec]]) -> Iterator[str]:
    anyio.from_thread.check_cancelled()
    rules = [*rules, *_rules(directory)]
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        is_directory = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or _is_ignored(Path(entry.path), rules, is_directory=is_directory):
            continue
        if is_directory:
            yield from _walk(Path(entry.path), f"{prefix}{entry.name}/", rules)
        elif entry.is_file(follow_symlinks=False):
            yield f"{prefix}{entry.name}"


def _rules(directory: Path) -> list[tuple[Path, GitIgnoreSpec]]:
    try:
        lines = (directory / ".gitignore").read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [(directory, GitIgnoreSpec.from_lines(lines))]


def _is_ignored(path: Path, rules: list[tuple[Path, GitIgnoreSpec]], *, is_directory: bool) -> bool:
    """The nearest file with a word about the path decides."""
    for base, spec in reversed(rules):
        relative = path.relative_to(base).as_posix() + ("/" if is_directory else "")
        verdict = spec.check_file(relative).include
        if verdict is not None:
            return verdict
    return False
