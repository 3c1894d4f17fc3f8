"""Judges one action: fixed boundaries, rules, remembered answers, hook advice and the mode become one Evaluation.

Invariant: explicit verdicts combine by ``max`` (deny > ask > allow). The default of the tool's kind counts only
where nothing spoke, and a mode can widen neither a deny, nor a control file, nor a command that nobody could read.
"""

import enum
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from agent_lsp.approvals import Action, PermissionBehavior, Scope
from agent_lsp.permissions.grants import Grants
from agent_lsp.permissions.rules import Rule, parse_rule
from agent_lsp.permissions.shell_syntax import simple_command
from agent_lsp.workspace import HARMLESS, Access, ResolvedPath, Workspace


class PermissionMode(enum.Enum):
    """How much is asked (S2)."""

    DEFAULT = "default"
    ACCEPT_EDITS = "accept_edits"
    PLAN = "plan"
    DONT_ASK = "dont_ask"
    BYPASS = "bypass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A verdict with its evidence. ``fixed`` verdicts are beyond modes, rules and remembered answers."""

    behavior: PermissionBehavior
    source: str
    reason: str
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a Pre hook recommended (A44)."""

    behavior: PermissionBehavior
    source: str
    reason: str


_CONTROL_FILES = GitIgnoreSpec.from_lines(
    [
        ".agent-lsp/",
        *(".git", ".hg/", ".gitconfig", ".gitmodules", ".husky/", ".pre-commit-config.yaml"),
        *(".vscode/", ".idea/", "*.code-workspace"),
        *("**/.github/workflows/", ".gitlab-ci.yml", ".circleci/", ".ci/"),
        *(".envrc", ".npmrc", ".pypirc", ".netrc", ".ssh/"),
        *(".profile", ".bashrc", ".bash_profile", ".bash_login", ".kshrc", ".zshrc", ".zshenv", ".zprofile"),
    ]
)

_WIDENS = re.compile(r"[*?\[]|\s\Z")  # as a pattern, a path with these would cover others too

_DEFAULTS = {
    Access.READ: Evaluation(
        behavior=PermissionBehavior.ALLOW, source="default", reason="No permission rule blocked the request"
    ),
    Access.WRITE: Evaluation(
        behavior=PermissionBehavior.ASK, source="write-default", reason="Changing files asks by default"
    ),
    Access.EXECUTE: Evaluation(
        behavior=PermissionBehavior.ASK, source="shell-default", reason="Running commands asks by default"
    ),
    Access.NETWORK: Evaluation(
        behavior=PermissionBehavior.ASK, source="network-default", reason="Network access asks by default"
    ),
    Access.INTERNAL: Evaluation(
        behavior=PermissionBehavior.ALLOW, source="default", reason="No permission rule blocked the request"
    ),
}


class Policy:
    """The rules, the mode and the remembered answers of one session.

    ``rules``, ``mode`` and ``locked`` may change while it lives. Without rules it is the empty policy of A64. While
    ``locked``, because a settings file with deny rules in it may be unreadable, nothing but a read is allowed unasked.
    """

    def __init__(
        self,
        *,
        workspace: Workspace,
        rules: Iterable[Rule] = (),
        mode: PermissionMode = PermissionMode.DEFAULT,
        grants: Grants | None = None,
    ) -> None:
        self.mode = mode
        self.rules = tuple(rules)
        self.locked = False
        self._workspace = workspace
        self._grants = grants or Grants()

    def decide(self, action: Action, advice: Advice | None = None) -> Evaluation:
        """The verdict on one action. Pure: asking is the caller's part."""
        explicit = [*self._boundaries(action), *self._by_rule(action)]
        if advice is not None:
            explicit.append(Evaluation(behavior=advice.behavior, source=advice.source, reason=advice.reason))
        explicit.extend(self._remembered(action))
        strongest = max(
            explicit, key=lambda verdict: (verdict.behavior, verdict.fixed), default=_DEFAULTS[action.access]
        )
        verdict = self._in_mode(strongest, action, is_default=not explicit)
        if self.locked and verdict.behavior is PermissionBehavior.ALLOW and action.access not in HARMLESS:
            reason = "A settings file cannot be read, so nothing is allowed unasked"
            return Evaluation(behavior=PermissionBehavior.ASK, source="settings", reason=reason)
        return verdict

    def may_read(self, path: ResolvedPath) -> bool:
        """Whether no rule denies reading a file; for tools that come upon files which no call named."""
        if not any(rule.behavior is PermissionBehavior.DENY for rule in self.rules):
            return True
        return self.decide(Action(tool="read_file", access=Access.READ, paths=(path,))).behavior is not (
            PermissionBehavior.DENY
        )

    def _boundaries(self, action: Action) -> Iterator[Evaluation]:
        for path in action.paths:
            if not path.inside:
                yield Evaluation(
                    behavior=PermissionBehavior.DENY,
                    source="workspace-boundary",
                    reason=f"{path.display} is outside the workspace",
                    fixed=True,
                )
            elif action.access not in HARMLESS and (
                _CONTROL_FILES.match_file(path.display.lstrip("/")) or self._holds_settings(path.path)
            ):
                yield Evaluation(
                    behavior=PermissionBehavior.ASK,
                    source="control-file",
                    reason=f"{path.display} controls what programs do and always asks",
                    fixed=True,
                )

    def _holds_settings(self, path: Path) -> bool:
        """Whether a path is where our settings really lie, if links lead there from their usual place (F24)."""
        usual = self._workspace.root / ".agent-lsp"
        places = {Path(os.path.realpath(usual / name)) for name in (".", "settings.json", "settings.local.json")}
        return not places.isdisjoint((path, *path.parents))

    def _by_rule(self, action: Action) -> Iterator[Evaluation]:
        for rule in self.rules:
            if rule.matches(action, self._workspace):
                yield Evaluation(
                    behavior=rule.behavior,
                    source="rule",
                    reason=f"Rule {rule.text} ({rule.source}) says {rule.behavior}",
                )
        hidden = self._behaviors_that_may_hide(action)
        if hidden:
            strongest = max(hidden)
            yield Evaluation(
                behavior=PermissionBehavior.ASK,
                source="shell-syntax",
                reason=f"The command is not a single simple one, and a rule may {strongest} a part of it",
                fixed=strongest is PermissionBehavior.DENY,  # bypass passes what only an ask rule would hold
            )

    def _behaviors_that_may_hide(self, action: Action) -> set[PermissionBehavior]:
        """What rules could say to a part of a command that cannot be read, allow aside."""
        if action.command is None or simple_command(action.command) is not None:
            return set()
        patterns = [rule for rule in self.rules if rule.pattern is not None and rule.name in ("shell", action.tool)]
        return {rule.behavior for rule in patterns} - {PermissionBehavior.ALLOW}

    def _remembered(self, action: Action) -> Iterator[Evaluation]:
        for text in self._grants.rules:
            if self._allows(text, action):
                yield Evaluation(behavior=PermissionBehavior.ALLOW, source="grant", reason=f"You allowed {text} before")

    def _allows(self, grant: str, action: Action) -> bool:
        return parse_rule(PermissionBehavior.ALLOW, grant, "grant").matches(action, self._workspace)

    def _in_mode(self, verdict: Evaluation, action: Action, *, is_default: bool) -> Evaluation:
        """What the mode makes of a verdict; it never touches a deny."""
        if verdict.behavior is PermissionBehavior.DENY:
            return verdict
        mode, asks = self.mode, verdict.behavior is PermissionBehavior.ASK
        if mode is PermissionMode.PLAN and action.access not in HARMLESS:
            return _by_mode(PermissionBehavior.DENY, f"Plan mode is read-only: {action.tool} is not a read")
        if mode is PermissionMode.DONT_ASK and asks:
            return _by_mode(PermissionBehavior.DENY, f"Mode dont_ask denies what would ask: {verdict.reason}")
        if verdict.fixed or not asks:
            return verdict
        if mode is PermissionMode.BYPASS:
            return _by_mode(PermissionBehavior.ALLOW, "Mode bypass asks nothing")
        if mode is PermissionMode.ACCEPT_EDITS and is_default and action.access is Access.WRITE:
            return _by_mode(PermissionBehavior.ALLOW, "Mode accept_edits allows edits inside the workspace")
        return verdict

    def rule_for(self, action: Action) -> str | None:
        """The smallest rule that covers this call, to offer as *Always allow*; None where none would help (F25)."""
        if any(True for _ in self._boundaries(action)) or any(
            verdict.behavior is PermissionBehavior.ASK for verdict in self._by_rule(action)
        ):
            return None
        if action.command is not None:
            pattern = " ".join(simple_command(action.command) or ())
        elif len(action.paths) == 1 and not _WIDENS.search(action.paths[0].display):
            pattern = f"/{action.paths[0].display}"
        else:
            return None
        rule = f"{action.tool}({pattern})"  # patterns know no quotes, so some words and paths have none that matches
        return rule if self._allows(rule, action) else None

    def remember(self, action: Action, scope: Scope) -> None:
        """Keep an Allow as far as the human said."""
        rule = self.rule_for(action)
        if rule is not None and scope is not Scope.ONCE:
            self._grants.add(rule, persist=scope is Scope.ALWAYS)


def _by_mode(behavior: PermissionBehavior, reason: str) -> Evaluation:
    return Evaluation(behavior=behavior, source="mode", reason=reason)
