"""A bounded look at a project's folders and files, read only.

Invariant: no folder behind a symbolic link is entered, no file outside of the workspace is read, and whatever is
missing, too large, unreadable or broken reads as empty.
"""

import configparser
import json
import os
import re
import tomllib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MAX_DEPTH = 3
MAX_ENTRIES = 5_000
MAX_BYTES = 256 * 1024

_SKIPPED = frozenset(
    {"node_modules", "bower_components", "jspm_packages", "site-packages", "__pycache__", "venv", "env", "virtualenv"}
    | {"build", "dist", "out", "target", "bin", "obj", "coverage", "htmlcov", "vendor", "third_party", "third-party"}
)
_SAMPLES = frozenset(
    {"test", "tests", "__tests__", "testdata", "test-data", "test_data", "fixtures", "__fixtures__", "spec", "specs"}
    | {"example", "examples", "sample", "samples", "template", "templates"}
)
_JSON_EXTRAS = re.compile(r'("(?:\\.|[^"\\])*+(?:"|\\?\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)|,(?=\s*[}\]])', re.DOTALL)


@dataclass(slots=True, kw_only=True, eq=False)
class Folder:
    """A folder of a project. ``relative`` is its path from the workspace with forward slashes, ``.`` for the root."""

    path: Path
    root: Path
    parent: "Folder | None" = None
    relative: str = "."
    files: set[str] = field(default_factory=set)
    children: dict[str, "Folder"] = field(default_factory=dict)
    complete: bool = False
    _texts: dict[str, str] = field(default_factory=dict)
    _documents: dict[str, dict[str, object]] = field(default_factory=dict)

    @property
    def above(self) -> "Iterator[Folder]":
        """The folders that hold this one, the nearest first."""
        folder = self.parent
        while folder is not None:
            yield folder
            folder = folder.parent

    @property
    def is_sample(self) -> bool:
        """Whether projects in here are material of tests or examples, not parts of the product."""
        return any(folder.path.name in _SAMPLES for folder in (self, *self.above) if folder.parent is not None)

    def has(self, name: str) -> bool:
        """Whether a regular file of this name, which may contain slashes, is in here."""
        if self.complete and "/" not in name and name not in self.files:
            return False
        try:
            path = (self.path / name).resolve(strict=True)
            return path.is_relative_to(self.root) and path.is_file()
        except (OSError, RuntimeError, ValueError):
            return False

    def first(self, *names: str) -> str:
        """The first of some names that is a file in here, or nothing."""
        return next(filter(self.has, names), "")

    def program(self, name: str) -> bool:
        """Whether something executable stands here, in a folder of the workspace.

        The program may be a link to one outside, as the interpreter of a virtual environment is; nothing is read.
        """
        path = self.path / name
        try:
            inside = path.parent.resolve(strict=True).is_relative_to(self.root)
            return inside and path.is_file() and os.access(path, os.X_OK)
        except (OSError, RuntimeError, ValueError):
            return False

    def label(self, name: str) -> str:
        """A file's path from the workspace, for people."""
        return name if self.relative == "." else f"{self.relative}/{name}"

    def text(self, name: str) -> str:
        """A file's text, with lines that end in a line feed."""
        if name not in self._texts:
            self._texts[name] = self._read(name)
        return self._texts[name]

    def line(self, name: str, pattern: str) -> int:
        """The number of the first line that a pattern is found in, from 1; 0 where there is none."""
        lines = enumerate(self.text(name).split("\n"), 1)
        return next((number for number, line in lines if re.search(pattern, line)), 0)

    def toml(self, name: str) -> dict[str, object]:
        """A TOML file."""
        if name not in self._documents:
            try:
                self._documents[name] = tomllib.loads(self.text(name))
            except (ValueError, RecursionError):
                self._documents[name] = {}
        return self._documents[name]

    def json(self, name: str) -> dict[str, object]:
        """A JSON file that holds an object; comments and trailing commas are allowed."""
        if name not in self._documents:
            try:
                content = json.loads(_JSON_EXTRAS.sub(lambda found: found[1] or "", self.text(name)) or "{}")
            except (ValueError, RecursionError):
                content = {}
            self._documents[name] = section(content)
        return self._documents[name]

    def ini(self, name: str) -> dict[str, object]:
        """The sections of an INI file."""
        if name not in self._documents:
            parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
            try:
                parser.read_string(self.text(name))
                found: dict[str, object] = {title: dict(parser.items(title)) for title in parser.sections()}
            except (configparser.Error, ValueError):
                found = {}
            self._documents[name] = found
        return self._documents[name]

    def _read(self, name: str) -> str:
        if not self.has(name):
            return ""
        try:
            with (self.path / name).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError:
            return ""
        if len(content) > MAX_BYTES:
            return ""
        return content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")


def folders(root: Path) -> list[Folder]:
    """The folders of a project worth a look, the root first, then the others by depth and name."""
    found: list[Folder] = []
    waiting = deque([Folder(path=root.resolve(), root=root.resolve())])
    left = MAX_ENTRIES
    while waiting and left > 0:
        folder = waiting.popleft()
        left -= _list(folder, left)
        found.append(folder)
        if len(list(folder.above)) < MAX_DEPTH:
            waiting.extend(folder.children.values())
    return found


def _list(folder: Folder, limit: int) -> int:
    """Fill in what a folder holds; returns how many entries were looked at."""
    seen = 0
    names = []
    try:
        with os.scandir(folder.path) as entries:
            for entry in entries:
                seen += 1
                if seen > limit:
                    break
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
                else:
                    folder.files.add(entry.name)
    except OSError:
        return seen
    folder.complete = seen <= limit
    for name in sorted(names):
        if name not in _SKIPPED and not name.startswith("."):
            folder.children[name] = Folder(
                path=folder.path / name, root=folder.root, parent=folder, relative=folder.label(name)
            )
    return seen


def section(document: object, *keys: str) -> dict[str, object]:
    """A table within a document, empty where there is none."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def strings(value: object) -> list[str]:
    """The texts of a list, none where it is not one."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
