"""What a round of validators came to, as the model, the events and the human are told it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_lsp.agent.events import FindingSeen, ValidationReport, ValidatorFinished
from agent_lsp.messages import system_reminder
from agent_lsp.validation.validator import Finding, Validator

if TYPE_CHECKING:  # imported where it is first used: most of a session goes without
    from agent_lsp.validation.run import ValidatorResult

REMINDER = "The PostStopValidation hook failed. Fix the problem based on the following output:"
NO_OUTPUT = "post-stop validation failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One thing that is red: what the model is to hear of it, and what tells it from another failure."""

    name: str
    command: str
    output: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round came to; ``failures`` go back to the model, with what validators ``changed`` themselves (F10)."""

    report: ValidationReport
    failures: tuple[Failure, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def reminder(self) -> str:
        """The exact words that go back to the model (B37); several outputs are told apart by their commands."""
        if len(self.failures) == 1 and not self.changed:
            return system_reminder(f"{REMINDER}\n{self.failures[0].output}")
        outputs = [f"$ {failure.command}\n{failure.output}" for failure in self.failures]
        outputs += [f"{change}; read it again." for change in self.changed]
        return system_reminder(f"{REMINDER}\n" + "\n\n".join(outputs))

    @property
    def fingerprint(self) -> frozenset[str]:
        return frozenset(failure.fingerprint for failure in self.failures)


def command_line(validator: Validator) -> str:
    """The command as people write it."""
    return validator.command if isinstance(validator.command, str) else shlex.join(validator.command)


def seen(finding: Finding, *, fresh: Sequence[Finding] | None) -> FindingSeen:
    """A finding as events carry it; ``fresh`` are the new ones, where the others were there before."""
    return FindingSeen(
        path=finding.path,
        line=finding.line,
        column=finding.column,
        message=finding.message,
        code=finding.code,
        tool=finding.tool,
        severity=finding.severity,
        already_failing=fresh is not None and finding not in fresh,
    )


def failure_of(result: "ValidatorResult", fresh: Sequence[Finding] | None) -> Failure:
    """What the model hears; ``fresh`` are the new findings, where the others were there before."""
    validator = result.validator
    output = result.output
    if fresh:
        old = sorted({f"{finding.path}: {finding.message}" for finding in result.findings if finding not in fresh})
        listed = "\n".join(old[:20])
        output = f"{output}\n\nThis failed before your changes too and is not yours to mend:\n{listed}"
    if result.status == "timeout":
        output = "\n".join(filter(None, (output, f"[timed out after {validator.timeout:g} s]")))
    return Failure(
        name=validator.name,
        command=command_line(validator),
        output=output or NO_OUTPUT,
        fingerprint=result.fingerprint,
    )


def finished_event(result: "ValidatorResult") -> ValidatorFinished:
    return ValidatorFinished(
        name=result.validator.name,
        status=result.status,
        duration=result.duration,
        output=result.output if result.status != "green" else "",
        log=None if result.log is None else str(result.log),
    )


def notes_of(result: "ValidatorResult") -> list[str]:
    """What is worth a word besides red and green."""
    name = result.validator.name
    notes = []
    if result.status == "not run":
        notes.append(f"{name} was not run: {result.output}")
    if result.status == "missing":
        notes.append(f"{name} cannot be run here: {result.output.splitlines()[-1] if result.output else 'not found'}")
    if result.changed:
        notes.append(f"{name} changed {', '.join(result.changed[:20])}")
    return notes
