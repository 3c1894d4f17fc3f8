"""Programs that the agent starts, and what they print.

Invariant: when ``run_program`` returns or raises, the program and its process group are gone; after a timeout, a
cancellation or an end that leaves a pipe held open, so are the descendants that moved to a group of their own. Only
a server that detached itself cleanly (own session, own output) outlives a program that ended by itself.
"""

import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import anyio

from agent_lsp.process_output import POLL_SECONDS, Capture, Output, watch

TERMINATE_SECONDS = 0.1  # between TERM and KILL; a cancel has 0.2 in all
KILL_SECONDS = 0.05
MOST_LOOKS = 20  # at the table of processes, while some of them end

MARK_VARIABLE = "AGENT_LSP_PROCESS"  # names the run in each descendant's environment, wherever it moves to
_PROC = Path("/proc")

API_KEY_VARIABLE = "OPENAI_API_KEY"
_CHILD_VARIABLES = {
    "CI": "1",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
_UNWANTED_VARIABLES = frozenset({"BASH_ENV", "ENV", "FORCE_COLOR", "CLICOLOR_FORCE", API_KEY_VARIABLE})


def child_environment(environ: Mapping[str, str], secrets: Collection[str] = ()) -> dict[str, str]:
    """The environment for child processes: no terminal, no pager, no start-up files, no model key (F40, F45).

    ``secrets`` names further variables to leave out, such as the configured ``api_key_env``.
    """
    kept = {name: value for name, value in environ.items() if name not in _UNWANTED_VARIABLES | set(secrets)}
    return kept | _CHILD_VARIABLES


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run. ``stdin`` is read to its end by the program, or by nobody; ``timeout`` is in seconds.

    ``grace`` is the time in seconds between TERM and KILL when it is ended. ``output_limit`` bounds, in bytes, what is
    kept of each stream; half of it is the head, half the tail.
    """

    command: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    stdin: bytes = b""
    timeout: float | None = None
    grace: float = TERMINATE_SECONDS
    merge_stderr: bool = False
    output_limit: int = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """How a program ended: ``exit_code`` is negative for a signal and None after a timeout.

    With ``merge_stderr`` both streams are in ``stdout``, in the order in which they were written.
    """

    exit_code: int | None
    timed_out: bool
    stdout: Output
    stderr: Output = field(default_factory=Output)


async def run_program(program: Program, *, on_output: Callable[[str], None] | None = None) -> ProgramResult:
    """Run a program to its end, its timeout or the caller's cancellation. Raises OSError if it cannot be started.

    ``on_output`` gets each piece of cleaned text as it comes.
    """
    stdout, stderr = (Capture(program.output_limit, on_output) for _ in range(2))
    mark = secrets.token_hex(16)
    process = _start(program, mark)
    ended_cleanly = False
    try:
        with watch(process, stdout, stderr) as output:
            with anyio.move_on_after(program.timeout) as limit:
                await output.until_end()
            timed_out = limit.cancelled_caught
            if timed_out:
                await _end(process, mark, program.grace)
            ended_cleanly = await output.until_closed()
    finally:
        await _close(process, None if ended_cleanly else mark, program.grace)
    return ProgramResult(
        exit_code=None if timed_out else process.returncode,
        timed_out=timed_out,
        stdout=stdout.output(),
        stderr=stderr.output(),
    )


def _start(program: Program, mark: str) -> "subprocess.Popen[bytes]":
    """Start in a session of its own. Without a wait, so that a cancel never finds a process that nobody holds."""
    with _stdin(program.stdin) as stdin:
        return subprocess.Popen(
            program.command,
            bufsize=0,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if program.merge_stderr else subprocess.PIPE,
            cwd=program.cwd,
            env={**program.environment, MARK_VARIABLE: mark},
            start_new_session=True,
        )


def _memory_file() -> IO[bytes]:
    """A file without a name; in memory where the system can."""
    return os.fdopen(os.memfd_create("stdin"), "w+b") if hasattr(os, "memfd_create") else tempfile.TemporaryFile()


@contextmanager
def _stdin(content: bytes) -> Iterator[IO[bytes] | int]:
    """A file rather than a pipe: nothing to write while the program runs, so no deadlock and no EPIPE (F1).

    asyncio would also make it a socket, on which bash takes itself for a remote login and reads its start-up files.
    """
    if not content:
        yield subprocess.DEVNULL
        return
    with _memory_file() as file:
        file.write(content)
        file.seek(0)
        yield file


# --- the end of a program and of its descendants


async def _close(process: "subprocess.Popen[bytes]", mark: str | None, grace: float) -> None:
    if mark is None and process.poll() is not None and not _group_lives(process.pid):
        return
    with anyio.move_on_after(2, shield=True):  # a process in an uninterruptible state must not hold the agent
        await _end(process, mark, grace)
    process.poll()


if sys.platform == "win32":

    async def _end(process: "subprocess.Popen[bytes]", mark: str | None, grace: float) -> None:
        if process.returncode is None:
            command = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
            await anyio.run_process(command, check=False)

    def _group_lives(leader: int) -> bool:
        return False

else:

    def _group_lives(leader: int) -> bool:
        return _signal(-leader, 0)

    async def _end(process: "subprocess.Popen[bytes]", mark: str | None, grace: float) -> None:
        """TERM, a short grace, then KILL, for the group and, where a mark is given, all that carries it."""
        with anyio.CancelScope(shield=True):
            for number, wait in (
                (signal.SIGTERM, grace),
                (signal.SIGKILL, KILL_SECONDS),
                (signal.SIGKILL, KILL_SECONDS),  # for what was born between the look and the first KILL
            ):
                if mark is None and not _group_lives(process.pid):
                    return
                targets = _living(process.pid, mark)
                if not targets:
                    return
                for target in (-process.pid, *_outside(process.pid, targets)):  # each hears of it once
                    _signal(target, number)
                await _wait_for_end_of(targets, wait)

    async def _wait_for_end_of(targets: set[int], seconds: float) -> None:
        for _ in range(round(seconds / POLL_SECONDS)):
            if not any(_is_alive(target) for target in targets):
                return
            await anyio.sleep(POLL_SECONDS)

    def _signal(target: int, number: int) -> bool:
        """Signal a process, or a group by its negative number; False where there is none that is ours."""
        try:
            os.kill(target, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _living(group: int, mark: str | None) -> set[int]:
        """What is left of a run. Linux sees each process; elsewhere only the group as one."""
        if not (_PROC / "self/stat").exists():
            return {-group} if _signal(-group, 0) else set()
        found, gone = set[int](), set[int]()
        for _look in range(MOST_LOOKS):
            pids = {int(pid.name) for pid in _PROC.iterdir() if pid.name.isdecimal()}
            table = [entry for pid in pids if (entry := _entry(pid))]
            found = _belonging(table, group, mark)
            ended = pids - {entry.pid for entry in table}
            if found or ended <= gone:
                break
            gone |= ended  # one that ended while we looked may have left a child that was not there yet
        return found

    def _belonging(table: Collection["_Entry"], group: int, mark: str | None) -> set[int]:
        found = {entry.pid for entry in table if entry.group == group}
        if mark is None:
            return found
        found |= {entry.pid for entry in table if entry.session == group or _carries(entry.pid, mark)}
        while children := {entry.pid for entry in table if entry.parent in found} - found:
            found |= children
        return found

    def _outside(group: int, targets: set[int]) -> Iterator[int]:
        """Those of the living that a signal to the group does not reach."""
        for target in targets:
            entry = _entry(target) if target > 0 else None
            if entry is not None and entry.group != group:
                yield target

    def _is_alive(target: int) -> bool:
        return _signal(target, 0) if target < 0 else _entry(target) is not None


@dataclass(frozen=True, slots=True)
class _Entry:
    pid: int
    parent: int
    group: int
    session: int


def _entry(pid: int) -> _Entry | None:
    """A living process as Linux's proc(5) describes it; None for one that is gone or a zombie."""
    try:
        state, parent, group, session = (_PROC / f"{pid}/stat").read_bytes().rpartition(b")")[2].split()[:4]
    except (OSError, ValueError):
        return None
    return None if state in b"ZX" else _Entry(pid, int(parent), int(group), int(session))


def _carries(pid: int, mark: str) -> bool:
    with suppress(OSError):
        return f"{MARK_VARIABLE}={mark}".encode() in (_PROC / f"{pid}/environ").read_bytes().split(b"\0")
    return False
