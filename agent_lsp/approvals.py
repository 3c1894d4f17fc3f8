"""What is put to a human before a call runs, and what the answer permits.

Invariant: behaviours combine by ``max`` (deny > ask > allow > passthrough), and a Permit names, by digest, exactly
what was approved: the frozen arguments and, for edits, the file content that was shown (A40).
"""

import enum
import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Protocol, TypeAlias

from agent_lsp.messages import JsonObject, thaw
from agent_lsp.workspace import Access, ResolvedPath, lines_with_ends


class PermissionBehavior(enum.IntEnum):
    """A verdict or a piece of advice; the greater one wins."""

    PASSTHROUGH = 0
    ALLOW = 1
    ASK = 2
    DENY = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What a prepared call would do, as the policy judges it: no tool type, no parameters, only effects."""

    tool: str
    access: Access
    paths: tuple[ResolvedPath, ...] = ()
    command: str | None = None


Operation: TypeAlias = tuple[str, int, int, int, int]
"""One step from old lines to new ones, as ``difflib`` has it: what, old start and end, new start and end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """A part of a change that can be taken alone, with its context. Lines count from 0, the end is excluded."""

    operations: tuple[Operation, ...]

    @property
    def before(self) -> range:
        """Its lines in the old text."""
        return range(self.operations[0][1], self.operations[-1][2])

    @property
    def after(self) -> range:
        """Its lines in the new text."""
        return range(self.operations[0][3], self.operations[-1][4])

    @property
    def replaced(self) -> range:
        """The old lines from the first to the last that does not stay; empty where lines are only added."""
        changed = [operation for operation in self.operations if operation[0] != "equal"]
        return range(changed[0][1], changed[-1][2])


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file before and after a call, as text for people; None means that the file does not exist.

    ``before_digest`` is the digest of the content that ``before`` was made from, so that a write can tell whether
    the file is still the one that was shown.
    """

    path: ResolvedPath
    before: str | None
    after: str | None
    before_digest: str

    def hunks(self) -> tuple[Hunk, ...]:
        """The parts of the change, in the order of the lines, as its diff shows them.

        Kept for a while; the first look at a large change takes seconds, so it is for a thread.
        """
        return _hunks(self.before or "", self.after or "")

    def only(self, hunks: Collection[int]) -> "FileChange":
        """The change with only some of its parts, by their place in ``hunks()``; the others stay as they are."""
        old, new = lines_with_ends(self.before or ""), lines_with_ends(self.after or "")
        lines, done = list[str](), 0
        for number, hunk in enumerate(self.hunks()):
            if number in hunks:
                lines += [*old[done : hunk.before.start], *new[hunk.after.start : hunk.after.stop]]
                done = hunk.before.stop
        return replace(self, after="".join([*lines, *old[done:]]))

    def diff(self) -> str:
        """The change as a unified diff, with characters that could mislead a reader made visible (F27).

        A CR counts among them, unless every line end is CRLF, before and after.
        """
        old, new = lines_with_ends(self.before or ""), lines_with_ends(self.after or "")
        name = visible(self.path.display)
        head = (
            f"--- {'/dev/null' if self.before is None else f'a/{name}'}\n"
            f"+++ {'/dev/null' if self.after is None else f'b/{name}'}\n"
        )
        if self.before == self.after:
            return ""
        if not old and not new:
            return f"{head}(empty file)\n"
        crlf = {line[len(line.rstrip("\r\n")) :] for line in (*old, *new)} - {""} == {"\r\n"}
        body = [
            f"@@ -{_span(hunk.before)} +{_span(hunk.after)} @@\n"
            + "".join(f"{sign}{_shown(line, crlf=crlf)}" for sign, line in _signed(hunk, old, new))
            for hunk in self.hunks()
        ]
        return "".join([head, *body])


class LineMatcher(SequenceMatcher[str]):
    """Tells what lines were replaced. Lines that stay at both ends cost nothing, and common ones are no junk."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        shorter = min(len(old), len(new))
        self._head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
        most = shorter - self._head
        self._tail = next((index for index in range(most) if old[-1 - index] != new[-1 - index]), most)
        self._ends = (len(old), len(new))
        old, new = (lines[self._head : len(lines) - self._tail] for lines in (old, new))
        counts = Counter(old)
        super().__init__(None, old, new, autojunk=sum(counts[line] for line in new) > _MOST_PAIRS)

    def get_opcodes(self) -> list[Operation]:  # type: ignore[override]
        """The steps from the old lines to the new ones."""
        old, new = self._ends
        steps: list[Operation] = [("equal", 0, self._head, 0, self._head)] if self._head else []
        for kind, *places in super().get_opcodes():
            start, end, new_start, new_end = (place + self._head for place in places)
            steps.append((kind, start, end, new_start, new_end))
        if self._tail:
            steps.append(("equal", old - self._tail, old, new - self._tail, new))
        return steps


_MOST_PAIRS = 1_000_000  # of equal lines, above which the matcher must guess


@lru_cache(maxsize=16)  # a change is looked at from several sides while it waits
def _hunks(before: str, after: str) -> tuple[Hunk, ...]:
    if before == after:
        return ()
    matcher = LineMatcher(lines_with_ends(before), lines_with_ends(after))
    return tuple(Hunk(operations=tuple(group)) for group in matcher.get_grouped_opcodes())


def _span(lines: range) -> str:
    """Lines as the head of a hunk counts them: from 1, and an empty span after the line before it."""
    if len(lines) == 1:
        return f"{lines.start + 1}"
    return f"{lines.start + bool(lines)},{len(lines)}"


def _signed(hunk: Hunk, old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    for kind, old_start, old_end, new_start, new_end in hunk.operations:
        if kind == "equal":
            yield from ((" ", line) for line in old[old_start:old_end])
        else:
            yield from (("-", line) for line in old[old_start:old_end])
            yield from (("+", line) for line in new[new_start:new_end])


def _shown(line: str, *, crlf: bool) -> str:
    text = visible(line.removesuffix("\r\n") if crlf else line.removesuffix("\n"))
    return f"{text}\n" if line.endswith(("\n", "\r")) else f"{text}\n\\ No newline at end of file\n"


class Scope(enum.Enum):
    """How far an Allow reaches."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A question to the human about one call, on its final arguments.

    ``rule`` is the smallest rule that *session* and *always* would remember, or None where only *once* can be offered.
    """

    id: str
    action: Action
    reason: str
    source: str
    arguments: JsonObject
    change: FileChange | None = None
    rule: str | None = None

    @property
    def digest(self) -> str:
        return digest(self.arguments, self.change)

    @property
    def target(self) -> str:
        """What the call is about, in one visible line: the command, else the paths."""
        return visible(self.action.command or ", ".join(path.display for path in self.action.paths)).replace("\n", "⏎")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalReply:
    """The human's answer; ``feedback`` goes to the model with a refusal.

    ``hunks`` names the parts of the change that are allowed, by their place; None is all of it.
    """

    allowed: bool
    scope: Scope = Scope.ONCE
    feedback: str = ""
    hunks: tuple[int, ...] | None = None


class Approver(Protocol):
    """The one door to the human."""

    async def ask(self, request: ApprovalRequest) -> ApprovalReply:
        """Wait for an answer. Anything that is not a clear Allow is a refusal; cancellation passes through."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """Leave to run one call, bound to what was judged and, where a human was asked, to what was shown."""

    call_id: str
    digest: str


def digest(arguments: JsonObject, change: FileChange | None) -> str:
    """The digest that binds an approval to arguments and to the change shown."""
    shown = None if change is None else [change.before_digest, change.after]
    text = json.dumps([thaw(arguments), shown], sort_keys=True, allow_nan=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def content_digest(content: bytes | None) -> str:
    """The digest of a file's bytes; a missing file has one of its own."""
    return "missing" if content is None else hashlib.sha256(content).hexdigest()


_LONG_BLANK = re.compile(r"[ \t\u00a0]{60,}(?=\S)")


def visible(text: str) -> str:
    """Make control, bidirectional, zero-width and other format characters, and long blank runs, readable (F27)."""
    shown = "".join(char if _is_plain(char) else f"\\u{{{ord(char):x}}}" for char in text)
    return _LONG_BLANK.sub(lambda match: f"⟨{len(match.group())} blanks⟩", shown)


def _is_plain(char: str) -> bool:
    return char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
