"""``agent-lsp`` as a process, against a real server that speaks the wire format."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.openai_server import End, OpenAIServer

COMMAND = (str(Path(sys.executable).with_name("agent-lsp")),)
"""The installed console script."""


def environment(tmp_path: Path, server: OpenAIServer | None = None) -> dict[str, str]:
    """A user without settings, and the model server as its endpoint."""
    home = {
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "TMPDIR": str(tmp_path),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AGENT_LSP_"))}
    if server is None:
        return kept | home
    return kept | home | {"OPENAI_API_KEY": "sk-planted", "OPENAI_BASE_URL": server.base_url, "AGENT_LSP_MODEL": "m"}


def run(
    tmp_path: Path, server: OpenAIServer | None, *arguments: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=work,
        env=environment(tmp_path, server),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.requirement("A66", "A67", "A69", "S1-run")
def test_run_logs_the_lifecycle_on_stderr_and_answers_on_stdout(tmp_path: Path, server: OpenAIServer) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("content of a\n")
    server.reply_tool_calls(("call_1", "read_file", '{"path": "a.txt"}'))
    server.reply_text("It says: content of a.")

    done = run(tmp_path, server, "run", "--prompt", "read a.txt")

    assert done.stdout == "It says: content of a.\n"
    assert done.stderr.splitlines() == [
        "[Hook] UserPromptSubmit",
        "[Hook] PreToolUse: read_file",
        "[Permission] read_file: allow (default) - No permission rule blocked the request",
        "[Hook] PostToolUse: read_file -> ok",
        "[Hook] Stop",
    ]
    assert done.returncode == 0
    assert "content of a" in json.dumps(server.requests[1].body["messages"])
    server.assert_consumed()


@pytest.mark.requirement("A68")
def test_run_denies_writes_where_nobody_can_be_asked(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(("call_1", "write_file", '{"path": "new.txt", "content": "x"}'))
    server.reply_text("I could not write.")

    done = run(tmp_path, server, "run", "--prompt", "write")

    results = [message for message in server.requests[1].body["messages"] if message["role"] == "tool"]
    assert [result["content"] for result in results] == [
        "Error [permission_denied]: No interactive approval input was available"
    ]
    assert not (tmp_path / "work" / "new.txt").exists()
    assert "[Permission] write_file: ask (write-default) - Changing files asks by default" in done.stderr.splitlines()
    assert done.returncode == 0


@pytest.mark.requirement("C14")
def test_run_blocks_a_dangerous_command_in_bypass_mode(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(("call_1", "shell", '{"command": "sudo rm -rf --no-preserve-root /"}'))
    server.reply_text("Blocked.")

    done = run(tmp_path, server, "run", "--mode", "bypass", "--prompt", "destroy")

    last = server.requests[1].body["messages"][-1]
    assert last["content"].startswith("Error [hook_blocked]: blocked by hook: dangerous command")
    assert done.returncode == 0


@pytest.mark.requirement("S1-run")
def test_run_reads_the_prompt_from_stdin(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("ok")

    done = run(tmp_path, server, "run", "--prompt", "-", stdin="from stdin")

    assert done.stdout == "ok\n"
    assert server.requests[0].body["messages"][-1] == {"role": "user", "content": "from stdin"}


@pytest.mark.requirement("S1-run")
def test_run_prints_one_json_object(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("ok", usage=(7, 3))

    done = run(tmp_path, server, "run", "--output", "json", "--prompt", "hi")

    body = json.loads(done.stdout)
    usage = {"input_tokens": 7, "output_tokens": 3, "cached_tokens": 0, "cost": None}
    assert len(body.pop("session_id")) == 32
    assert body == {
        "stop_reason": "completed",
        "text": "ok",
        "changes": [],
        "usage": usage,
        "session_usage": usage,
        "error": None,
        "validation": None,
    }


@pytest.mark.requirement("S1-run", "R18")
def test_run_streams_each_event_as_a_json_line(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("ok")

    done = run(tmp_path, server, "run", "--output", "stream-json", "--prompt", "hi")

    kinds = [json.loads(line)["event"]["type"] for line in done.stdout.splitlines()]
    assert [kind for kind in kinds if kind != "text_delta"] == [
        "turn_started",
        "hook_reached",
        "assistant_replied",
        "hook_reached",
        "turn_finished",
    ]


@pytest.mark.requirement("A69")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--prompt", " "), "The prompt is empty"),
        (("run", "--prompt", "x", "--mode", "wild"), "There is no permission mode 'wild'"),
        (("run", "--prompt", "x", "--chapter", "9"), "There is no chapter 9"),
        (("run", "--prompt", "x", "--max-turns", "0"), "--max-turns must be at least 1"),
        (("run", "--prompt", "x", "--cwd", "missing"), "Workspace folder does not exist"),
        (("run",), "the following arguments are required: --prompt"),
        (("fly",), "invalid choice: 'fly'"),
    ],
)
def test_usage_errors_exit_with_2_and_say_what_is_wrong(
    tmp_path: Path, server: OpenAIServer, arguments: tuple[str, ...], message: str
) -> None:
    done = run(tmp_path, server, *arguments)

    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.requirement("A69")
def test_run_without_a_model_or_key_says_what_to_set(tmp_path: Path) -> None:
    no_model = run(tmp_path, None, "run", "--prompt", "x")
    no_key = run(tmp_path, None, "run", "--prompt", "x", "--model", "m")

    assert (no_model.returncode, no_key.returncode) == (2, 2)
    assert "No model is set; give --model NAME" in no_model.stderr
    assert "No API key: OPENAI_API_KEY is not set" in no_key.stderr


@pytest.mark.requirement("A69", "F45", "F76")
def test_failed_run_exits_with_1_and_hides_the_key(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_error(401, message="Incorrect API key provided: sk-planted")

    done = run(tmp_path, server, "run", "--prompt", "x")

    assert done.returncode == 1
    assert "OPENAI_API_KEY" in done.stderr
    assert "sk-planted" not in done.stderr
    assert done.stdout == ""


@pytest.mark.requirement("F45")
def test_shell_does_not_get_the_key(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(("call_1", "shell", '{"command": "env"}'))
    server.reply_text("done")

    run(tmp_path, server, "run", "--mode", "bypass", "--prompt", "x")

    output = server.requests[1].body["messages"][-1]["content"]
    assert "HOME=" in output
    assert "sk-planted" not in output


@pytest.mark.requirement("S2-errors", "F71")
def test_settings_mistakes_are_told_and_the_run_goes_on(tmp_path: Path, server: OpenAIServer) -> None:
    settings = tmp_path / "work" / ".agent-lsp"
    settings.mkdir(parents=True)
    (settings / "settings.json").write_text(
        '{\n  "permissions": {"mode": "wild"},\n  "model": {"base_url": "http://evil"}\n}\n'
    )
    server.reply_text("ok")

    done = run(tmp_path, server, "run", "--prompt", "x")

    assert f"{settings / 'settings.json'}:2:27: permissions.mode: Input should be 'default'" in done.stderr
    assert "a workspace does not say which model" in done.stderr
    assert (done.stdout, done.returncode) == ("ok\n", 0)


@pytest.mark.requirement("A60", "A69", "F60")
def test_interrupt_ends_the_run_with_130_and_no_traceback(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_raw(end=End.HANG)
    (tmp_path / "work").mkdir()
    process = subprocess.Popen(
        [*COMMAND, "run", "--prompt", "x"],
        cwd=tmp_path / "work",
        env=environment(tmp_path, server),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    server.wait_for_requests(1)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)

    assert (process.returncode, stdout) == (130, "")
    assert "Traceback" not in stderr


@pytest.mark.requirement("S1-version")
def test_version_is_one_line(tmp_path: Path) -> None:
    from agent_lsp import __version__

    assert run(tmp_path, None, "--version").stdout == f"agent-lsp {__version__}\n"


@pytest.mark.requirement("S1-demo")
def test_demo_fixes_its_project_and_shows_the_blocked_write(tmp_path: Path) -> None:
    done = run(tmp_path, None, "demo", "--keep")

    *answer, place = done.stdout.splitlines()
    project = Path(place.removeprefix("The project is in "))
    tests = subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=project, capture_output=True, check=False)
    log = subprocess.run(["git", "status", "--porcelain"], cwd=project, capture_output=True, text=True, check=True)
    assert "The project's own tests pass." in answer
    assert tests.returncode == 0
    assert " M basket.py" in log.stdout.splitlines()
    assert "generated.txt" not in log.stdout
    assert "generated.txt is managed elsewhere" in done.stderr
    assert done.returncode == 0
