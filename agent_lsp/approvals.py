"""What is put to a human before a call runs, and what the answer permits.

Invariant: behaviours combine by ``max`` (deny > ask > allow > passthrough), and a Permit names, by digest, exactly
what was approved: the frozen arguments and, for edits, the file content that was shown (A40).
"""

import difflib
import enum
import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Protocol

from agent_lsp.messages import JsonObject, thaw
from agent_lsp.workspace import Access, ResolvedPath


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

    def diff(self) -> str:
        """The change as a unified diff, with characters that could mislead a reader made visible (F27).

        A CR counts among them, unless every line ends in CRLF, before and after.
        """
        before, after = self.before or "", self.after or ""
        if {*_LINE_END.findall(before), *_LINE_END.findall(after)} == {"\r\n"}:
            before, after = before.replace("\r\n", "\n"), after.replace("\r\n", "\n")
        name = visible(self.path.display)
        names = (
            "/dev/null" if self.before is None else f"a/{name}",
            "/dev/null" if self.after is None else f"b/{name}",
        )
        if before == after == "" and self.before != self.after:
            return f"--- {names[0]}\n+++ {names[1]}\n(empty file)\n"
        old, new = (visible(text).splitlines(keepends=True) for text in (before, after))
        lines = difflib.unified_diff(old, new, *names)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


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
    """The human's answer; ``feedback`` goes to the model with a refusal."""

    allowed: bool
    scope: Scope = Scope.ONCE
    feedback: str = ""


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


_LINE_END = re.compile(r"\r\n|\n|\r")
_LONG_BLANK = re.compile(r"[ \t\u00a0]{60,}(?=\S)")


def visible(text: str) -> str:
    """Make control, bidirectional, zero-width and other format characters, and long blank runs, readable (F27)."""
    shown = "".join(char if _is_plain(char) else f"\\u{{{ord(char):x}}}" for char in text)
    return _LONG_BLANK.sub(lambda match: f"⟨{len(match.group())} blanks⟩", shown)


def _is_plain(char: str) -> bool:
    return char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
