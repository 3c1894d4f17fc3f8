"""The words of a shell command, with marks in the place of what only the shell knows.

A mark is a character that no readable command holds: rules treat it as text that may be anything.
"""

import re
from typing import TypeAlias

Words: TypeAlias = tuple[str, ...]
"""Of one simple command."""

ONE = "\x01"
"""An expansion within quotes: any text, in one word."""

MANY = "\x02"
"""An expansion outside of quotes: any text, in any number of words."""

GLOB = "\x03"
"""A pattern of file names or a brace expansion: words that the files decide."""

HOLES = re.compile(f"[{ONE}{MANY}{GLOB}]")

_SYNTAX = re.compile(r"[$`'\"()<>|&;\s]")
_ESCAPED = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r"\\([$`\"\\\n])")
_PIECES = re.compile(r"\\(?:\n|.)|\\\Z|[*?\[~{]|[^\\*?\[~{]+", re.DOTALL)


def unquoted_text(text: str) -> str | None:
    """What an unquoted word stands for; None where it holds what should not be in one."""
    pieces = []
    for piece in _PIECES.findall(text):
        if piece.startswith("\\"):
            if len(piece) < 2:
                return None
            pieces.append("" if piece == "\\\n" else piece[1])
        elif piece in ("*", "?", "["):
            pieces.append(GLOB)
        elif piece == "~":
            pieces.append(ONE)
        elif _SYNTAX.search(piece):
            return None
        else:
            pieces.append(piece)
    return "".join(pieces)


def quoted_text(text: str) -> str:
    """What the text within double quotes stands for."""
    return _ESCAPED_IN_QUOTES.sub(lambda match: "" if match[1] == "\n" else match[1], text)
