"""Long conversations through the real program and a real server: refused once, made shorter, gone on with."""

import json
from pathlib import Path

import pytest

from tests.flows.test_command_line import run
from tests.support.openai_server import OpenAIServer
from tests.support.providers import PROVIDERS

LINES = "".join(f"line {number} of a long file\n" for number in range(3_000))
OVERFLOW = next(provider for provider in PROVIDERS if provider.name == "openai").overflow()


def read_all(server: OpenAIServer, times: int) -> None:
    for number in range(times):
        arguments = json.dumps({"path": "long.txt", "start_line": number + 1})
        server.reply_tool_calls((f"call_{number}", "read_file", arguments))


@pytest.mark.requirement("F53")
def test_a_refused_request_is_sent_again_shorter_and_the_session_keeps_all_of_it(
    tmp_path: Path, server: OpenAIServer
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "long.txt").write_text(LINES)
    read_all(server, 3)
    server.reply(OVERFLOW)
    server.reply_text("Three reads of long.txt so far.")
    server.reply_text("I have read it.")
    first = run(tmp_path, server, "run", "--prompt", "read it all")
    server.reply_text("Yes.")
    second = run(tmp_path, server, "run", "--continue", "--prompt", "all of it?")
    exported = run(tmp_path, server, "sessions", "export", "--format", "json")

    assert (first.stdout, second.stdout) == ("I have read it.\n", "Yes.\n")
    [line] = [line for line in first.stderr.splitlines() if line.startswith("[Model]")]
    assert line.startswith("[Model] the conversation was made shorter (summary, overflow): ")
    refused, _, shorter, later = (json.dumps(request.body["messages"]) for request in server.requests[3:])
    assert len(shorter) < len(refused) / 1.5
    assert "Three reads of long.txt so far." in shorter
    assert "Three reads of long.txt so far." in later
    assert exported.stdout.count("line 2000 of a long file") == refused.count("line 2000 of a long file")
    server.assert_consumed()


@pytest.mark.requirement("F53")
def test_a_conversation_that_cannot_be_made_shorter_ends_with_what_to_do(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply(OVERFLOW)
    done = run(tmp_path, server, "run", "--prompt", "-", stdin="word " * 50_000)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        "Making the conversation shorter did not help: begin a new session, or choose a model with a larger context"
    )
    assert len(server.requests) == 1


@pytest.mark.requirement("F35")
def test_a_turn_that_fails_the_same_way_three_times_ends_with_the_reason(tmp_path: Path, server: OpenAIServer) -> None:
    for number in range(3):
        server.reply_tool_calls((f"call_{number}", "read_file", '{"path": "missing.txt"}'))
    done = run(tmp_path, server, "run", "--prompt", "read it")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        'agent-lsp: The model made the same failing call 3 times in a row: read_file {"path": "missing.txt"} - '
        "Error [file_not_found]: File not found: missing.txt"
    )
    server.assert_consumed()
