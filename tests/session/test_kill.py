"""A process that is killed at any moment, again and again: its session goes on with all that had happened (F61)."""

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from agent_lsp.messages import AssistantMessage, ToolMessage
from agent_lsp.session.records import NOT_RUN, UNKNOWN_OUTCOME, Replay
from agent_lsp.session.store import SessionStore
from agent_lsp.session.stored import stored_sessions

KILLS = int(os.environ.get("AGENT_LSP_KILLS", "20"))
LONGEST = 0.25
"""Seconds that a process gets to work in, at most."""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")


class Killer:
    """Has a worker begin, and kills it after a while."""

    def __init__(self, root: Path, account: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.session.killed", str(root), str(account)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def kill_after(self, seconds: float) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        child = int(self._process.stdout.readline())
        timer = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
        timer.start()
        assert self._process.stdout.readline() == "gone\n"
        timer.join()

    def end(self) -> None:
        self._process.communicate()


def check(found: Replay, account: list[str]) -> None:
    """Hold a stored session against what its processes saw happen."""
    results: dict[tuple[int, str], str] = {}
    bounds = [turn.first_message for turn in found.turns] + [len(found.transcript)]
    for number, (begin, end) in enumerate(itertools.pairwise(bounds), start=1):
        for message in found.transcript[begin:end]:
            if isinstance(message, ToolMessage):
                results[number, message.tool_call_id] = message.content
    for line in account:
        kind, turn, rest = line.split(" ", 2)
        call, _, more = rest.partition(" ")
        if kind == "finished":
            assert results[int(turn), call].splitlines()[0] == more
        elif kind == "started":
            assert results[int(turn), call] != NOT_RUN.content
        else:
            assert found.turns[int(turn) - 1].stop_reason == rest


@pytest.mark.requirement("F61")
@pytest.mark.timeout(60 + 3 * KILLS)
def test_session_of_a_process_that_is_killed_goes_on_with_all_that_had_happened(tmp_path: Path) -> None:
    root, account = tmp_path / "w", tmp_path / "account"
    root.mkdir()
    account.touch()
    moments = random.Random(KILLS)
    killer = Killer(root, account)
    size, unknown = 0, 0

    for _ in range(KILLS):
        killer.kill_after(moments.uniform(0, LONGEST))
        stored = stored_sessions(root).list()
        assert len(stored) <= 1
        for summary in stored:
            file, found = SessionStore(Path(os.environ["XDG_STATE_HOME"]) / "agent-lsp", root).resume(summary.id)
            file.close()
            assert found.problem == ""
            assert found.size >= size
            check(found, account.read_text().splitlines())
            size = found.size
            unknown = sum(
                isinstance(message, ToolMessage) and message.content == UNKNOWN_OUTCOME.content
                for message in found.transcript
            )
    killer.end()

    ran = Counter((root / "ran").read_text().split())
    answers = sum(isinstance(message, AssistantMessage) for message in found.transcript)
    assert set(ran.values()) == {1}, "a call was run twice"
    print(f"{KILLS} kills, {len(found.turns)} turns, {answers} answers, {unknown} calls of unknown outcome")
