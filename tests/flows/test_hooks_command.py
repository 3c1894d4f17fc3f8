"""``agent-lsp hooks`` and ``agent-lsp trust`` as processes, and what trust does to a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.flows.test_command_line import run
from tests.hooks.executors.server import HookServer, Response
from tests.support.openai_server import OpenAIServer

RM = {
    "type": "command",
    "command": "exit 2",
    "matcher": "shell",
    "if": "/rm -rf/",
    "blocking": True,
    "timeout": 30,
    "name": "no-rm",
}


def configure(tmp_path: Path, hooks: dict[str, Any], **sections: Any) -> Path:
    file = tmp_path / "work" / ".agent-lsp" / "settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"hooks": hooks, **sections}, indent=1))
    return file


@pytest.mark.requirement("S1-hooks", "F11", "B4")
def test_hooks_list_shows_every_hook_its_place_its_state_and_the_mistakes(tmp_path: Path) -> None:
    bad = {"type": "command", "command": ""}
    file = configure(tmp_path, {"PreToolUse": [RM, bad], "Odd": []})

    listed = run(tmp_path, None, "hooks", "list")
    run(tmp_path, None, "trust", "--yes")
    trusted = run(tmp_path, None, "hooks", "list")

    assert listed.returncode == 0
    assert listed.stdout.splitlines()[:3] == [
        "PreToolUse  command  exit 2",
        f"    {file}:4:4",
        "    matcher shell, if /rm -rf/, blocking, timeout 30 s, not trusted, so it is not run: see agent-lsp trust",
    ]
    assert f"problem: {file}:15:" in listed.stdout
    assert "hooks.PreToolUse.1.command: is missing or empty; the hook is left out" in listed.stdout
    assert "hooks.Odd: unknown event" in listed.stdout
    assert trusted.stdout.splitlines()[2] == "    matcher shell, if /rm -rf/, blocking, timeout 30 s, trusted"


@pytest.mark.requirement("S1-hooks", "F11", "B18", "B19")
@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("shell", r'{"command": "rm -rf x"}', ["runs  no-rm"]),
        ("SHELL", r'{"command": "rm\u0020-rf x"}', ["runs  no-rm"]),
        ("shell", '{"command": "ls"}', ["not   no-rm", "      if '/rm -rf/' does not match the arguments"]),
        ("write_file", "{}", ["not   no-rm", "      matcher 'shell' does not match 'write_file'"]),
    ],
)
def test_hooks_test_says_what_would_run_and_why_not(tmp_path: Path, tool: str, args: str, expected: list[str]) -> None:
    file = configure(tmp_path, {"PreToolUse": [RM]})

    tested = run(tmp_path, None, "hooks", "test", "PreToolUse", "--tool", tool, "--args", args)

    assert tested.stdout.replace(f"  ({file}:4:4)", "").splitlines() == expected
    assert tested.returncode == 0


@pytest.mark.requirement("S1-hooks", "B42")
def test_hooks_test_runs_one_hook_behind_the_gate(tmp_path: Path) -> None:
    say = {"type": "command", "command": 'touch ran; echo \'{"additional_context": "c"}\'; echo err >&2', "name": "say"}
    configure(tmp_path, {"Notification": [say]})

    refused = run(tmp_path, None, "hooks", "test", "Notification", "--run", "say")
    ran_refused = (tmp_path / "work" / "ran").exists()
    trusted = run(tmp_path, None, "hooks", "test", "Notification", "--run", "--trust")
    unknown = run(tmp_path, None, "hooks", "test", "Notification", "--run", "nobody")
    odd = run(tmp_path, None, "hooks", "test", "Stopp")
    broken = run(tmp_path, None, "hooks", "test", "Notification", "--args", "{")

    why = "not trusted (No interactive approval input was available; use --trust or agent-lsp trust)"
    assert f"skipped: {why}" in refused.stdout
    assert (refused.returncode, ran_refused) == (1, False)
    assert "passed\nexit code 0, " in trusted.stdout
    assert "stderr:\nerr\n" in trusted.stdout
    assert 'answer: {"additional_context": "c"}' in trusted.stdout
    assert trusted.returncode == 0
    assert (unknown.returncode, odd.returncode, broken.returncode) == (2, 2, 2)
    assert "There is no hook nobody for Notification" in unknown.stderr
    assert "There is no event Stopp; known are PreToolUse" in odd.stderr
    assert "--args is not JSON" in broken.stderr


@pytest.mark.requirement("S1-trust", "F70")
def test_trust_shows_grants_and_revokes_by_content(tmp_path: Path) -> None:
    file = configure(tmp_path, {"PreToolUse": [RM]}, permissions={"allow": ["edit(src/**)"]})

    shown = run(tmp_path, None, "trust", "--show")
    unasked = run(tmp_path, None, "trust")
    granted = run(tmp_path, None, "trust", "--yes")
    after = run(tmp_path, None, "trust", "--show")
    configure(tmp_path, {"PreToolUse": [RM | {"command": "exit 3"}]}, permissions={"allow": ["edit(src/**)"]})
    changed = run(tmp_path, None, "trust", "--show")
    revoked = run(tmp_path, None, "trust", "--revoke")
    last = run(tmp_path, None, "trust", "--show")

    states = [[line.split()[0] for line in each.stdout.splitlines()] for each in (shown, after, changed, last)]
    assert states == [["waiting", "waiting"], ["trusted", "trusted"], ["waiting", "trusted"], ["waiting", "waiting"]]
    assert f"waiting  PreToolUse command: exit 2  ({file}:4:4)" in shown.stdout
    assert 'permissions.allow "edit(src/**)"' in shown.stdout
    assert (unasked.returncode, granted.returncode) == (1, 0)
    assert "There is no terminal to ask on; say --yes" in unasked.stderr
    assert "Revoked: 1" in revoked.stdout


@pytest.mark.requirement("B42", "F70", "B24")
@pytest.mark.parametrize("trust", [False, True])
def test_run_obeys_a_blocking_hook_and_runs_it_only_where_trusted(
    tmp_path: Path, server: OpenAIServer, trust: bool
) -> None:
    configure(tmp_path, {"PreToolUse": [{"type": "command", "command": "touch ran; exit 2", "blocking": True}]})
    server.reply_tool_calls(("call_1", "list_files", "{}"))
    server.reply_text("ok")

    done = run(tmp_path, server, "run", "--prompt", "x", *(["--trust"] if trust else []))

    result = server.requests[1].body["messages"][-1]["content"]
    why = "not trusted (No interactive approval input was available; use --trust or agent-lsp trust)"
    assert (tmp_path / "work" / "ran").exists() is trust
    assert result == "Error [hook_blocked]: blocked by hook: " + (
        "blocked by hook" if trust else f"touch ran; exit 2 was not run: {why}"
    )
    shown = "blocked list_files - blocked by hook" if trust else f"skipped list_files - {why}"
    assert f"[Hook] touch ran; exit 2: {shown}" in done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (0, "ok\n")


@pytest.mark.requirement("B25", "A69")
def test_run_with_a_rejected_prompt_fails_and_says_why(tmp_path: Path, server: OpenAIServer) -> None:
    hook = {"type": "command", "command": "echo not today >&2; exit 2", "blocking": True, "name": "calendar"}
    configure(tmp_path, {"UserPromptSubmit": [hook]})

    done = run(tmp_path, server, "run", "--trust", "--prompt", "x")

    assert (done.returncode, done.stdout) == (1, "")
    assert "agent-lsp: The prompt was blocked by hook calendar: not today" in done.stderr
    assert server.requests == []


def payload(tmp_path: Path, event: str, *arguments: str, **entry: Any) -> dict[str, Any]:
    """What ``hooks test EVENT --run`` gives to a hook, without what all events share."""
    configure(tmp_path, {event: [{"type": "command", "command": "cat > got.json", **entry}]})
    done = run(tmp_path, None, "hooks", "test", event, "--run", "--trust", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    got: dict[str, Any] = json.loads((tmp_path / "work" / "got.json").read_text())
    return {key: value for key, value in got.items() if key not in ("event", "session_id", "cwd")}


@pytest.mark.requirement("S1-hooks", "F11", "B16")
@pytest.mark.parametrize(
    ("event", "arguments", "expected"),
    [
        (
            "PreToolUse",
            ["--tool", "shell", "--args", '{"command": "ls"}'],
            {"tool": "shell", "args": {"command": "ls"}},
        ),
        ("PostToolUse", ["--tool", "shell"], {"tool": "shell", "output": "a sample output", "is_error": False}),
        ("UserPromptSubmit", [], {"prompt": "a sample prompt"}),
        ("Notification", [], {"message": "a sample message", "is_error": False}),
        ("SubagentStop", ["--tool", "scout"], {"agent": "scout", "message": "a sample answer", "is_error": False}),
        ("TaskCreated", ["--args", '{"subject": "x"}'], {"args": {"subject": "x"}, "task": {"subject": "x"}}),
        ("SessionStart", [], {}),
    ],
)
def test_hooks_test_gives_a_hook_what_its_event_would(
    tmp_path: Path, event: str, arguments: list[str], expected: dict[str, Any]
) -> None:
    assert payload(tmp_path, event, *arguments) == expected


@pytest.mark.requirement("S1-hooks", "F11", "B28")
def test_hooks_test_of_task_completed_tells_both_states(tmp_path: Path) -> None:
    got = payload(tmp_path, "TaskCompleted", matcher="task_update")

    assert (got["status_from"], got["status_to"]) == ("in_progress", "completed")
    assert (got["previous_task"]["status"], got["task"]["status"]) == ("in_progress", "completed")


@pytest.mark.requirement("S1-hooks", "F11", "B18")
@pytest.mark.parametrize(
    ("event", "entry", "mismatch"),
    [
        ("TaskCreated", {"matcher": "task_create"}, None),
        ("TaskCompleted", {"matcher": "task_update"}, None),
        ("SubagentStop", {"matcher": "task_create"}, "matcher 'task_create' does not match ''"),
        ("Notification", {"if": "/{}/"}, "if '/{}/' does not match the arguments"),
        ("UserPromptSubmit", {"if": "/^$/"}, None),
    ],
)
def test_hooks_test_knows_what_an_event_is_about(
    tmp_path: Path, event: str, entry: dict[str, Any], mismatch: str | None
) -> None:
    configure(tmp_path, {event: [{"type": "command", "command": "true", **entry}]})

    tested = run(tmp_path, None, "hooks", "test", event).stdout.splitlines()

    assert tested[0].split()[0] == ("runs" if mismatch is None else "not")
    assert [line.strip() for line in tested[1:]] == ([] if mismatch is None else [mismatch])


@pytest.mark.requirement("S1-hooks", "B12")
@pytest.mark.parametrize("allowed", [False, True])
def test_a_host_in_the_own_network_is_reached_only_where_the_settings_name_it(tmp_path: Path, allowed: bool) -> None:
    with HookServer(Response(body=b'{"additional_context": "from the server"}')) as hooks:
        entry = {"type": "http", "url": f"http://127.0.0.1:{hooks.port}/x"}
        configure(tmp_path, {"SessionStart": [entry]}, **({"hooks_http_allow": ["127.0.0.1"]} if allowed else {}))

        tested = run(tmp_path, None, "hooks", "test", "SessionStart", "--run", "--trust")

    assert len(hooks.requests) == int(allowed)
    assert ("from the server" in tested.stdout) is allowed
    assert ("127.0.0.1, which is not a public address; hooks_http_allow" in tested.stdout) is not allowed


@pytest.mark.requirement("F45")
def test_the_key_that_the_settings_name_does_not_reach_a_hook(
    tmp_path: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "planted")
    monkeypatch.setenv("MY_OTHER", "kept")
    user = tmp_path / "config" / "agent-lsp" / "settings.json"
    user.parent.mkdir(parents=True)
    user.write_text('{"model": {"api_key_env": "MY_KEY"}}')
    configure(tmp_path, {"UserPromptSubmit": [{"type": "command", "command": "env > seen"}]})
    server.reply_text("ok")

    run(tmp_path, server, "run", "--trust", "--prompt", "x")

    seen = (tmp_path / "work" / "seen").read_text().splitlines()
    assert server.requests[0].headers["authorization"] == "Bearer planted"
    assert [line for line in seen if line.startswith(("MY_", "OPENAI_API_KEY"))] == ["MY_OTHER=kept"]


FORGED = "true\n\x1b[2K\u202etrusted"


@pytest.mark.requirement("S1-hooks", "S1-trust", "F27")
@pytest.mark.parametrize(
    "arguments",
    [["hooks", "list"], ["hooks", "test", "PreToolUse"], ["trust", "--show"]],
)
def test_text_of_settings_cannot_forge_what_is_shown(tmp_path: Path, arguments: list[str]) -> None:
    hook = {"type": "command", "command": FORGED, "matcher": FORGED, "if": FORGED, "name": FORGED}
    configure(tmp_path, {"PreToolUse": [hook], FORGED: []})

    shown = run(tmp_path, None, *arguments).stdout

    assert "true⏎\\u{1b}[2K\\u{202e}trusted" in shown
    assert not {"\x1b", "\u202e"} & set(shown)
    assert not any(line.startswith(("\\u{1b}", "trusted")) for line in shown.splitlines())


@pytest.mark.requirement("S2-errors", "F27")
def test_text_of_settings_cannot_forge_a_problem_of_a_run(tmp_path: Path, server: OpenAIServer) -> None:
    configure(tmp_path, {FORGED: []})
    server.reply_text("ok")

    done = run(tmp_path, server, "run", "--prompt", "x")

    assert "true⏎\\u{1b}[2K\\u{202e}trusted" in done.stderr
    assert not {"\x1b", "\u202e"} & set(done.stderr)


@pytest.mark.requirement("B11", "F76")
def test_the_secrets_of_an_url_are_not_in_the_log(tmp_path: Path, server: OpenAIServer) -> None:
    url = "https://user:hunter2@127.0.0.1/TOKEN?key=TOKEN"
    configure(tmp_path, {"UserPromptSubmit": [{"type": "http", "url": url}]})
    server.reply_text("ok")

    done = run(tmp_path, server, "run", "--trust", "--output", "stream-json", "--prompt", "x")

    assert "[Hook] https://127.0.0.1: failed" in done.stderr
    assert not any(secret in done.stdout + done.stderr for secret in ("hunter2", "TOKEN"))
