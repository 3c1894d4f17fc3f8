"""What happens when the agent stops: the project's validators run until green or a cap is reached (B34 to B39).

Invariants: what was not verified stays dirty; what is not trusted is not run; a failure that comes back without any
new change ends the rounds.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from agent_lsp.agent.agent import ChangeRecorder, NoRecorder
from agent_lsp.agent.events import (
    AgentEvent,
    CommandRan,
    Emit,
    FileChanged,
    SaveAwaited,
    SubagentEvent,
    ValidationFinished,
    ValidationReport,
    ValidationStarted,
    ValidatorFinished,
    ValidatorStarted,
)
from agent_lsp.approvals import Action
from agent_lsp.hooks.gate import TrustGate
from agent_lsp.hooks.runner import HookRunner, Occasion
from agent_lsp.hooks.settings import VALIDATION, ConfiguredHook
from agent_lsp.hooks.trust import TrustItem
from agent_lsp.session.rounds import (
    NO_OUTPUT,
    Failure,
    Round,
    command_line,
    failure_of,
    finished_event,
    notes_of,
    seen,
)
from agent_lsp.settings.load import LoadedSettings
from agent_lsp.settings.trust import validator_item
from agent_lsp.validation.validator import Finding, Validator
from agent_lsp.workspace import Access, Documents

if TYPE_CHECKING:  # imported where they are first used: most of a session goes without
    from agent_lsp.validation.baseline import Snapshot
    from agent_lsp.validation.run import ValidatorResult

_log = logging.getLogger(__name__)

_VALIDATORS = Action(tool="validation", access=Access.EXECUTE)


def project_validators(loaded: LoadedSettings, root: Path) -> tuple[Validator, ...]:
    """The validators that the settings name, else those that the project shows it has. Reads files, runs nothing."""
    settings = loaded.settings.validation
    if not settings.enabled:
        return ()
    if loaded.validators or not settings.detect:
        return loaded.validators
    from agent_lsp.validation.detect import detect

    return tuple(validator for validator in detect(root) if validator.name not in settings.skip)


class Validation:
    """The validators of one session, and which changes they have not seen yet.

    ``waiting`` lists what one question of trust is about, validators aside.
    """

    def __init__(
        self,
        runner: HookRunner,
        *,
        root: Path,
        logs: Path,
        gate: TrustGate,
        waiting: Callable[[], Sequence[TrustItem]],
        emit: Emit,
        documents: Documents,
    ) -> None:
        self.changes = 0
        """How often anything was changed; a number to tell whether something was."""
        self.recorder: ChangeRecorder = NoRecorder()
        self._runner = runner
        self._root = root
        self._logs = logs
        self._gate = gate
        self._waiting = waiting
        self._emit = emit
        self._documents = documents
        self._verified = 0
        self._begun = False
        self._spent = 0.0
        self._snapshot: Snapshot | str = "nothing was changed in this prompt"
        self._files: dict[str, None] | None = {}
        self._written: set[Path] = set()

    def configure(self, loaded: LoadedSettings, environment: dict[str, str]) -> None:
        """Take other settings."""
        self._loaded = loaded
        self._environment = environment

    @property
    def time_left(self) -> float:
        """Seconds that this prompt still has for validation (B39)."""
        return max(self._loaded.settings.validation.timeout - self._spent, 0.0)

    @property
    def dirty(self) -> bool:
        """Whether there are changes that no green round has seen."""
        return self.changes != self._verified

    async def before_change(self) -> None:
        """Keep the project as it is before the agent's first change of a prompt, for the baseline."""
        from agent_lsp.validation.baseline import Unknown, take_snapshot

        settings = self._loaded.settings.validation
        if self._begun or not (settings.enabled and settings.baseline):
            return
        self._begun = True
        validators = await anyio.to_thread.run_sync(project_validators, self._loaded, self._root)
        if not any(self._gate.covers(validator_item(validator, self._root).digest) for validator in validators):
            self._snapshot = "no validator was trusted when the change began"
            return
        try:
            self._snapshot = await take_snapshot(self._root, self._environment)
        except Unknown as error:
            self._snapshot = str(error)
        except Exception as error:
            _log.exception("the baseline cannot be kept")
            self._snapshot = f"{type(error).__name__}: {error}"

    def end_prompt(self) -> None:
        """A prompt has ended; what is not verified keeps its baseline, or the next prompt would take it for old."""
        self._spent = 0.0
        if not self.dirty:
            self.forget_baseline()

    def forget_baseline(self) -> None:
        """The next change begins with a baseline of its own."""
        self._begun = False
        if not isinstance(self._snapshot, str):
            self._snapshot.remove()
        self._snapshot = "nothing was changed in this prompt"

    def note(self, event: AgentEvent) -> None:
        """Hear the event stream: a write that succeeded and any program may have broken something (B34)."""
        match event:
            case FileChanged(path=path):
                self.changes += 1
                self._written.add(self._root / path)
                if self._files is not None:
                    self._files[path] = None
            case CommandRan():
                self.changes += 1
                self._files = None  # what a program changed, nobody knows
            case SubagentEvent():
                self.note(event.event)

    async def run(self, attempt: int, limit: int, *, everything: bool = False) -> Round:
        """Run what the unverified changes concern, or everything. A green round verifies what it has seen.

        What an editor holds and has not saved is waited for: validators read files.
        """
        from agent_lsp.validation.run import concerned

        seen = self.changes
        changed = None if everything or self._files is None else tuple(self._files)
        validators = concerned(await anyio.to_thread.run_sync(project_validators, self._loaded, self._root), changed)
        enabled = self._loaded.settings.validation.enabled
        hooks = [hook for hook in self._runner.hooks if enabled and hook.event == VALIDATION]
        names = (*(hook.name for hook in hooks), *(validator.name for validator in validators))
        if not names:
            self._verify(seen)
            return Round(report=ValidationReport(status="none"))
        unsaved = await self._documents.until_saved(self._written, lambda files: self._emit(SaveAwaited(files=files)))
        self._emit(ValidationStarted(attempt=attempt, limit=limit, validators=names))
        begun = anyio.current_time()
        result = Round(report=ValidationReport(status="none"))  # what a cancelled round came to
        try:
            result = await self._run(hooks, validators, attempt, limit, compare=not everything)
            notes = (f"{name} is not saved, and validators read the file on disk" for name in unsaved)
            result = replace(result, report=replace(result.report, notes=(*notes, *result.report.notes)))
        finally:
            self._spent += anyio.current_time() - begun
            if result.report.status == "green" and not unsaved:
                self._verify(seen)
            self._emit(ValidationFinished(attempt=attempt, limit=limit, report=result.report))
        return result

    def _verify(self, seen: int) -> None:
        """All changes up to then are verified, unless something changed meanwhile (B39)."""
        if self.changes == seen:
            self._verified = seen
            self._files = {}

    async def _run(
        self,
        hooks: Sequence[ConfiguredHook],
        validators: Sequence[Validator],
        attempt: int,
        limit: int,
        *,
        compare: bool,
    ) -> Round:
        from agent_lsp.validation.run import Surroundings, run_validators

        failures, notes, refused = await self._run_hooks(hooks, attempt, limit)
        trusted = [validator for validator in validators if await self._may_run(validator, validators, notes)]
        async with self.recorder.recording(_VALIDATORS) if trusted else nullcontext():
            results = await run_validators(
                trusted,
                Surroundings(root=self._root, environment=self._environment, logs=self._logs),
                timeout=self.time_left,
                started=lambda each: self._emit(
                    ValidatorStarted(name=each.name, command=command_line(each), directory=each.directory)
                ),
                finished=lambda result: self._emit(finished_event(result)),
            )
        known = await self._known_before(results, notes) if compare else {}
        failures += [failure_of(result, known.get(result.validator.name)) for result in results if result.failed]
        already = tuple(name for name, fresh in known.items() if not fresh)
        failures = [failure for failure in failures if failure.name not in already]
        notes += [note for result in results for note in notes_of(result)]
        refused = refused or len(trusted) < len(validators) or any(result.status == "not run" for result in results)
        ran = any(result.status != "missing" for result in results) or len(hooks) > 0
        report = ValidationReport(
            status="red" if failures else "refused" if refused else "green" if ran else "none",
            failing=tuple(failure.name for failure in failures),
            already_failing=already,
            findings=tuple(
                seen(finding, fresh=known.get(result.validator.name))
                for result in results
                for finding in result.findings
            ),
            notes=tuple(notes),
        )
        changed = tuple(f"{result.validator.name} changed {path}" for result in results for path in result.changed)
        return Round(report=report, failures=tuple(failures), changed=changed)

    async def _known_before(
        self, results: Sequence["ValidatorResult"], notes: list[str]
    ) -> dict[str, tuple[Finding, ...]]:
        """By name, for validators that failed before the agent's changes too, the findings that are new since."""
        from agent_lsp.validation.baseline import Unknown, new_findings, run_on
        from agent_lsp.validation.run import Surroundings

        settings = self._loaded.settings.validation
        failed = [result for result in results if result.failed]
        if not failed or not settings.baseline:
            return {}
        around = Surroundings(root=self._root, environment=self._environment, logs=self._logs)
        try:
            if isinstance(self._snapshot, str):
                raise Unknown(self._snapshot)
            before = await run_on(self._snapshot, failed, around, timeout=self.time_left)
        except Unknown as error:
            notes.append(f"what failed before the changes is not known ({error}), so all of it goes to the model")
            return {}
        found = {result.validator.name: new_findings(result, before.get(result.validator.name)) for result in failed}
        return {name: fresh for name, fresh in found.items() if fresh is not None}

    async def _run_hooks(
        self, hooks: Sequence[ConfiguredHook], attempt: int, limit: int
    ) -> tuple[list[Failure], list[str], bool]:
        """The PostStopValidation hooks, in order: failures, notes, and whether one was refused."""
        from agent_lsp.validation.run import without_numbers

        failures: list[Failure] = []
        notes: list[str] = []
        refused = False
        for hook in hooks:
            self._emit(ValidatorStarted(name=hook.name, command=hook.text, directory="."))
            occasion = Occasion(event=VALIDATION, payload={"attempt": attempt, "limit": limit})
            answer = await self._runner.run_one(hook, occasion)
            status = "refused" if answer.refused else "red" if answer.blocked else "green"
            output = answer.output or answer.reason or NO_OUTPUT
            self._emit(ValidatorFinished(name=hook.name, status=status, output=output if status != "green" else ""))
            if answer.refused:
                refused = True
                notes.append(answer.reason)
            elif answer.blocked:
                fingerprint = f"{hook.name} {without_numbers(output)}"
                failures.append(Failure(name=hook.name, command=hook.text, output=output, fingerprint=fingerprint))
        return failures, notes, refused

    async def _may_run(self, validator: Validator, all_: Sequence[Validator], notes: list[str]) -> bool:
        item = validator_item(validator, self._root)
        if self._gate.covers(item.digest):
            return True
        refusal = await self._gate.ask(
            item.digest, lambda: [*self._waiting(), *(validator_item(each, self._root) for each in all_)]
        )
        if refusal is None and validator_item(validator, self._root).digest != item.digest:
            refusal = "it changed while it was being approved"
        if refusal is not None:
            notes.append(f"{validator.name} was not run: {refusal}")
            self._emit(ValidatorFinished(name=validator.name, status="refused", output=refusal))
        return refusal is None
