"""``agent-lsp run`` told to end: the turn first, then the hooks that still run, and nothing is left behind."""

import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import _MARK, marked_processes
from tests.flows.test_command_line import COMMAND, environment
from tests.flows.test_command_line import server as server  # the fixture
from tests.support.openai_server import End, OpenAIServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")

SOON = 4.0
"""Seconds; the time that hooks get at the end is longer."""


class Run:
    """A run with one hook that says when it began and then does not end by itself."""

    def __init__(self, tmp_path: Path, server: OpenAIServer, event: str) -> None:
        work = tmp_path / "work"
        (work / ".agent-lsp").mkdir(parents=True)
        self._begun = tmp_path / "begun"
        os.mkfifo(self._begun)
        slow = {"type": "command", "command": f"echo >{self._begun}; sleep 1000; true", "timeout": 1000}
        last = {"type": "command", "command": "sleep 1000; true", "timeout": 1000}
        hooks = {event: [slow], "SessionEnd": [slow if event == "SessionEnd" else last]}
        (work / ".agent-lsp" / "settings.json").write_text(json.dumps({"hooks": hooks}))
        self._mark = secrets.token_hex(8)
        self.process = subprocess.Popen(
            [*COMMAND, "run", "--trust", "--prompt", "x"],
            cwd=work,
            env=environment(tmp_path, server) | {_MARK: self._mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for_hook(self) -> None:
        assert self._begun.read_text() == "\n"

    def end(self) -> tuple[int, str, str]:
        """Exit code, stdout and what the program itself says on stderr; no process may be left."""
        stdout, stderr = self.process.communicate(timeout=SOON)
        assert marked_processes(self._mark) == []
        own = [line for line in stderr.splitlines() if not line.startswith("[")]
        return self.process.returncode, stdout, "\n".join(own)


@pytest.mark.requirement("A60", "A69", "F60")
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "agent-lsp: interrupted"), (signal.SIGTERM, 143, ""), (signal.SIGHUP, 129, "")],
)
def test_second_signal_ends_the_hooks_too(
    tmp_path: Path, server: OpenAIServer, number: signal.Signals, code: int, said: str
) -> None:
    server.reply_raw(end=End.HANG)
    run = Run(tmp_path, server, "SessionStart")
    run.wait_for_hook()
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
    run = Run(tmp_path, server, "SessionEnd")
    run.wait_for_hook()

    run.process.send_signal(number)

    assert run.end() == (code, "ok\n", said)
