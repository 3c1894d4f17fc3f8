"""Judges one action: fixed boundaries, rules, remembered answers, hook advice and the mode become one Evaluation.

Invariant: explicit verdicts combine by ``max`` (deny > ask > allow). The default of the tool's kind counts only
where nothing spoke, and a mode can widen neither a deny, nor a control file, nor a command that nobody could read.
"""

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent_lsp.approvals import Action, PermissionBehavior, Scope
from agent_lsp.errors import ToolError
from agent_lsp.permissions.commands import GRANT, control_files, judge, parts_of, wanting_allow
from agent_lsp.permissions.control_files import is_control_file
from agent_lsp.permissions.evaluation import Evaluation
from agent_lsp.permissions.grants import Grants
from agent_lsp.permissions.rules import Rule, parse_rule
from agent_lsp.permissions.shell_syntax import CommandLine, parse
from agent_lsp.permissions.shell_words import HOLES
from agent_lsp.workspace import HARMLESS, Access, ResolvedPath, Workspace


class PermissionMode(enum.Enum):
    """How much is asked (S2)."""

    DEFAULT = "default"
    ACCEPT_EDITS = "accept_edits"
    PLAN = "plan"
    DONT_ASK = "dont_ask"
    BYPASS = "bypass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a Pre hook recommended (A44)."""

    behavior: PermissionBehavior
    source: str
    reason: str


_DEVICE = re.compile(r"/dev/(null|stdout|stderr|tty|fd/\d+)")
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
            elif action.access not in HARMLESS and is_control_file(path, self._workspace):
                yield Evaluation(
                    behavior=PermissionBehavior.ASK,
                    source="control-file",
                    reason=f"{path.display} controls what programs do and always asks",
                    fixed=True,
                )

    def _by_rule(self, action: Action) -> Iterator[Evaluation]:
        for rule in self.rules:
            if rule.matches(action, self._workspace):
                yield Evaluation(
                    behavior=rule.behavior,
                    source="rule",
                    reason=f"Rule {rule.text} ({rule.source}) says {rule.behavior}",
                )
        if action.command is not None:
            yield from self._by_command(action, parse(action.command))

    def _by_command(self, action: Action, line: CommandLine) -> Iterator[Evaluation]:
        yield from judge(line, self._command_rules(action))
        yield from control_files(line)
        for path in line.writes:
            if not _DEVICE.fullmatch(path):
                yield from self._redirected(path, Access.WRITE)
        for path in line.reads:
            yield from self._redirected(path, Access.READ)

    def _command_rules(self, action: Action) -> tuple[Rule, ...]:
        """The rules and remembered answers that are about commands of this tool and have a pattern."""
        return tuple(
            rule
            for rule in (*self.rules, *self._granted())
            if rule.pattern is not None and rule.problem is None and rule.names(action)
        )

    def _redirected(self, spelling: str, access: Access) -> Iterator[Evaluation]:
        """What a redirection to or from a file is: the same as a write or a read of it (F22)."""
        try:
            path = self._workspace.resolve(spelling)
        except ToolError as error:
            yield Evaluation(behavior=PermissionBehavior.ASK, source="redirection", reason=str(error))
            return
        tool = "write_file" if access is Access.WRITE else "read_file"
        verdict = self.decide(Action(tool=tool, access=access, paths=(path,)))
        if path.inside and verdict.behavior is not PermissionBehavior.ALLOW:
            yield verdict
        elif not path.inside and access is Access.WRITE:
            reason = f"It writes {path.display}, which is outside the workspace"
            yield Evaluation(behavior=PermissionBehavior.ASK, source="redirection", reason=reason)

    def _granted(self) -> tuple[Rule, ...]:
        return tuple(parse_rule(PermissionBehavior.ALLOW, text, GRANT) for text in self._grants.rules)

    def _remembered(self, action: Action) -> Iterator[Evaluation]:
        for rule in self._granted():
            if rule.matches(action, self._workspace):
                reason = f"You allowed {rule.text} before"
                yield Evaluation(behavior=PermissionBehavior.ALLOW, source=GRANT, reason=reason)

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
            pattern = self._missing(action, parse(action.command))
        elif len(action.paths) == 1 and not _WIDENS.search(action.paths[0].display):
            pattern = f"/{action.paths[0].display}"
        else:
            return None
        rule = parse_rule(PermissionBehavior.ALLOW, f"{action.tool}({pattern})", GRANT)
        return rule.text if pattern and rule.problem is None and self._helps(rule, action) else None

    def _missing(self, action: Action, line: CommandLine) -> str | None:
        """The one command of a line that no rule allows yet; None where there are several."""
        parts = wanting_allow(parts_of(line, self._command_rules(action)))
        missing = [part.command.words for part in parts if part.rule is None]
        if len(missing) != 1 or any(_WIDENS.search(word) or HOLES.search(word) for word in missing[0]):
            return None
        return " ".join(missing[0])

    def _helps(self, rule: Rule, action: Action) -> bool:
        """Whether the call would be allowed: patterns know no quotes, so some words and paths have none that fits."""
        if action.command is None:
            return rule.matches(action, self._workspace)
        verdicts = judge(parse(action.command), (*self._command_rules(action), rule))
        return any(verdict.behavior is PermissionBehavior.ALLOW for verdict in verdicts)

    def remember(self, action: Action, scope: Scope) -> None:
        """Keep an Allow as far as the human said."""
        rule = self.rule_for(action)
        if rule is not None and scope is not Scope.ONCE:
            self._grants.add(rule, persist=scope is Scope.ALWAYS)


def _by_mode(behavior: PermissionBehavior, reason: str) -> Evaluation:
    return Evaluation(behavior=behavior, source="mode", reason=reason)
