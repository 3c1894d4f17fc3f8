"""Globs as ``.gitignore`` writes them: ``*``, ``?``, ``[a-z]``, ``**`` and ``{a,b}``; ``*`` stays within a name.

A glob without a slash stands for a name at any depth, one with a slash for a path below the searched directory.

Invariant: matching takes time linear in the text, whatever the model writes, because the engine is RE2.
"""

import re
from typing import TYPE_CHECKING

from agent_lsp.errors import ToolError

if TYPE_CHECKING:
    from re2 import _Regexp as Pattern

_MAX_ALTERNATIVES = 100
_BRACES = re.compile(r"\{([^{}]*)\}")
_PIECE = re.compile(r"(?<![^/])\*\*(?:/|\Z)|\*+|\?|\[[!^]?\]?[^\]/]*\]|\\.|[^*?\[\\]+|.", re.DOTALL)
_SPECIAL_IN_CLASS = re.compile(r"([\\\[\]^&~|])")
_ESCAPED = r"\\\1"


def compile_pattern(pattern: str, *, literal: bool = False) -> "Pattern":
    """A regular expression over UTF-8 bytes, in which a dot takes any character. Raises ValueError."""
    import re2  # only where something is searched without ripgrep, or by a glob

    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    options.literal = literal
    try:
        return re2.compile(pattern.encode(), options=options)
    except re2.error as error:
        raise ValueError(error.args[0].decode(errors="replace")) from error


class Glob:
    """A glob, ready to match. Raises ToolError ``invalid_glob`` for one that means nothing."""

    def __init__(self, glob: str) -> None:
        self.alternatives = _expand(glob if not glob.endswith("/") else f"{glob}**")
        try:
            self._pattern = compile_pattern("|".join(map(_translate, self.alternatives)))
        except ValueError as error:
            raise ToolError("invalid_glob", f"Not a glob: {glob} ({error})") from error

    def matches(self, path: str) -> bool:
        """Whether a path, relative to the searched directory and with forward slashes, is meant."""
        return self._pattern.fullmatch(path.encode(errors="replace")) is not None

    @property
    def names(self) -> tuple[str, ...]:
        """Globs without a slash, one of which the name of every matching file fits; none where any name does."""
        names = tuple(alternative.rpartition("/")[2] for alternative in self.alternatives)
        return () if {"", "*", "**"} & set(names) else names

    @property
    def is_names_only(self) -> bool:
        return not any("/" in alternative for alternative in self.alternatives)


def _expand(glob: str) -> tuple[str, ...]:
    """Write out ``{a,b}``, the innermost first."""
    pending = [glob]
    done: list[str] = []
    while pending:
        if len(pending) + len(done) > _MAX_ALTERNATIVES:
            raise ToolError("invalid_glob", f"Too many alternatives: {glob}")
        current = pending.pop()
        if braces := _BRACES.search(current):
            head, tail = current[: braces.start()], current[braces.end() :]
            pending.extend(f"{head}{choice}{tail}" for choice in reversed(braces.group(1).split(",")))
        else:
            done.append(current)
    return tuple(done)


def _translate(glob: str) -> str:
    prefix = "" if "/" in glob else "(?:.*/)?"
    return prefix + "".join(_translate_piece(piece) for piece in _PIECE.findall(glob.removeprefix("/")))


def _translate_piece(piece: str) -> str:
    match piece:
        case "**/":
            return "(?:[^/]+/)*"
        case "**":
            return ".*"
        case "?":
            return "[^/]"
    if piece.startswith("*"):
        return "[^/]*"
    if piece.startswith("[") and len(piece) > 1:
        negated = piece[1] in "!^"
        return f"[{'^/' if negated else ''}{_SPECIAL_IN_CLASS.sub(_ESCAPED, piece[1 + negated : -1])}]"
    return re.escape(piece.removeprefix("\\") or piece)
