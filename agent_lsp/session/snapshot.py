"""The files of a workspace at a moment, so that it can be told afterwards what a command changed, and from what.

A snapshot holds what the system tells of each file, and contents only where nobody else keeps them: a file that git's
index describes exactly is in the repository. Not looked into are ignored directories, caches, dependencies and the
repositories themselves; contents above the bounds are not kept. Both are said.
"""

import os
import stat
import tempfile
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeAlias

from pathspec import GitIgnoreSpec

from agent_lsp.session.file_state import read_file
from agent_lsp.session.git_index import git_directory, read_blobs, read_index

_REPOSITORIES = frozenset({".git", ".hg", ".svn", ".jj"})
_DEPENDENCIES = frozenset({"node_modules", "__pycache__"})
_MARKERS = ("CACHEDIR.TAG", "pyvenv.cfg")

Signature: TypeAlias = tuple[int, int, int, int, int]
"""Mode, size, times of modification and of change in nanoseconds, inode. Of a directory the mode alone counts."""

Rules: TypeAlias = tuple[tuple[str, GitIgnoreSpec], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is kept of files that no repository keeps: bytes of one, bytes of all, and how many.

    A look that would see more ``entries``, or takes more ``seconds``, is given up: a command waits for it.
    """

    file: int = 16 * 1024 * 1024
    content: int = 256 * 1024 * 1024
    files: int = 20_000
    entries: int = 400_000
    seconds: float = 10.0


LIMITS = Limits()


class TooLarge(Exception):
    """There are more files than can be looked at while a command waits."""


@dataclass(slots=True, kw_only=True)
class Tree:
    """What was there, by absolute paths; ``skipped`` are directories that were not looked into."""

    entries: dict[str, Signature] = field(default_factory=dict)
    links: dict[str, bytes] = field(default_factory=dict)
    repositories: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def scan(
    roots: tuple[Path, ...], check: Callable[[], None], *, like: Tree | None = None, limits: Limits = LIMITS
) -> Tree:
    """Look at all files below the roots. Raises TooLarge, or what ``check`` raises, which is called now and then.

    ``like`` is an earlier look, whose directories are looked into and left out again, whatever the rules say by now.
    """
    tree = Tree()
    skipped = frozenset(() if like is None else like.skipped)
    known = like.entries.keys() if like is not None else frozenset[str]()
    scanning = _Scan(tree, skipped, known, _bounded(tree, check, limits))
    for root in roots:
        if not any(other in root.parents for other in roots):
            top = next((each for each in (root, *root.parents) if git_directory(each) is not None), None)
            if top is not None:
                tree.repositories.append(str(top))
            scanning.walk(str(root), _rules_above(root, top))
    return tree


def _bounded(tree: Tree, check: Callable[[], None], limits: Limits) -> Callable[[], None]:
    until = time.monotonic() + limits.seconds

    def check_all() -> None:
        check()
        if len(tree.entries) > limits.entries or time.monotonic() > until:
            raise TooLarge

    return check_all


class _Scan:
    """One look. ``skipped`` and ``known`` are what an earlier one left out and took."""

    def __init__(self, tree: Tree, skipped: Collection[str], known: Collection[str], check: Callable[[], None]) -> None:
        self._tree = tree
        self._skipped = skipped
        self._known = known
        self._check = check
        self._waiting: list[tuple[str, Rules]] = []

    def walk(self, top: str, above: Rules) -> None:
        self._waiting.append((top, above))
        while self._waiting:
            directory, rules = self._waiting.pop()
            self._check()
            self._look_into(directory, rules, is_top=directory == top)

    def _look_into(self, directory: str, rules: Rules, *, is_top: bool) -> None:
        try:
            with os.scandir(directory) as listing:
                found = list(listing)
        except OSError:
            self._tree.skipped.append(directory)
            return
        names = {entry.name for entry in found}
        if not is_top and directory not in self._known and not names.isdisjoint(_MARKERS):
            self._tree.skipped.append(directory)
            self._tree.entries.pop(directory)
            return
        if ".git" in names and not is_top:
            self._tree.repositories.append(directory)
            rules = _exclude_rules(directory)
        if ".gitignore" in names:
            rules = (*rules, *_read_rules(directory, f"{directory}/.gitignore"))
        for entry in found:
            self._take(entry, rules)

    def _take(self, entry: os.DirEntry[str], rules: Rules) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # it went while we looked
            return
        path, mode = entry.path, status.st_mode
        if stat.S_ISDIR(mode):
            if entry.name in _REPOSITORIES:
                return
            if self._is_left_out(path, entry.name, rules):
                self._tree.skipped.append(path)
                return
            self._tree.entries[path] = (mode, 0, 0, 0, 0)
            self._waiting.append((path, rules))
            return
        if stat.S_ISLNK(mode):
            with suppress(OSError):
                self._tree.links[path] = os.fsencode(os.readlink(path))  # noqa: PTH115 (a Path for each costs time)
        self._tree.entries[path] = (mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def _is_left_out(self, path: str, name: str, rules: Rules) -> bool:
        if path in self._skipped:
            return True
        return path not in self._known and (name in _DEPENDENCIES or _is_ignored(path, rules))


def _rules_above(root: Path, top: Path | None) -> Rules:
    """The rules that hold at a root from outside of it."""
    if top is None:
        return ()
    rules = _exclude_rules(str(top))
    for parent in reversed(root.parents):
        if top in (parent, *parent.parents):
            rules = (*rules, *_read_rules(str(parent), f"{parent}/.gitignore"))
    return tuple(rule for rule in rules if not _is_ignored(str(root), (rule,)))  # who works there means to


def _exclude_rules(top: str) -> Rules:
    repository = git_directory(Path(top))
    return () if repository is None else _read_rules(top, str(repository / "info/exclude"))


def _read_rules(base: str, file: str) -> Rules:
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:  # noqa: PTH123 (a Path for each costs time)
            return ((base, GitIgnoreSpec.from_lines(lines)),)
    except (OSError, ValueError):
        return ()


def _is_ignored(path: str, rules: Rules) -> bool:
    """Whether a directory is ignored; the nearest file with a word about it decides."""
    for base, spec in reversed(rules):
        verdict = spec.check_file(f"{path[len(base) + 1 :]}/").include
        if verdict is not None:
            return verdict
    return False


@dataclass(frozen=True, slots=True)
class _Kept:
    """The content of a file of this signature: a part of the spool, or a blob of a repository, or nowhere."""

    signature: Signature
    place: tuple[int, int] | tuple[str, str] | None


class Contents:
    """Contents of files as they were at the last snapshots, for as long as the session is open."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._kept: dict[str, _Kept] = {}
        self._spool: IO[bytes] | None = None
        self._spooled = 0

    def keep(self, tree: Tree, check: Callable[[], None]) -> tuple[str, ...]:
        """See that each file's content can be had later; gives the paths of those that are not kept."""
        wanted = {
            path: signature
            for path, signature in tree.entries.items()
            if stat.S_ISREG(signature[0]) and self._missing(path, signature)
        }
        if len(wanted) > 100 or not self._kept:
            for repository in tree.repositories:
                check()
                self._find_in_index(repository, wanted)
        if self._spooled > self._limits.content:
            self._forget_spool()
        for number, (path, signature) in enumerate(wanted.items()):
            check()
            self._kept[path] = _Kept(signature, self._copy(path, signature) if number < self._limits.files else None)
        for path in self._kept.keys() - tree.entries.keys():
            del self._kept[path]
        return tuple(path for path, kept in self._kept.items() if kept.place is None)

    def _missing(self, path: str, signature: Signature) -> bool:
        kept = self._kept.get(path)
        return kept is None or kept.signature != signature

    def _find_in_index(self, top: str, wanted: dict[str, Signature]) -> None:
        repository = git_directory(Path(top))
        if repository is None:
            return
        for name, entry in read_index(repository).items():
            path = f"{top}/{name}"
            signature = wanted.get(path)
            if signature is not None and entry.describes(signature[1], signature[2], signature[4]):
                self._kept[path] = _Kept(signature, (str(repository), entry.blob))
                del wanted[path]

    def _copy(self, path: str, signature: Signature) -> tuple[int, int] | None:
        if signature[1] > self._limits.file or self._spooled + signature[1] > self._limits.content:
            return None
        try:
            content = read_file(Path(path))
        except OSError:
            return None
        if self._spool is None:
            self._spool = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as this object)
            weakref.finalize(self, self._spool.close)
        place = self._spooled, len(content)
        self._spool.seek(self._spooled)
        self._spool.write(content)
        self._spooled += len(content)
        return place

    def _forget_spool(self) -> None:
        self._spooled = 0
        self._kept = {path: kept for path, kept in self._kept.items() if kept.place and isinstance(kept.place[0], str)}

    def of(self, tree: Tree, paths: list[str]) -> Iterator[tuple[str, bytes]]:
        """The contents of files as they were in a tree; those that are not kept are left out."""
        blobs: dict[str, dict[str, list[str]]] = {}
        for path in paths:
            kept = self._kept.get(path)
            if kept is None or kept.place is None or kept.signature != tree.entries.get(path):
                continue
            where, what = kept.place
            if isinstance(where, str):
                blobs.setdefault(where, {}).setdefault(str(what), []).append(path)
            elif self._spool is not None and isinstance(what, int):
                self._spool.seek(where)
                yield path, self._spool.read(what)
        for repository, named in blobs.items():
            for name, content in read_blobs(Path(repository), named):
                for path in named[name]:
                    if len(content) == tree.entries[path][1]:  # else git stores the file in another shape
                        yield path, content

    def close(self) -> None:
        """Let the contents go."""
        self._kept.clear()
        if self._spool is not None:
            self._spool.close()
            self._spool = None
        self._spooled = 0


def changed(before: Mapping[str, Signature], after: Mapping[str, Signature]) -> list[str]:
    """The paths that differ, in the order of their names."""
    different = [path for path, signature in after.items() if before.get(path) != signature]
    return sorted([*different, *(path for path in before if path not in after)])
