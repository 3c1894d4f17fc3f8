"""Judges a shell command by what it runs and writes (F20 to F22, F24).

Invariant: a rule allows a line only if each part of it that does something is allowed and none is unclear; one part
that a rule denies denies the line, and one that it could deny asks, in every mode.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent_lsp.approvals import PermissionBehavior, visible
from agent_lsp.permissions.control_files import may_name_control_file
from agent_lsp.permissions.evaluation import Evaluation
from agent_lsp.permissions.rules import Rule
from agent_lsp.permissions.shell_syntax import CommandLine, SimpleCommand
from agent_lsp.permissions.shell_words import HOLES, MANY, ONE, Words
from agent_lsp.permissions.shell_wrappers import program

DENY, ASK, ALLOW = PermissionBehavior.DENY, PermissionBehavior.ASK, PermissionBehavior.ALLOW

GRANT = "grant"
"""The source of rules that a human gave by an answer."""

_READS = frozenset(
    [
        *("basename", "cat", "cd", "cmp", "cut", "diff", "dirname", "du", "echo", "egrep", "fgrep", "file", "grep"),
        *("head", "less", "ls", "md5sum", "more", "printf", "pwd", "readlink", "realpath", "rg", "sha256sum", "stat"),
        *("tail", "test", "tree", "wc"),
    ]
)
_GIT_READS = frozenset(["add", "blame", "commit", "diff", "log", "ls-files", "show", "status"])
_WRITES_ITS_WORDS = frozenset(["cp", "dd", "install", "ln", "mv", "rsync", "sed", "tee", "touch", "truncate", "unlink"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One simple command of a line and the rule that speaks about it most strongly.

    Where it is not ``certain``, the rule would speak only for some of what an expansion may come to.
    """

    command: SimpleCommand
    rule: Rule | None = None
    certain: bool = True


def parts_of(line: CommandLine, rules: Sequence[Rule]) -> tuple[Part, ...]:
    """Each simple command with the rule about it. The rules are those with a pattern that are about the tool."""
    return tuple(_part(command, rules) for command in line.commands)


def _part(command: SimpleCommand, rules: Sequence[Rule]) -> Part:
    found = [
        Part(command=command, rule=rule, certain=certain)
        for rule in rules
        if (certain := _speaks(rule, command.words)) is not None
    ]
    return max(found, key=_strength, default=Part(command=command))


def _strength(part: Part) -> tuple[PermissionBehavior, bool]:
    return (PermissionBehavior.PASSTHROUGH if part.rule is None else part.rule.behavior), part.certain


def _speaks(rule: Rule, words: Words) -> bool | None:
    """Whether a rule is about words for certain, perhaps, or not at all (None)."""
    if rule.behavior is ALLOW:
        return True if rule.commands.covers(words) else None
    if rule.commands.surely_covers(words):
        return True
    return False if rule.commands.may_cover(words) else None


def judge(line: CommandLine, rules: Sequence[Rule]) -> Iterator[Evaluation]:
    """What rules with a pattern say to a line."""
    parts = parts_of(line, rules)
    for part in parts:
        if part.rule is not None and part.rule.behavior is not ALLOW:
            yield _verdict(part, part.rule)
    hidden = {rule.behavior for rule in rules} - {ALLOW}
    if line.unclear and hidden:
        yield Evaluation(
            behavior=ASK,
            source="shell-syntax",
            reason=f"A rule may {max(hidden)} a part of the command, which is not clear: {line.unclear[0]}",
            fixed=max(hidden) is DENY,  # bypass passes what only an ask rule would hold
        )
    wanting = wanting_allow(parts)
    allowing = [part.rule for part in wanting if part.rule is not None and part.rule.behavior is ALLOW]
    if allowing and len(allowing) == len(wanting) and not line.unclear:
        yield _allowed(tuple(dict.fromkeys(allowing)))


def wanting_allow(parts: Sequence[Part]) -> Sequence[Part]:
    """The parts that must be allowed: those that do something, or all of a line in which none does."""
    return [part for part in parts if part.command.needs_allow] or parts


def _verdict(part: Part, rule: Rule) -> Evaluation:
    if part.certain:
        return Evaluation(
            behavior=rule.behavior, source="rule", reason=f"Rule {rule.text} ({rule.source}) says {rule.behavior}"
        )
    return Evaluation(
        behavior=ASK,
        source="rule",
        reason=f"Rule {rule.text} ({rule.source}) may {rule.behavior} {readable(part.command.words)}",
        fixed=rule.behavior is DENY,
    )


def _allowed(rules: Sequence[Rule]) -> Evaluation:
    by_rule = [f"Rule {rule.text} ({rule.source}) says allow" for rule in rules if rule.source != GRANT]
    granted = [f"You allowed {rule.text} before" for rule in rules if rule.source == GRANT]
    source = "rule" if by_rule else GRANT
    return Evaluation(behavior=ALLOW, source=source, reason="; ".join([*by_rule, *granted]))


def control_files(line: CommandLine) -> Iterator[Evaluation]:
    """Words that name files which control what programs do, for what may write them; what cannot be seen asks too."""
    for command in line.commands:
        words = command.words
        if not command.needs_allow or _only_reads(words):
            continue
        for word in words[1:]:
            if may_name_control_file(word):
                reason = f"{readable((word,))} may name what controls other programs, which always asks"
                yield Evaluation(behavior=ASK, source="control-file", reason=reason, fixed=True)
            elif program(words[0]) in _WRITES_ITS_WORDS and (MANY in word or ONE in word):
                reason = f"It is computed which files {readable(words[:1])} writes"
                yield Evaluation(behavior=ASK, source="control-file", reason=reason)


def _only_reads(words: Words) -> bool:
    name = program(words[0])
    return name in _READS or (name == "git" and len(words) > 1 and words[1] in _GIT_READS)


def readable(words: Words) -> str:
    """Words for a human, with dots for what only the shell knows."""
    return visible(" ".join(HOLES.sub("…", word) for word in words))
