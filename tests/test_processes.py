"""Programs end with all that they started, and their output is bounded and readable."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_lsp.process_output import Capture, Output, ThreadWatch
from agent_lsp.processes import (
    Program,
    ProgramResult,
    child_environment,
    run_program,
)
from agent_lsp.terminal_text import clean_terminal_text, cut_middle
from tests.conftest import is_running, marked_processes

NOTHING = Output()


def bash(command: str, environment: Mapping[str, str]) -> Program:
    return Program(command=("bash", "-c", command), cwd=Path("/"), environment=environment, timeout=60)


def python(code: str, environment: Mapping[str, str]) -> Program:
    return replace(bash("", environment), command=(sys.executable, "-c", code))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("true", ProgramResult(exit_code=0, timed_out=False, stdout=NOTHING)),
        (
            "echo out; echo err >&2; exit 3",
            ProgramResult(exit_code=3, timed_out=False, stdout=Output(head=b"out\n"), stderr=Output(head=b"err\n")),
        ),
        ("kill -KILL $$", ProgramResult(exit_code=-signal.SIGKILL, timed_out=False, stdout=NOTHING)),
        ("cat", ProgramResult(exit_code=0, timed_out=False, stdout=NOTHING)),
        ("exec >&- 2>&-; exit 1", ProgramResult(exit_code=1, timed_out=False, stdout=NOTHING)),
        ("pwd; test -t 0; echo $?", ProgramResult(exit_code=0, timed_out=False, stdout=Output(head=b"/\n1\n"))),
    ],
)
@pytest.mark.requirement("F40")
async def test_run_program_reports_how_it_ended(
    command: str, expected: ProgramResult, environment: dict[str, str]
) -> None:
    assert await run_program(bash(command, environment)) == expected


async def test_run_program_merges_the_streams_in_order(environment: dict[str, str]) -> None:
    program = replace(bash("echo 1; echo 2 >&2; echo 3", environment), merge_stderr=True)

    result = await run_program(program)

    assert result == ProgramResult(exit_code=0, timed_out=False, stdout=Output(head=b"1\n2\n3\n"))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("wc -c", b"8388608\n"),
        ("exec 0<&-; echo unread", b"unread\n"),
        ("head -c 4000000 /dev/zero | tr '\\0' x | wc -c; wc -c", b"4000000\n8388608\n"),
    ],
)
@pytest.mark.requirement("F1")
async def test_run_program_gives_large_input_to_programs_that_read_it_early_late_or_never(
    command: str, expected: bytes, environment: dict[str, str]
) -> None:
    result = await run_program(replace(bash(command, environment), stdin=b"x" * 8 * 1024 * 1024))

    assert result == ProgramResult(exit_code=0, timed_out=False, stdout=Output(head=expected))


@pytest.mark.requirement("F3")
async def test_run_program_with_input_does_not_make_bash_read_start_up_files(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / ".bashrc").write_text("echo noise\n")
    quiet = {name: value for name, value in environment.items() if name != "SHLVL"} | {"HOME": str(tmp_path)}

    result = await run_program(replace(bash("cat", quiet), stdin=b"{}"))

    assert result.stdout == Output(head=b"{}")


@pytest.mark.parametrize("program", [("/no/such/program",), ("/etc/passwd",), ("true", "x" * 4_000_000)])
async def test_run_program_raises_for_what_cannot_start(program: tuple[str, ...], environment: dict[str, str]) -> None:
    with pytest.raises(OSError, match="Errno"):
        await run_program(replace(bash("", environment), command=program))


# --- the end of all that was started


@pytest.mark.parametrize(
    "command",
    [
        "sleep 300",
        "trap '' TERM; while :; do sleep 300; done",
        "sleep 300 & sleep 300",
        "set -m; sleep 300 & wait",
        "setsid sleep 300 & wait",
        "(setsid bash -c \"trap '' TERM; while :; do sleep 300; done\" &); sleep 300",
        "kill -STOP $$",
    ],
)
@pytest.mark.requirement("F2", "F40")
async def test_run_program_ends_all_descendants_at_the_timeout(command: str, environment: dict[str, str]) -> None:
    program = replace(bash(f"echo begun; {command}", environment), timeout=0.5)

    result = await run_program(program)

    assert result == ProgramResult(exit_code=None, timed_out=True, stdout=Output(head=b"begun\n"))


@pytest.mark.requirement("F2")
@pytest.mark.skipif(sys.platform != "linux", reason="descendants outside the group are found through /proc")
async def test_run_program_ends_descendants_that_hide_their_environment(environment: dict[str, str]) -> None:
    program = replace(bash("env -i setsid bash -c 'echo $$; exec sleep 300'; true", environment), timeout=0.5)

    result = await run_program(program)

    assert not is_running(int(result.stdout.text()))


@pytest.mark.requirement("F40")
async def test_run_program_keeps_what_a_program_says_when_it_is_terminated(environment: dict[str, str]) -> None:
    program = replace(bash("trap 'echo last words; exit' TERM; sleep 300 & wait", environment), timeout=2, grace=30)

    result = await run_program(program)

    assert result == ProgramResult(exit_code=None, timed_out=True, stdout=Output(head=b"last words\n"))


@pytest.mark.parametrize("background", ["sleep 300 &", "setsid sleep 300 &", "(trap '' TERM; sleep 300) &"])
@pytest.mark.requirement("F2")
async def test_run_program_does_not_wait_for_a_grandchild_that_holds_the_output(
    background: str, environment: dict[str, str]
) -> None:
    result = await run_program(bash(f"{background} echo done", environment))

    assert result == ProgramResult(exit_code=0, timed_out=False, stdout=Output(head=b"done\n"))


async def test_run_program_ends_a_silent_background_child_of_its_group(environment: dict[str, str]) -> None:
    await run_program(bash("sleep 300 >/dev/null 2>&1 &", environment))

    assert marked_processes(environment["AGENT_LSP_TEST"]) == []


async def test_run_program_lets_a_cleanly_detached_server_live(tmp_path: Path, environment: dict[str, str]) -> None:
    server = "setsid bash -c 'echo $$ >pid; exec sleep 300' >/dev/null 2>&1 &"
    program = replace(bash(f"{server} until [ -s pid ]; do :; done", environment), cwd=tmp_path)

    await run_program(program)

    server_id = int((tmp_path / "pid").read_text())
    os.kill(server_id, signal.SIGKILL)  # raises if it is gone
    with anyio.fail_after(10):
        while is_running(server_id):
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    "command",
    ["sleep 300", "trap '' TERM; setsid sleep 300 & while :; do sleep 300; done", "while :; do echo flood; done"],
)
@pytest.mark.requirement("F60")
async def test_run_program_ends_at_once_when_cancelled(command: str, environment: dict[str, str]) -> None:
    begun, printed = anyio.Event(), list[str]()

    def hear(text: str) -> None:
        printed.append(text)
        begun.set()

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: run_program(bash(f"echo $$; {command}", environment), on_output=hear))
        await begun.wait()
        pid = int(printed[0].split()[0])
        was_running = is_running(pid)
        group.cancel_scope.cancel()
        cancelled = time.monotonic()

    assert time.monotonic() - cancelled < 1  # 0.2 s on a quiet machine; bench/ measures it
    assert (was_running, is_running(pid)) == (sys.platform == "linux", False)
    assert marked_processes(environment["AGENT_LSP_TEST"]) == []


@pytest.mark.requirement("F60")
async def test_run_program_cancelled_at_any_moment_leaves_no_child_that_was_just_born(
    environment: dict[str, str],
) -> None:
    for tenths_of_milliseconds in range(90):
        with anyio.move_on_after(tenths_of_milliseconds / 10_000):
            await run_program(bash("sleep 300 & true", environment))
        assert marked_processes(environment["AGENT_LSP_TEST"]) == []


# --- output


async def test_run_program_keeps_head_and_tail_of_a_flood(environment: dict[str, str]) -> None:
    code = "import sys; sys.stdout.write('a' * 20_000_000 + 'b' * 20_000_000)"

    result = await run_program(replace(python(code, environment), output_limit=1_000))

    assert result.stdout == Output(head=b"a" * 500, tail=b"b" * 500, omitted=39_999_000)


@given(st.lists(st.binary(max_size=30)), st.integers(2, 40))
def test_output_readable_never_exceeds_its_limit_by_more_than_the_notes(chunks: list[bytes], limit: int) -> None:
    output = Output(head=b"".join(chunks), tail=b"z" * 10, omitted=5)

    assert len(output.readable(limit)) <= limit + len("\n[… 1,000 characters cut …]\n")


@pytest.mark.requirement("F41")
async def test_run_program_streams_cleaned_text_whose_characters_are_whole(environment: dict[str, str]) -> None:
    code = (
        "import sys\n"
        "for piece in (b'gr\\xc3', b'\\xbcn\\x1b[3', b'1m!\\r', b'\\n10%\\r', b'20%\\xff\\n\\xe2\\x82'):\n"
        "    sys.stdout.buffer.write(piece); sys.stdout.flush(); sys.stdin.readline()\n"
    )
    pieces: list[str] = []

    result = await run_program(python(code, environment), on_output=pieces.append)

    assert "".join(pieces) in ("grün!\n20%\ufffd\n\ufffd", "grün!\n10%\n20%\ufffd\n\ufffd")  # as the pipe cut it
    assert result.stdout.readable(1_000) == "grün!\n20%\ufffd\n\ufffd"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07shown", "shown"),
        ("\x1b]8;;http://host\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ended\nnext", "\nnext"),
        ("\x1bPdevice\x1b\\text", "text"),
        ("\x1b(Btext\x1b=\x1bM", "text"),
        ("\x9b31mred", "red"),
        ("10%\r50%\r\x1b[Kdone\n", "done\n"),
        ("one\r\ntwo\r\r\n", "one\ntwo\n"),
        ("first\nold\rnew\nlast\r", "first\nnew\nlast"),
        ("b\bbo\bold", "bold"),
        ("bell\x07 nul\x00 form\x0cfeed", "bell nul formfeed"),
        ("cut \x1b[", "cut "),
    ],
)
@pytest.mark.requirement("F41")
def test_clean_terminal_text_shows_what_a_terminal_would(text: str, expected: str) -> None:
    assert clean_terminal_text(text) == expected


@given(st.text(alphabet="ab \n\r\b\x1b[]0;m\x07\\K"))
@pytest.mark.requirement("F41")
def test_clean_terminal_text_leaves_no_control_characters(text: str) -> None:
    assert set(clean_terminal_text(text)) <= set("ab \n[]0;m\\K")


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 4, "ab\n[… 2 characters cut …]\nef"),
        ("a" * 3_000, 2_000, f"{'a' * 1_000}\n[… 1,000 characters cut …]\n{'a' * 1_000}"),
    ],
)
@pytest.mark.requirement("F41")
def test_cut_middle_says_what_was_cut(text: str, limit: int, expected: str) -> None:
    assert cut_middle(text, limit) == expected


@pytest.mark.requirement("F40", "F45", "F3")
def test_child_environment_has_no_secrets_and_no_terminal() -> None:
    environ = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "secret",
        "OTHER_KEY": "secret",
        "BASH_ENV": "rc",
        "ENV": "rc",
        "FORCE_COLOR": "1",
        "TERM": "xterm",
    }

    assert child_environment(environ, secrets={"OTHER_KEY"}) == {
        "PATH": "/bin",
        "CI": "1",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
    }


# --- the way without readers, which is that of Windows


def watched(command: str, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        ["bash", "-c", command],
        bufsize=0,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo out; echo err >&2", (0, b"out\n", b"err\n", True)),
        ("exec >&- 2>&-; exit 3", (3, b"", b"", True)),
    ],
)
async def test_thread_watch_reads_what_the_other_reads(
    command: str, expected: tuple[int, bytes, bytes, bool], environment: dict[str, str]
) -> None:
    process = watched(command, environment)
    stdout, stderr = Capture(1_000), Capture(1_000)

    with ThreadWatch(process, stdout, stderr) as watch:
        await watch.until_end()
        closed = await watch.until_closed()

    assert (process.returncode, stdout.output().head, stderr.output().head, closed) == expected


@pytest.mark.skipif(sys.platform != "linux", reason="the end of a grandchild is told by a descriptor (2026-11-30)")
async def test_thread_watch_does_not_wait_for_a_grandchild(environment: dict[str, str]) -> None:
    process = watched("sleep 300 & echo $!", environment)
    stdout, stderr = Capture(1_000), Capture(1_000)

    with ThreadWatch(process, stdout, stderr) as watch:
        await watch.until_end()
        closed = await watch.until_closed()
    grandchild = os.pidfd_open(int(stdout.output().text()))
    os.killpg(process.pid, signal.SIGKILL)
    await anyio.wait_readable(grandchild)
    os.close(grandchild)

    assert (process.returncode, closed) == (0, False)
