"""``agent-lsp`` told to end: the turn first, then the hooks that still run, and nothing is left behind."""

import json
import os
import secrets
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import _MARK, marked_processes
from tests.flows.test_command_line import COMMAND, environment
from tests.support.openai_server import End, OpenAIServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")

SOON = 4.0
"""Seconds; the time that hooks get at the end is longer."""


class Run:
    """A command in a workspace whose own programs say something by ``$TOLD`` and do not end by themselves."""

    def __init__(self, tmp_path: Path, server: OpenAIServer | None, settings: Any, *arguments: str) -> None:
        work = tmp_path / "work"
        (work / ".agent-lsp").mkdir(parents=True)
        (work / ".agent-lsp" / "settings.json").write_text(json.dumps(settings))
        self._told = tmp_path / "told"
        os.mkfifo(self._told)
        self._mark = secrets.token_hex(8)
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=work,
            env=environment(tmp_path, server) | {_MARK: self._mark, "TOLD": str(self._told)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for_program(self, seconds: float | None = None) -> None:
        """Wait until a program says something, or for so many seconds: one that is ended may not get to it."""
        told = os.open(self._told, os.O_RDONLY | os.O_NONBLOCK)
        select.select([told], [], [], seconds)
        os.close(told)

    def end(self) -> tuple[int, str, str]:
        """Exit code, stdout and what the program itself says on stderr; no process may be left."""
        stdout, stderr = self.process.communicate(timeout=SOON)
        assert marked_processes(self._mark) == []
        own = [line for line in stderr.splitlines() if not line.startswith("[")]
        return self.process.returncode, stdout, "\n".join(own)


def run_with_hook(tmp_path: Path, server: OpenAIServer, event: str) -> Run:
    """A run with one hook that says when it began."""
    slow = {"type": "command", "command": "echo >$TOLD; sleep 1000; true", "timeout": 1000}
    last = {"type": "command", "command": "sleep 1000; true", "timeout": 1000}
    hooks = {event: [slow], "SessionEnd": [slow if event == "SessionEnd" else last]}
    return Run(tmp_path, server, {"hooks": hooks}, "run", "--trust", "--prompt", "x")


@pytest.mark.requirement("A60", "A69", "F60")
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "agent-lsp: interrupted"), (signal.SIGTERM, 143, ""), (signal.SIGHUP, 129, "")],
)
def test_second_signal_ends_the_hooks_too(
    tmp_path: Path, server: OpenAIServer, number: signal.Signals, code: int, said: str
) -> None:
    server.reply_raw(end=End.HANG)
    run = run_with_hook(tmp_path, server, "SessionStart")
    run.wait_for_program()
    server.wait_for_requests(1)

    run.process.send_signal(number)
    server.wait_for_client_to_leave()
    run.process.send_signal(number)

    assert run.end() == (code, "", said)


@pytest.mark.requirement("A60", "A69", "F60")
@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGINT, 130, "agent-lsp: interrupted"), (signal.SIGTERM, 143, "")]
)
def test_signal_behind_the_answer_ends_the_hooks_at_once(
    tmp_path: Path, server: OpenAIServer, number: signal.Signals, code: int, said: str
) -> None:
    server.reply_text("ok")
    run = run_with_hook(tmp_path, server, "SessionEnd")
    run.wait_for_program()

    run.process.send_signal(number)

    assert run.end() == (code, "ok\n", said)


def run_stubborn_validator(tmp_path: Path, trap: str) -> Run:
    """Validation by hand with one program that says when it began, and that a TERM does not end."""
    command = f"exec 2>/dev/null; trap '{trap}' TERM; sleep 1000 & echo >$TOLD; while :; do sleep 1000; done"
    settings = {"validation": {"validators": [{"name": "stubborn", "command": command, "timeout": 1000}]}}
    return Run(tmp_path, None, settings, "validate", "--trust")


@pytest.mark.requirement("A69", "F60", "S1-validate")
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "agent-lsp: interrupted"), (signal.SIGTERM, 143, ""), (signal.SIGHUP, 129, "")],
)
def test_signal_ends_validation_with_all_that_it_started(
    tmp_path: Path, number: signal.Signals, code: int, said: str
) -> None:
    run = run_stubborn_validator(tmp_path, trap="")
    run.wait_for_program()

    run.process.send_signal(number)

    assert run.end() == (code, "", said)


@pytest.mark.requirement("F60", "S1-validate")
def test_second_interrupt_of_validation_leaves_no_program_behind(tmp_path: Path) -> None:
    run = run_stubborn_validator(tmp_path, trap="echo >$TOLD")
    run.wait_for_program()

    run.process.send_signal(signal.SIGINT)
    run.wait_for_program(SOON)
    run.process.send_signal(signal.SIGINT)

    run.end()
