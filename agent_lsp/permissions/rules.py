"""The syntax of permission rules and what they match: ``name`` or ``name(pattern)`` (S2).

Invariant: a bad rule never widens. A malformed allow or ask rule matches nothing; a malformed deny rule denies all
that its name could mean, or everything where even the name cannot be read.
"""

import enum
import functools
import re
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from agent_lsp.approvals import Action, PermissionBehavior
from agent_lsp.permissions.command_patterns import CommandPattern, command_pattern
from agent_lsp.workspace import Access, ResolvedPath, Workspace

GROUPS = {"read": Access.READ, "edit": Access.WRITE, "shell": Access.EXECUTE, "network": Access.NETWORK}

_SYNTAX = re.compile(r"(?P<name>[A-Za-z][\w-]*)(\((?P<pattern>.+)\))?", re.DOTALL)


class RuleProblem(enum.Enum):
    """Why a rule could not be read."""

    SYNTAX = "a rule is written name or name(pattern), for example edit(src/**)"
    PATTERN = "the pattern is not a valid path or command pattern"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule as written, with where it was written (a file and line, or a layer's name)."""

    behavior: PermissionBehavior
    text: str
    source: str
    name: str | None
    pattern: str | None = None
    problem: RuleProblem | None = None

    def matches(self, action: Action, workspace: Workspace) -> bool:
        """Whether the rule speaks about this action; with a pattern, about its paths. Commands are ``covers``' part."""
        if self.problem is not None:
            return self.behavior is PermissionBehavior.DENY and (self.name is None or self.names(action))
        return self.names(action) and (self.pattern is None or self._covers_paths(action, workspace))

    def names(self, action: Action) -> bool:
        """Whether the rule is about this tool."""
        return self.name == action.tool or (self.name in GROUPS and GROUPS[self.name] is action.access)

    def _covers_paths(self, action: Action, workspace: Workspace) -> bool:
        hits = [_path_matches(self.pattern or "", path, workspace) for path in action.paths]
        return bool(hits) and (all(hits) if self.behavior is PermissionBehavior.ALLOW else any(hits))

    @property
    def commands(self) -> CommandPattern:
        """The pattern, read as one for simple commands."""
        return command_pattern(self.pattern or "")


def parse_rule(behavior: PermissionBehavior, text: str, source: str) -> Rule:
    """Read a rule; what is wrong with it, if anything, is in ``problem``."""
    match = _SYNTAX.fullmatch(text.strip())
    if match is None:
        name = re.match(r"[A-Za-z][\w-]*", text.strip())
        return Rule(
            behavior=behavior,
            text=text,
            source=source,
            name=name.group() if name else None,
            problem=RuleProblem.SYNTAX,
        )
    pattern = match["pattern"]
    problem = None if pattern is None or _is_valid(pattern) else RuleProblem.PATTERN
    return Rule(behavior=behavior, text=text, source=source, name=match["name"], pattern=pattern, problem=problem)


def _is_valid(pattern: str) -> bool:
    try:
        _spec(pattern)
    except ValueError:
        return False
    return bool(pattern.strip()) and not pattern.lstrip().startswith(("!", "#"))


@functools.lru_cache(maxsize=512)
def _spec(pattern: str) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines([pattern])


def _path_matches(pattern: str, path: ResolvedPath, workspace: Workspace) -> bool:
    """Gitignore-style, against the workspace root; ``//`` starts at the file system's root, ``~/`` at home."""
    if pattern.startswith("//"):
        return _spec(pattern[1:]).match_file(path.path.as_posix().lstrip("/"))
    if pattern.startswith("~/"):
        home = Path.home().resolve()
        return home in path.path.parents and _spec(pattern[1:]).match_file(path.path.relative_to(home).as_posix())
    return any(
        root in path.path.parents and _spec(pattern).match_file(path.path.relative_to(root).as_posix())
        for root in workspace.roots
    )
