"""``agent-lsp sessions`` and going on with a session on the command line."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.test_command_line import COMMAND, environment, run
from tests.support.openai_server import OpenAIServer

WRITE = ("call_1", "write_file", '{"path": "a.txt", "content": "theirs\\n"}')


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


def heard(server: OpenAIServer, number: int) -> list[str]:
    """The history that the model was sent with a request, without the standing prompt."""
    return [str(message["content"]) for message in server.requests[number].body["messages"][1:]]


@pytest.mark.requirement("S1-sessions", "F61")
def test_run_goes_on_with_the_last_session_or_with_one_by_its_id(tmp_path: Path, server: OpenAIServer) -> None:
    for text in ("One.", "Two.", "Three.", "Four."):
        server.reply_text(text)

    first = json.loads(run(tmp_path, server, "run", "--prompt", "a", "--output", "json").stdout)["session_id"]
    second = json.loads(run(tmp_path, server, "run", "--prompt", "b", "--output", "json").stdout)["session_id"]
    run(tmp_path, server, "run", "--continue", "--prompt", "c")
    run(tmp_path, server, "run", "--session", first[:10], "--prompt", "d")

    assert first != second
    assert heard(server, 2) == ["b", "Two.", "c"]
    assert heard(server, 3) == ["a", "One.", "d"]


@pytest.mark.requirement("S1-sessions")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--continue", "--prompt", "x"], "There is no session to continue in "),
        (["run", "--session", "abc", "--prompt", "x"], "There is no session abc in "),
        (["run", "--chapter", "4", "--session", "abc", "--prompt", "x"], "There is no session abc in "),
        (["run", "--continue", "--session", "abc", "--prompt", "x"], "not allowed with argument"),
        (["sessions", "show"], "There is no session to continue in "),
        (["sessions", "delete", "abc"], "There is no session abc in "),
    ],
)
def test_session_that_is_not_there_is_a_usage_error(
    tmp_path: Path, server: OpenAIServer, arguments: list[str], message: str
) -> None:
    ran = run(tmp_path, server, *arguments)

    assert ran.returncode == 2
    assert message in ran.stderr


@pytest.mark.requirement("S1-sessions")
def test_sessions_are_listed_shown_exported_undone_and_deleted(tmp_path: Path, server: OpenAIServer) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("mine\n")
    server.reply_tool_calls(WRITE)
    server.reply_text("Written.")
    run(tmp_path, server, "run", "--mode", "accept_edits", "--no-validate", "--prompt", "write a.txt\nplease")

    listed = run(tmp_path, None, "sessions", "list")
    [summary] = json.loads(run(tmp_path, None, "sessions", "list", "--json").stdout)
    shown = run(tmp_path, None, "sessions", "show")
    exported = run(tmp_path, None, "sessions", "export", summary["id"][:8], "--output", str(tmp_path / "out.md"))
    as_json = json.loads(run(tmp_path, None, "sessions", "export", "--format", "json").stdout)
    undone = run(tmp_path, None, "sessions", "undo")
    after_undo = (work / "a.txt").read_text()
    again = run(tmp_path, None, "sessions", "undo", "--turn", as_json["turns"][0]["id"])
    deleted = run(tmp_path, None, "sessions", "delete", summary["id"][:8])
    nothing = run(tmp_path, None, "sessions", "list")

    assert listed.stdout.split()[0] == summary["id"][:12]
    assert listed.stdout.rstrip().endswith("1 turn  write a.txt")
    assert (summary["turns"], summary["messages"], summary["is_open"]) == (1, 4, False)
    assert shown.stdout.startswith("# write a.txt\n")
    assert "**write_file**" in shown.stdout
    assert "*Changed: `a.txt`*" in shown.stdout
    assert (exported.stdout, (tmp_path / "out.md").read_text()) == ("", shown.stdout)
    assert (undone.returncode, undone.stdout) == (0, "changed   a.txt\n")
    assert after_undo == "mine\n"
    assert again.stdout == "All files are what they were already.\n"
    assert deleted.stdout == f"deleted {summary['id']}\n"
    assert nothing.stdout == "There is no session in this workspace.\n"
    assert list((tmp_path / "state").rglob(f"*{summary['id']}*")) == []


@pytest.mark.requirement("S1-sessions", "S4-undo")
def test_undo_refuses_with_a_diff_and_exit_code_1(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    server.reply_text("Written.")
    run(tmp_path, server, "run", "--mode", "accept_edits", "--no-validate", "--prompt", "x")
    (tmp_path / "work" / "a.txt").write_text("theirs\nand mine\n")

    undone = run(tmp_path, None, "sessions", "undo")

    assert undone.returncode == 1
    assert undone.stdout == (
        "refused   a.txt: it was changed since\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n theirs\n+and mine\n"
    )
    assert (tmp_path / "work" / "a.txt").read_text() == "theirs\nand mine\n"


@pytest.mark.requirement("F61")
def test_call_that_ran_when_the_process_was_killed_is_said_to_be_unknown(tmp_path: Path, server: OpenAIServer) -> None:
    work = tmp_path / "work"
    work.mkdir()
    told = tmp_path / "told"
    os.mkfifo(told)
    slow = json.dumps({"command": f"echo ran >> ran; echo > {told}; sleep 5"})
    server.reply_tool_calls(("call_1", "shell", slow), ("call_2", "shell", '{"command": "echo second >> ran"}'))
    server.reply_text("I look first.")
    command = [*COMMAND, "run", "--mode", "bypass", "--no-validate", "--prompt", "x"]
    with subprocess.Popen(command, cwd=work, env=environment(tmp_path, server), stderr=subprocess.DEVNULL) as process:
        told.read_bytes()
        process.send_signal(signal.SIGKILL)

    ran = run(tmp_path, server, "run", "--continue", "--no-validate", "--prompt", "go on")

    assert ran.stdout == "I look first.\n"
    assert (work / "ran").read_text() == "ran\n"
    [_prompt, _calls, first, second, _again] = heard(server, 1)
    assert first.startswith("Error [unknown_outcome]: ")
    assert second.startswith("Error [not_run]: ")


@pytest.mark.requirement("F64", "S1-sessions")
def test_session_that_another_process_has_open_is_refused(tmp_path: Path, server: OpenAIServer) -> None:
    work = tmp_path / "work"
    work.mkdir()
    told = tmp_path / "told"
    os.mkfifo(told)
    server.reply_tool_calls(("call_1", "shell", json.dumps({"command": f"echo > {told}; sleep 30"})))
    command = [*COMMAND, "run", "--mode", "bypass", "--no-validate", "--prompt", "x"]
    with subprocess.Popen(command, cwd=work, env=environment(tmp_path, server), stderr=subprocess.DEVNULL) as process:
        told.read_bytes()
        refused = run(tmp_path, server, "run", "--continue", "--prompt", "y")
        undo = run(tmp_path, None, "sessions", "undo")
        shown = run(tmp_path, None, "sessions", "show")
        listed = run(tmp_path, None, "sessions", "list")
        process.terminate()

    assert (refused.returncode, undo.returncode, shown.returncode) == (2, 2, 0)
    assert f"is open in another process (number {process.pid})" in refused.stderr
    assert listed.stdout.endswith("(open)\n")
