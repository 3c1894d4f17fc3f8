"""What would be executed, as something that a user can agree to.

Invariant: trust is by content. Whatever changes what runs, the text in the settings or a script of the workspace that
it names, changes the digest (B42, F70).
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
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
    exact = [hook.event, hook.type, hook.target, hook.headers, hook.place.source, *_scripts(hook, root)]
    digest = hashlib.sha256(json.dumps(exact).encode()).hexdigest()
    return TrustItem(text=f"{hook.event} {hook.type}: {hook.text}", place=hook.place, digest=digest)


_SCRIPT_SUFFIXES = frozenset(
    ".bash .bat .cjs .cmd .fish .js .lua .mjs .php .pl .ps1 .py .rb .sh .ts .zsh".split()  # noqa: SIM905 (one word each)
)


def _scripts(hook: ConfiguredHook, root: Path) -> Iterator[str]:
    """Digests of the workspace's own scripts in a command: whoever changes one of them changes the hook."""
    if hook.type != "command":
        return
    for word in _words(hook.target):
        path = root / word
        try:
            if path.is_file() and path.is_relative_to(root) and (path.suffix in _SCRIPT_SUFFIXES or _runs(path)):
                yield hashlib.sha256(path.read_bytes()).hexdigest()
        except (OSError, ValueError):
            yield "unreadable"


def _words(command: str | tuple[str, ...]) -> Iterable[str]:
    if isinstance(command, tuple):
        return command
    return re.findall(r"[^\s;&|<>()\"'`$]+", re.sub(r'"?\$\{?CLAUDE_PROJECT_DIR\}?"?', ".", command))


def _runs(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o111)
