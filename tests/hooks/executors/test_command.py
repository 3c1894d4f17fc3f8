"""Hooks as real programs, well and badly behaved: judged by exit code and output alone, and nothing outlives them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.hooks.answer import DEFAULT_REASON, Answer
from agent_lsp.hooks.executors.command import run_command
from agent_lsp.hooks.runner import Occasion
from agent_lsp.messages import JsonObject
from agent_lsp.processes import child_environment
from tests.conftest import marked_processes
from tests.hooks.configured import command, established, make_runner

LARGE = json.dumps({"text": "x" * 5 * 1024 * 1024})


async def run(
    text: str | list[str], root: Path, environment: Mapping[str, str], payload: str = "{}", **more: Any
) -> Answer:
    return await run_command(command(text, **more), payload, root=root, environment=environment, variables={})


def script(path: Path, text: str, *, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.mark.requirement("B8", "F1")
@pytest.mark.parametrize("payload", ['{"event": "PreToolUse"}', LARGE], ids=["small", "large"])
async def test_hook_reads_the_payload_to_its_end(tmp_path: Path, environment: dict[str, str], payload: str) -> None:
    answer = await run('cat >got; echo \'{"additional_context": "read"}\'', tmp_path, environment, payload)

    assert answer == Answer(context="read", exit_code=0)
    assert (tmp_path / "got").read_text() == payload


@pytest.mark.requirement("F1")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", Answer(exit_code=0)),
        ("exec 0<&-; echo no >&2; exit 2", Answer(blocked=True, reason="no", exit_code=2, stderr="no")),
        ("head -c 1 >/dev/null; exit 1", Answer(failure="exit code 1", exit_code=1)),
        ("""echo '{"block": true}'""", Answer(blocked=True, exit_code=0)),
    ],
)
async def test_hook_that_ignores_its_input_is_judged_like_any_other(
    tmp_path: Path, environment: dict[str, str], text: str, expected: Answer
) -> None:
    assert await run(text, tmp_path, environment, LARGE) == expected


@pytest.mark.requirement("F1")
async def test_hook_that_floods_its_output_before_it_reads_does_not_deadlock(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    flood = "head -c 50000000 /dev/zero | tr '\\0' x; echo; wc -c >got; echo '{\"block\": true}'"

    answer = await run(flood, tmp_path, environment, LARGE)

    assert answer == Answer(blocked=True, exit_code=0)
    assert int((tmp_path / "got").read_text()) == len(LARGE)


@pytest.mark.requirement("F1")
async def test_hook_that_floods_both_streams_is_kept_in_bounds(tmp_path: Path, environment: dict[str, str]) -> None:
    flood = "head -c 50000000 /dev/zero | tr '\\0' x | tee /dev/stderr; exit 2"

    answer = await run(flood, tmp_path, environment)

    assert answer.blocked
    assert len(answer.reason) < 5_000


# --- how it ends


@pytest.mark.requirement("F2", "B14")
@pytest.mark.parametrize(
    "text",
    [
        "sleep 300",
        "sleep 300 & sleep 300",
        "setsid sleep 300 & wait",
        "trap '' TERM; while :; do sleep 300; done",
        "(setsid sh -c \"trap '' TERM; while :; do sleep 300; done\" &); sleep 300",
        "echo '{\"block\": true}'; sleep 300",
    ],
)
async def test_hook_that_takes_too_long_is_ended_with_all_that_it_started(
    tmp_path: Path, environment: dict[str, str], text: str
) -> None:
    answer = await run(text, tmp_path, environment, timeout=0.4)

    assert (answer.failure, answer.blocked, answer.exit_code) == ("timed out after 0.4 s", False, None)
    assert marked_processes(environment["AGENT_LSP_TEST"]) == []


@pytest.mark.requirement("F2")
@pytest.mark.parametrize("background", ["sleep 300 &", "setsid sleep 300 &", "(trap '' TERM; sleep 300) &"])
async def test_grandchild_that_holds_the_output_does_not_hold_up_the_run(
    tmp_path: Path, environment: dict[str, str], background: str
) -> None:
    answer = await run(f"{background} echo '{{\"block\": true}}'", tmp_path, environment)

    assert answer == Answer(blocked=True, exit_code=0)


@pytest.mark.requirement("B14")
@pytest.mark.parametrize(
    ("text", "code"), [("kill -KILL $$", -9), ("kill -TERM $$", -15), ("echo '{\"block\": false}'; kill -SEGV $$", -11)]
)
async def test_hook_that_dies_by_a_signal_has_failed(
    tmp_path: Path, environment: dict[str, str], text: str, code: int
) -> None:
    answer = await run(["sh", "-c", text], tmp_path, environment)

    assert answer == Answer(failure=f"exit code {code}", exit_code=code)


@pytest.mark.requirement("B14")
@pytest.mark.parametrize("name", ["./missing", "missing-from-the-path", "./plain", "./directory"])
async def test_program_that_cannot_be_started_has_failed(
    tmp_path: Path, environment: dict[str, str], name: str
) -> None:
    script(tmp_path / "plain", "exit 2", mode=0o644)
    (tmp_path / "directory").mkdir()

    listed = await run([name], tmp_path, environment)
    by_shell = await run(name, tmp_path, environment)

    assert listed.failure is not None
    assert listed.failure.startswith("cannot be started: ")
    assert by_shell.failure is not None
    assert by_shell.failure.startswith("exit code 12")
    assert (listed.blocked, by_shell.blocked) == (False, False)


@pytest.mark.requirement("B14")
async def test_root_that_is_gone_is_a_failure(tmp_path: Path, environment: dict[str, str]) -> None:
    answer = await run("true", tmp_path / "gone", environment)

    assert answer.failure is not None
    assert answer.failure.startswith("cannot be started: ")


@pytest.mark.requirement("B9", "F4")
async def test_exit_two_blocks_with_nothing_on_stderr(tmp_path: Path, environment: dict[str, str]) -> None:
    assert await run("exit 2", tmp_path, environment) == Answer(blocked=True, reason=DEFAULT_REASON, exit_code=2)


@pytest.mark.requirement("B9", "F41")
async def test_reason_is_what_a_person_would_have_read(tmp_path: Path, environment: dict[str, str]) -> None:
    answer = await run("printf '\\033[31m10%%\\rno\\033[0m \\377\\n' >&2; exit 2", tmp_path, environment)

    assert answer == Answer(blocked=True, reason="no \ufffd", exit_code=2, stderr="no \ufffd")


@pytest.mark.requirement("F3", "B14")
async def test_banner_of_a_profile_does_not_hide_the_answer(tmp_path: Path, environment: dict[str, str]) -> None:
    banner = "printf 'Welcome to {host}\\n\\n* 3 updates [y/n]\\n'"
    answer = await run(f"{banner}; printf '{{\\n  \"block\": true\\n}}\\n'", tmp_path, environment)

    assert answer == Answer(blocked=True, exit_code=0)


@pytest.mark.requirement("F3")
async def test_output_that_only_begins_like_json_is_reported_with_its_position(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    answer = await run("""echo '{"block": yes}'""", tmp_path, environment)

    assert answer.failure is not None
    assert "line 1 column 11" in answer.failure


# --- where and with what it runs


@pytest.mark.requirement("F13", "B8")
@pytest.mark.parametrize("text", ["hooks/check.sh", ["hooks/check.sh"], ["sh", "hooks/check.sh"], "./hooks/check.sh"])
async def test_relative_command_is_found_below_the_root_from_a_directory_that_is_gone(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, text: str | list[str]
) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    script(root / "hooks" / "check.sh", "#!/bin/sh\npwd -P\nexit 2\n")
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    elsewhere.rmdir()

    answer = await run([*text] if isinstance(text, list) else f"{text} >&2", root, environment)

    assert (answer.blocked, answer.exit_code) == (True, 2)
    assert isinstance(text, list) or answer.reason == str(root.resolve())


@pytest.mark.requirement("F3", "F45")
async def test_environment_has_no_start_up_files_and_no_key(tmp_path: Path, environment: dict[str, str]) -> None:
    noisy = script(tmp_path / "noise.sh", "touch read-at-start\n")
    planted = {"BASH_ENV": str(noisy), "ENV": str(noisy), "OPENAI_API_KEY": "secret-key", "OTHER_KEY": "secret-key"}
    clean = child_environment(environment | planted, ["OTHER_KEY"])

    for text in ("env -0 >environment; bash -c true; sh -c true", ["bash", "-c", "env -0 >environment"]):
        assert await run(text, tmp_path, clean) == Answer(exit_code=0)
        assert "secret-key" not in (tmp_path / "environment").read_text()
        assert not {"BASH_ENV", "ENV"} & {
            entry.partition("=")[0] for entry in (tmp_path / "environment").read_text().split("\0")
        }
    assert not (tmp_path / "read-at-start").exists()


@pytest.mark.requirement("B8", "B16")
async def test_hook_is_told_event_tool_and_session(tmp_path: Path, environment: dict[str, str]) -> None:
    hook = command("""printf '%s/%s/%s' "$HOOK_EVENT" "$HOOK_TOOL_NAME" "$HOOK_SESSION_ID" >variables; cat >payload""")
    runner = make_runner(tmp_path, environment, hook)

    await runner.run_one(hook, Occasion(event="PreToolUse", subject="note", args={"a": 1}, payload={"tool": "note"}))

    assert (tmp_path / "variables").read_text() == "PreToolUse/note/session 1"
    assert json.loads((tmp_path / "payload").read_text()) == {
        "event": "PreToolUse",
        "session_id": "session 1",
        "cwd": str(tmp_path),
        "tool": "note",
        "args": {"a": 1},
    }


@pytest.mark.requirement("B13")
async def test_established_hook_gets_the_names_that_it_knows(tmp_path: Path, environment: dict[str, str]) -> None:
    text = 'cat >payload; echo "$CLAUDE_PROJECT_DIR" >directory'
    hook = established({"type": "command", "command": text}, matcher="Write")
    args = {"path": "a.txt", "content": "x"}
    occasion = Occasion(event="PreToolUse", subject="write_file", args=args, payload={"tool": "write_file"})

    await make_runner(tmp_path, environment, hook).run(occasion)

    payload = json.loads((tmp_path / "payload").read_text())
    assert (payload["hook_event_name"], payload["tool_name"]) == ("PreToolUse", "Write")
    assert payload["tool_input"] == {"file_path": str(tmp_path / "a.txt"), "content": "x"}
    assert (payload["tool"], payload["args"]) == ("write_file", args)
    assert (tmp_path / "directory").read_text().strip() == str(tmp_path)


ODD: JsonObject = {"text": "grün 🙂 \u202e \x00\x1b \ud800 \udcff", "quote": "\"'`$(x)\n", "number": 1e300}


@pytest.mark.requirement("F12")
@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "tr_TR.ISO-8859-9"])
async def test_payload_survives_any_locale(tmp_path: Path, environment: dict[str, str], locale: str) -> None:
    program = (
        "import json, sys\n"
        "payload = json.load(sys.stdin)\n"
        "json.dump({'updated_input': payload['args'], 'additional_context': 'grün'}, sys.stdout)\n"
    )
    odd = environment | {"LC_ALL": locale, "LANG": locale, "PYTHONUTF8": "0"}
    script(tmp_path / "echo.py", program)
    hook = command([sys.executable, "echo.py"])

    outcome = await make_runner(tmp_path, odd, hook).run(Occasion(event="PreToolUse", args=ODD))

    assert (outcome.args, outcome.context) == (ODD, "grün")


@pytest.mark.requirement("F1", "F75")
async def test_arguments_of_a_call_travel_on_stdin_alone(tmp_path: Path, environment: dict[str, str]) -> None:
    text = "xargs -0 -n1 </proc/$$/cmdline >words; env >environment; wc -c >size"
    args = {"command": "$(touch injected); `touch injected`" * 100_000}

    outcome = await make_runner(tmp_path, environment, command(text)).run(
        Occasion(event="PreToolUse", subject="shell", args=args, payload={"tool": "shell"})
    )

    assert outcome.advice is PermissionBehavior.PASSTHROUGH
    assert int((tmp_path / "size").read_text()) > len(args["command"])
    assert "touch" not in (tmp_path / "words").read_text() + (tmp_path / "environment").read_text()
    assert not (tmp_path / "injected").exists()


@pytest.mark.requirement("B2", "F75")
async def test_list_runs_without_a_shell(tmp_path: Path, environment: dict[str, str]) -> None:
    words = ["$(touch x)", "`touch y`", "a;b", "*", "$HOME", "\n"]

    answer = await run(["touch", "--", *words], tmp_path, environment)

    assert answer == Answer(exit_code=0)
    assert {path.name for path in tmp_path.iterdir()} == set(words)


@pytest.mark.requirement("B2")
async def test_string_runs_in_a_shell(tmp_path: Path, environment: dict[str, str]) -> None:
    assert await run("touch a && touch $(echo b) | cat", tmp_path, environment) == Answer(exit_code=0)
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}
