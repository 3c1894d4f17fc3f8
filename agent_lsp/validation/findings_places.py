"""Which file of the workspace a tool means, and what becomes of what it says about it.

Invariant: a finding that leaves here has the path of an existing file inside the root, relative to it and resolved.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from agent_lsp.validation.validator import Finding

_LONGEST_PATH = 4096
_LONGEST_MESSAGE = 1000
_MOST_LOOKUPS = 20_000
_LARGEST_NUMBER = 10**9
_INSTALLED = frozenset(("site-packages", "dist-packages", "node_modules"))
_SEVERITIES = {
    "warn": "warning",
    "warning": "warning",
    **dict.fromkeys(("note", "notice", "info", "information", "hint", "help", "remark", "none", "failure-note"), ""),
}
_RELATED = ("assert ", "Expected", "Received", "left:", "right:")


class Reading:
    """One reading of one tool's output: whose it is, where the tool ran, and the files that it spoke of so far."""

    def __init__(self, *, tool: str, root: Path, directory: Path) -> None:
        self.tool = tool
        self.directory = os.path.realpath(directory)
        self._root = os.path.realpath(root)
        self._known: dict[tuple[str, str], str] = {}

    def locate(self, spelling: str, bases: Sequence[str] = ()) -> str:
        """The file's path relative to the root, or "". ``bases`` are tried first, then where the tool ran, then the
        root: monorepo runners print paths of either.
        """
        if not 0 < len(spelling) <= _LONGEST_PATH:
            return ""
        if spelling.startswith("file:"):
            spelling = _path_of(spelling)
        for base in dict.fromkeys((*bases, ".", self._root)):
            if found := self._file(base, spelling):
                return found
        return ""

    def locate_own(self, spelling: str, bases: Sequence[str] = ()) -> str:
        """As ``locate``, for a frame of a traceback: an installed library in the workspace is not the project's."""
        found = self.locate(spelling, bases)
        parts = found.split("/")[:-1]
        library = any(part in _INSTALLED or re.fullmatch(r"python3\.\d{1,3}", part) for part in parts)
        return "" if library else found

    def _file(self, base: str, spelling: str) -> str:
        key = (base, spelling)
        if key not in self._known:
            if len(self._known) >= _MOST_LOOKUPS:
                return ""
            self._known[key] = self._look_up(base, spelling)
        return self._known[key]

    def _look_up(self, base: str, spelling: str) -> str:
        try:
            path = Path(os.path.realpath(Path(self.directory, base, spelling)))
            if path.is_relative_to(self._root) and path.is_file():
                return path.relative_to(self._root).as_posix()
        except (OSError, ValueError):  # too long, or characters that no path has
            pass
        return ""

    def found(
        self,
        spelling: str,
        line: int,
        message: str,
        *,
        column: int = 0,
        code: str = "",
        severity: str = "error",
        by: str = "",
        bases: Sequence[str] = (),
    ) -> Iterator[Finding]:
        """One finding of a file as the tool spells it, or none; as ``placed``."""
        path = self.locate(spelling, bases)
        yield from self.placed(path, line, message, column=column, code=code, severity=severity, by=by)

    def placed(
        self,
        path: str,
        line: int,
        message: str,
        *,
        column: int = 0,
        code: str = "",
        severity: str = "error",
        by: str = "",
    ) -> Iterator[Finding]:
        """One finding of a located file, or none: without a path, without a message, or where it is but a remark.

        ``severity`` is the tool's word; ``by`` is the tool as the content tells it, for when nobody told us.
        """
        level = _SEVERITIES.get(severity.lower(), "error")
        message = message.replace("\u00a0", " ").strip()
        if path and level and message:
            yield Finding(
                path=path,
                line=_number(line),
                column=_number(column) if _number(line) else 0,
                message=message if len(message) <= _LONGEST_MESSAGE else message[:_LONGEST_MESSAGE] + "…",
                code=code,
                tool=self.tool or by,
                severity="warning" if level == "warning" else "error",
            )


def headline(text: str) -> str:
    """What a failed test says first, with the compared values where they stand close below it."""
    lines = [line.strip() for line in text[: 10 * _LONGEST_MESSAGE].splitlines() if line.strip()][:4]
    return "\n".join(lines[:1] + [line for line in lines[1:] if line.startswith(_RELATED)])


def _number(value: int) -> int:
    return value if 0 < value < _LARGEST_NUMBER else 0


def _path_of(uri: str) -> str:
    try:
        return url2pathname(urlsplit(uri).path)
    except ValueError:
        return unquote(uri.removeprefix("file://"))
