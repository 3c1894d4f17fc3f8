"""Runs validators and says what came of it.

Invariants: a validator has neither input nor terminal and is gone, with all that it started, when its time is over;
its partial output is kept. One that repairs and then fails is run once more before it counts as failed (F43).
"""

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
import anyio.to_thread
from pathspec import GitIgnoreSpec

from agent_lsp.processes import Program, ProgramResult, run_program
from agent_lsp.validation.findings import read_findings
from agent_lsp.validation.logs import write_log
from agent_lsp.validation.validator import REPORT, Finding, Validator

Status: TypeAlias = Literal["green", "red", "timeout", "missing", "not run"]

SIDE_BY_SIDE = 2
MAX_OUTPUT = 12_000  # characters of one validator's output that a person or the model gets; the log has the rest
MAX_LOG = 32 * 1024 * 1024  # bytes of one validator's output that are kept at all
_KINDS = ("lint", "types", "build", "test")
_SHELL = ("cmd", "/d", "/c") if os.name == "nt" else ("/bin/sh", "-c")
_NOT_FOUND = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatorResult:
    """What one validator came to. ``output`` is readable and bounded, ``log`` the file with all of it.

    ``text`` is all of it that was kept. ``duration`` is in seconds. ``changed`` are files that the validator changed.
    """

    validator: Validator
    status: Status
    output: str = ""
    text: str = field(default="", repr=False)
    findings: tuple[Finding, ...] = ()
    exit_code: int | None = None
    duration: float = 0.0
    log: Path | None = None
    changed: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it found the project broken; a program that is not there says nothing about the project."""
        return self.status in ("red", "timeout")

    @property
    def fingerprint(self) -> str:
        """The same for the same failure, whatever times, addresses and line numbers it mentions."""
        if self.findings:
            text = repr(sorted({(item.path, item.code, item.message) for item in self.findings}))
        else:
            text = without_numbers(self.text)
        return hashlib.sha256(f"{self.validator.name} {self.status} {text}".encode()).hexdigest()


def without_numbers(text: str) -> str:
    """A text without what differs between two runs of the same: times, addresses, counts, line numbers."""
    return re.sub(r"0x[0-9a-f]+|[\d.]+", "#", text)


def without_times(text: str) -> str:
    """A text without times and addresses alone; counts and values stay."""
    return re.sub(r"0x[0-9a-f]+|\b\d+(\.\d+)?\s?(ms|s|sec|seconds)\b", "#", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where validators run. ``environment`` is that of child processes; ``logs`` is the session's directory."""

    root: Path
    environment: Mapping[str, str]
    logs: Path


def concerned(validators: Iterable[Validator], changed: Sequence[str] | None) -> list[Validator]:
    """The validators that a change is about, fast ones first; None stands for changes that nobody knows."""
    chosen = [
        validator
        for validator in validators
        if changed is None or not validator.paths or any(GitIgnoreSpec.from_lines(validator.paths).match_files(changed))
    ]
    return sorted(chosen, key=lambda validator: _KINDS.index(validator.kind))


async def run_validators(
    validators: Sequence[Validator],
    around: Surroundings,
    *,
    timeout: float,
    started: Callable[[Validator], None] = lambda _validator: None,
    finished: Callable[[ValidatorResult], None] = lambda _result: None,
) -> tuple[ValidatorResult, ...]:
    """Run validators, a few side by side; results in the given order. ``timeout`` bounds all of it, in seconds."""
    results: dict[int, ValidatorResult] = {}
    places = anyio.Semaphore(SIDE_BY_SIDE)
    deadline = anyio.current_time() + timeout

    async def run(number: int, validator: Validator) -> None:
        async with places:
            started(validator)
            left = deadline - anyio.current_time()
            if left <= 0:
                results[number] = ValidatorResult(validator=validator, status="not run", output="the time was up")
                finished(results[number])
                return
            result = await run_validator(replace(validator, timeout=min(validator.timeout, left)), around)
        results[number] = replace(result, validator=replace(validator, timeout=min(validator.timeout, left)))
        finished(results[number])

    async with anyio.create_task_group() as group:
        for number, validator in enumerate(validators):
            group.start_soon(run, number, validator)
    return tuple(results[number] for number in sorted(results))


async def run_validator(validator: Validator, around: Surroundings, *, stdin: bytes = b"") -> ValidatorResult:
    """Run one validator to its end or its timeout, and once more where it failed after repairing files."""
    before = await anyio.to_thread.run_sync(stamps, around.root)
    result = await _run_once(validator, around, stdin)
    if not result.failed:
        return result
    changed = _changes(before, await anyio.to_thread.run_sync(stamps, around.root))
    if validator.kind == "test" or result.status == "timeout" or not changed:
        return result
    return replace(await _run_once(validator, around, stdin), changed=changed)


async def _run_once(validator: Validator, around: Surroundings, stdin: bytes) -> ValidatorResult:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="agent-lsp-report-") as folder:
        report = Path(folder) / "report.xml"
        program = Program(
            command=_command(validator, report),
            cwd=around.root / validator.directory,
            environment=around.environment,
            stdin=stdin,
            timeout=validator.timeout,
            merge_stderr=True,
            output_limit=MAX_LOG,
        )
        try:
            ran = await run_program(program)
        except (OSError, ValueError) as error:
            said = f"cannot be started: {error}"
            status: Status = "missing" if validator.detected else "red"  # what somebody configured is meant to be there
            return ValidatorResult(validator=validator, status=status, output=said, text=said)
        return await anyio.to_thread.run_sync(_result, validator, around, ran, report, time.monotonic() - begun)


def _command(validator: Validator, report: Path) -> tuple[str, ...]:
    if isinstance(validator.command, str):
        return (*_SHELL, validator.command)
    return tuple(word.replace(REPORT, str(report)) for word in validator.command)


def _result(
    validator: Validator, around: Surroundings, ran: ProgramResult, report: Path, duration: float
) -> ValidatorResult:
    text = ran.stdout.readable(MAX_LOG).strip()
    log = write_log(around.logs, validator.name, text)
    findings: tuple[Finding, ...] = ()
    status = _status(validator, ran, text)
    if status in ("red", "timeout"):
        findings = read_findings(
            text,
            tool=validator.tool,
            root=around.root,
            directory=around.root / validator.directory,
            report=report.read_bytes() if report.is_file() else None,
        )
    return ValidatorResult(
        validator=validator,
        status=status,
        output=shorten(text, log),
        text=text,
        findings=findings,
        exit_code=ran.exit_code,
        duration=duration,
        log=log,
    )


def _status(validator: Validator, ran: ProgramResult, text: str) -> Status:
    if ran.timed_out:
        return "timeout"
    if validator.detected and (ran.exit_code == _NOT_FOUND or _has_no_tool(validator, text)):
        return "missing"
    if validator.tool == "pytest" and ran.exit_code == 5:  # there are no tests
        return "green"
    return "green" if ran.exit_code == 0 else "red"


def _has_no_tool(validator: Validator, text: str) -> bool:
    """``python -m tool`` where the interpreter does not have it."""
    tool = re.escape(validator.tool or validator.name)
    return re.fullmatch(rf"\S*: No module named {tool}(\.__main__.*)?", text) is not None


_FAILING = re.compile(r"error|fail|exception|assert|^E  |panic|✕|✗", re.IGNORECASE)


def shorten(text: str, log: Path | None) -> str:
    """Head, tail and the failing lines between of a long output, with the place of the whole (F41)."""
    if len(text) <= MAX_OUTPUT:
        return text
    part = MAX_OUTPUT // 4
    head, middle, tail = text[:part], text[part:-part], text[-part:]
    failing: list[str] = []
    room = 2 * part
    for line in middle.splitlines():
        if _FAILING.search(line[:500]) and room > 0:
            failing.append(line[:500])
            room -= len(failing[-1]) + 1
    where = f"; all of it is in {log}" if log is not None else ""
    cut = f"[… {len(middle):,} characters cut, failing lines kept{where} …]"
    return "\n".join((head, cut, *failing, "[…]", tail))


# --- which files a validator changed

_SKIPPED = {"node_modules", "__pycache__", "target", "dist", "build"}
_MOST_FILES = 20_000


def stamps(root: Path) -> dict[str, tuple[int, int]]:
    """Size and time of the files of a tree, without hidden, cached and built ones; at most some thousands."""
    found: dict[str, tuple[int, int]] = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED]
        for name in files:
            path = Path(folder) / name
            try:
                status = path.lstat()
            except OSError:
                continue
            found[path.relative_to(root).as_posix()] = (status.st_size, status.st_mtime_ns)
        if len(found) > _MOST_FILES:
            break
    return found


def _changes(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> tuple[str, ...]:
    return tuple(sorted(path for path in before.keys() & after.keys() if before[path] != after[path]))
