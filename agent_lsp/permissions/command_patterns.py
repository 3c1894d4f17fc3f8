"""Patterns over the words of one simple command: ``*`` is one or more words, or a part of one word beside text.

A final `` *`` also covers the command without further words. Words may hold marks for what only the shell knows:
a pattern covers them only where it would cover whatever they come to.
"""

import functools
import re
from dataclasses import dataclass

from agent_lsp.permissions.shell_words import GLOB, HOLES, MANY, Words
from agent_lsp.permissions.shell_wrappers import program

_SEVERAL = f"{MANY}{GLOB}"  # a part of a word cannot stand for what may be several


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPattern:
    """A pattern as written, split into words."""

    words: Words

    def covers(self, words: Words) -> bool:
        """Whether the pattern takes these words, whatever their marks stand for."""
        return _covering(self.words).fullmatch("\0".join(words)) is not None

    def may_cover(self, words: Words) -> bool:
        """Whether it could take them, also with the program's path left out; for rules that deny or ask."""
        return _may_meet(self.words, words) or _may_meet(self.words, (program(words[0]), *words[1:]))

    def surely_covers(self, words: Words) -> bool:
        """Whether it takes them as they are or with the program's path left out; for rules that deny or ask."""
        return self.covers(words) or self.covers((program(words[0]), *words[1:]))


@functools.lru_cache(maxsize=512)
def command_pattern(text: str) -> CommandPattern:
    """Read a pattern."""
    return CommandPattern(words=tuple(text.split()))


@functools.lru_cache(maxsize=512)
def _covering(pattern: Words) -> re.Pattern[str]:
    parts = [".+" if word == "*" else f"[^\0{_SEVERAL}]*".join(map(re.escape, word.split("*"))) for word in pattern]
    if len(pattern) > 1 and pattern[-1] == "*":
        return re.compile("\0".join(parts[:-1]) + "(\0.+)?", re.DOTALL)
    return re.compile("\0".join(parts), re.DOTALL)


def _may_meet(pattern: Words, words: Words) -> bool:
    """Whether some text for the marks makes the pattern cover the words; too often yes rather than once too seldom."""
    known = next((place for place, word in enumerate(words) if HOLES.search(word)), None)
    if known is None:
        return _covering(pattern).fullmatch("\0".join(words)) is not None
    head, start = words[:known], HOLES.split(words[known])[0]
    for place, part in enumerate(pattern):
        if part == "*":
            return True
        if place < len(head):
            if _covering((part,)).fullmatch(head[place]) is None:
                return False
            continue
        wanted = part.partition("*")[0]
        several = MANY in words[known] or GLOB in words[known]
        return several or wanted.startswith(start) or start.startswith(wanted)
    return len(head) <= len(pattern)
