"""What would be executed, as something that a user can agree to.

Invariant: trust is by content. Whatever changes what runs, the text in the settings or a script of the workspace that
it names, changes the digest (B42, F70).
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_lsp.hooks.settings import ConfiguredHook
from agent_lsp.workspace import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustItem:
    """One thing that settings would execute, or widen."""

    text: str
    place: Place
    digest: str

    def __str__(self) -> str:
        return f"{self.text}  ({self.place})"


class Trust(Protocol):
    """What the user has agreed to."""

    def covers(self, digest: str) -> bool:
        """Whether content with this digest was approved."""
        ...

    def grant(self, items: Sequence[TrustItem]) -> None:
        """Remember an approval."""
        ...


def hook_item(hook: ConfiguredHook, root: Path) -> TrustItem:
    """A hook of a workspace as something to be trusted."""
    scripts = script_digests(hook.target, root) if hook.type == "command" else ()
    exact = [hook.event, hook.type, hook.target, hook.headers, hook.place.source, *scripts]
    digest = hashlib.sha256(json.dumps(exact).encode()).hexdigest()
    return TrustItem(text=f"{hook.event} {hook.type}: {hook.text}", place=hook.place, digest=digest)


_SCRIPT_SUFFIXES = frozenset(
    {".awk", ".bash", ".bat", ".cjs", ".cmd", ".fish", ".js", ".lua", ".mjs", ".php", ".pl", ".ps1", ".py", ".rb"}
    | {".sed", ".sh", ".ts", ".zsh"}
)
_INTERPRETER = re.compile(r"(.*/)?(ba|da|k|z)?sh|(.*/)?(python|node|ruby|perl|php|lua|deno|bun)[\d.]*|-f|source|\.")


def script_digests(command: str | tuple[str, ...], root: Path) -> Iterator[str]:
    """Digests of the workspace's own scripts in a command: whoever changes one of them changes the hook.

    Files that a command only writes to or reads must not count: they change with every run.
    """
    words = _words(command)
    for before, word in zip(("", *words), words, strict=False):
        path = root / word
        try:
            if path.is_file() and path.is_relative_to(root) and (_is_script(path) or _INTERPRETER.fullmatch(before)):
                yield hashlib.sha256(path.read_bytes()).hexdigest()
        except (OSError, ValueError):
            yield "unreadable"


def _words(command: str | tuple[str, ...]) -> tuple[str, ...]:
    """The words of a command, and of a shell's command line both as quoted and in pieces."""
    if isinstance(command, tuple):
        return command
    line = re.sub(r'"?\$\{?CLAUDE_PROJECT_DIR\}?"?', ".", command)
    pieces = re.findall(r"[^\s;&|<>()\"'`$]+", line)
    try:
        return (*pieces, *shlex.split(line))
    except ValueError:
        return tuple(pieces)


def _is_script(path: Path) -> bool:
    return path.suffix in _SCRIPT_SUFFIXES or bool(path.stat().st_mode & 0o111)
