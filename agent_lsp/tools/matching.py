"""How an edit's old text is found in a file, and what replaces it.

Invariant: text outside the matched span is never touched. Line ends in an edit stand for those of the file, whichever
it has at that place; every other character must match exactly, or, where nothing does, all but white space (F32).
"""

import difflib
import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise

from agent_lsp.errors import ToolError
from agent_lsp.tools.files import LINE_END, Lines, line_number, split_lines

_LAST_LINE_END = re.compile(r"(?:\r\n|\n|\r)\Z")
_ANY_LINE_END = r"(?:\r\n|\r(?!\n)|(?<!\r)\n)"
_LISTED_PLACES = 10
_COUNTED_PLACES = 1_000
_SHOWN_CANDIDATES = 3
_SHOWN_LINES = 12
_SHOWN_WIDTH = 200
_RATED_LINES = 10_000
_COMPARED_LINES = 200
_CUTOFF = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """A text after one edit, the 1-based line where its first change begins, and how many places changed.

    ``loose`` says that only white space told the old text and the file apart.
    """

    text: str
    line: int
    count: int = 1
    loose: bool = False


def apply_edit(text: str, old: str, new: str, *, every: bool) -> Edited:
    """Replace the one place where ``old`` stands, or ``every`` one.

    Raises ToolError ``ambiguous_edit`` for several places, ``text_not_found`` for none, with the nearest lines.
    """
    found = _find(text, old, overlapping=not every)
    spans = list(found if every else islice(found, _COUNTED_PLACES))
    if not spans:
        return _apply_loosely(text, old, new)
    if len(spans) > 1 and not every:
        raise _ambiguous(text, [start for start, _ in spans], "matches")
    return Edited(text=_replace(text, spans, new), line=line_number(text, spans[0][0]), count=len(spans))


def nearest_lines(text: str, old: str) -> str:
    """The passages of a text that resemble ``old`` most, with line numbers; empty where nothing does."""
    lines, wanted = _contents(text), _contents(old)
    if not wanted:
        return ""
    anchor_at = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    anchor = wanted[anchor_at].strip()[:_SHOWN_WIDTH]
    first_at: dict[str, int] = {}
    for index, line in enumerate(lines):
        first_at.setdefault(line.strip()[:_SHOWN_WIDTH], index)
    similar = difflib.get_close_matches(anchor, likely_lines(anchor, first_at), _SHOWN_CANDIDATES, _CUTOFF)
    starts = sorted(max(first_at[line] - anchor_at, 0) for line in similar)
    return "\n--\n".join(_numbered(lines, start, min(len(wanted), _SHOWN_LINES)) for start in starts)


def likely_lines(anchor: str, lines: Iterable[str]) -> list[str]:
    """The few lines that are worth a real comparison, which is slow: those that share the most pairs of characters."""
    if not anchor:
        return []
    wanted = set(pairwise(anchor))
    # As difflib counts, lines that differ this much in length are never similar enough.
    shortest, longest = len(anchor) * _CUTOFF / (2 - _CUTOFF), len(anchor) * (2 - _CUTOFF) / _CUTOFF
    rated = islice((line for line in lines if shortest <= len(line) <= longest), _RATED_LINES)
    return heapq.nlargest(
        _COMPARED_LINES, rated, key=lambda line: len(wanted.intersection(pairwise(line))) / (len(anchor) + len(line))
    )


def _numbered(lines: list[str], start: int, count: int) -> str:
    shown = enumerate(lines[start : start + count], start + 1)
    return "\n".join(f"{number}\t{line[:_SHOWN_WIDTH]}" for number, line in shown)


def _contents(text: str) -> list[str]:
    """The lines of a text without their ends."""
    return [content for content, _end in split_lines(text)]


def _find(text: str, old: str, *, overlapping: bool) -> Iterator[tuple[int, int]]:
    """Each span where ``old`` stands, in order."""
    if "\r" not in text:
        old = LINE_END.sub("\n", old)
    if "\r" not in text or not LINE_END.search(old):
        start = text.find(old)
        while start >= 0:
            end = start + len(old)
            yield start, end
            start = text.find(old, start + 1 if overlapping else end)
        return
    pattern = re.compile(_ANY_LINE_END.join(re.escape(part) for part in LINE_END.split(old)))
    match = pattern.search(text)
    while match:
        yield match.span()
        match = pattern.search(text, match.start() + 1 if overlapping else match.end())


def _replace(text: str, spans: list[tuple[int, int]], new: str) -> str:
    edges = [(0, 0), *spans, (len(text), len(text))]
    kept = [text[before[1] : after[0]] for before, after in pairwise(edges)]
    written = _with_line_ends_of(text, spans, LINE_END.sub("\n", new))
    return "".join(piece for pair in zip(kept, [*written, ""], strict=True) for piece in pair)


def _with_line_ends_of(text: str, spans: list[tuple[int, int]], new: str) -> list[str]:
    """The new text for each span: with the line end inside it, else the next after it, else the file's usual one."""
    if "\n" not in new or "\r" not in text:
        return [new] * len(spans)
    line_end, known_from = _usual_line_end(text), len(text)
    written: list[str] = []
    for start, _end in reversed(spans):
        found = LINE_END.search(text, start, known_from)
        line_end, known_from = found.group() if found else line_end, start
        written.append(new.replace("\n", line_end))
    return written[::-1]


def _usual_line_end(text: str) -> str:
    ends: list[str] = LINE_END.findall(text)
    return max(sorted(set(ends)), key=ends.count)


# --- white space aside


def _apply_loosely(text: str, old: str, new: str) -> Edited:
    """Match whole lines by their words alone; the new text takes the file's indentation."""
    if _LAST_LINE_END.search(old) and _LAST_LINE_END.search(new):  # then the file's own stays, or stays missing
        old, new = _LAST_LINE_END.sub("", old), _LAST_LINE_END.sub("", new)
    lines, wanted = split_lines(text), split_lines(old)
    words = [content.split() for content, _end in lines]
    wanted_words = [content.split() for content, _end in wanted]
    places = [
        index
        for index, first in enumerate(words)
        if first == wanted_words[0] and words[index : index + len(wanted)] == wanted_words
    ]
    if not any(wanted_words) or not places:
        raise _not_found(text, old)
    starts = [0, *accumulate(len(content) + len(end) for content, end in lines)]
    if len(places) > 1:
        raise _ambiguous(text, [starts[place] for place in places], "matches, white space aside,")
    first, last = places[0], places[0] + len(wanted) - 1
    old_ends_line = bool(wanted[-1][1])
    span = (starts[first], starts[last + 1] if old_ends_line else starts[last] + len(lines[last][0]))
    indents = _indentations(wanted, lines[first : last + 1])
    indented = "".join(_indent(content, indents) + end for content, end in split_lines(new))
    return Edited(text=_replace(text, [span], indented), line=first + 1, loose=True)


def _indentations(old: Lines, found: Lines) -> dict[str, str]:
    """What each indentation of the old text is in the file, the longest first."""
    pairs = {
        _indentation(theirs): _indentation(ours)
        for (theirs, _), (ours, _) in reversed(list(zip(old, found, strict=True)))
        if theirs.strip()
    }
    return dict(sorted(pairs.items(), key=lambda pair: -len(pair[0])))


def _indent(line: str, indents: dict[str, str]) -> str:
    """A new line with the longest indentation that the old text had too exchanged for the file's."""
    if not line.strip():
        return line
    theirs = next((indent for indent in indents if _indentation(line).startswith(indent)), "")
    return indents.get(theirs, "") + line.removeprefix(theirs)


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


# --- errors


def _not_found(text: str, old: str) -> ToolError:
    nearest = nearest_lines(text, old)
    hint = f"The nearest lines are:\n{nearest}" if nearest else "Nothing in the file resembles it"
    return ToolError("text_not_found", f"The old text is not in the file. {hint}")


def _ambiguous(text: str, starts: list[int], verb: str) -> ToolError:
    count = f"at least {len(starts):,}" if len(starts) == _COUNTED_PLACES else f"{len(starts):,}"
    lines = ", ".join(str(line_number(text, start)) for start in starts[:_LISTED_PLACES])
    more = ", …" if len(starts) > _LISTED_PLACES else ""
    return ToolError(
        "ambiguous_edit",
        f"The old text {verb} {count} places (lines {lines}{more}). Add lines around it, or set all to change each",
    )
