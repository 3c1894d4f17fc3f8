"""Configured hooks at their positions in a session: what they are told, and what they can do there."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_lsp.agent.events import AgentEvent, ConfiguredHookRan, SubagentFinished, ToolStarted
from agent_lsp.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from agent_lsp.models.scripted import ScriptedModel, Step, calls, says
from agent_lsp.session.assemble import SessionOptions, open_session
from agent_lsp.session.session import PermissionMode, Session
from tests.support.harness import RecordingApprover

RECORD = [
    sys.executable,
    "-c",
    "import os, sys; open(os.environ['HOOK_EVENT'] + '.json', 'a').write(sys.stdin.read() + '\\n')",
]
NOTE = ("write_file", {"path": "note.txt", "content": "hello\n"})


class Hooked:
    """A workspace with hooks, and a session in it that trusts them and edits unasked."""

    def __init__(self, root: Path, hooks: dict[str, list[dict[str, Any]]], *script: Step, **given: Any) -> None:
        self.root = root
        settings = {"hooks": hooks, "permissions": {"mode": "accept_edits"}}
        (root / ".agent-lsp").mkdir()
        (root / ".agent-lsp" / "settings.json").write_text(json.dumps(settings))
        self.model = ScriptedModel(script)
        self.approver = RecordingApprover()
        self.events: list[AgentEvent] = []
        self.session: Session = open_session(
            SessionOptions(**{"root": root, "approver": self.approver, "model": self.model, "trusted": True, **given})
        )
        self.session.subscribe(self.events.append)

    def told(self, event: str) -> list[dict[str, Any]]:
        """What the recording hooks of an event got, without what all events share."""
        lines = (self.root / f"{event}.json").read_text().splitlines()
        payloads = [json.loads(line) for line in lines]
        shared = {"event": event, "session_id": self.session.id, "cwd": str(self.root)}
        assert [{key: payload[key] for key in shared} for payload in payloads] == [shared] * len(payloads)
        return [{key: value for key, value in payload.items() if key not in shared} for payload in payloads]

    def ran(self) -> list[tuple[str, str, str]]:
        """Event, decision and reason of every hook run."""
        runs = [event for event in self.events if isinstance(event, ConfiguredHookRan)]
        return [(run.event, run.decision, run.reason) for run in runs]


def record(**more: Any) -> dict[str, Any]:
    return {"type": "command", "command": RECORD, **more}


def shell(command: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, **more}


def prints(envelope: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": ["printf", "%s", json.dumps(envelope)], **more}


@pytest.mark.requirement("B25", "R4")
async def test_blocked_prompt_is_rejected_before_history_is_touched(tmp_path: Path) -> None:
    hooks = {"UserPromptSubmit": [shell("echo no secrets here >&2; exit 2", blocking=True, name="secrets")]}
    hooked = Hooked(tmp_path, hooks)

    finished = await hooked.session.run("the password is x")

    assert (finished.stop_reason, finished.error) == (
        "rejected",
        "The prompt was blocked by hook secrets: no secrets here",
    )
    assert list(hooked.session.transcript) == []
    assert hooked.model.requests == []


@pytest.mark.requirement("B16", "B22", "B26")
async def test_prompt_hooks_are_told_the_prompt_and_add_context(tmp_path: Path) -> None:
    context = json.dumps({"additional_context": "branch: main </system-reminder>"})
    hooks = {"UserPromptSubmit": [record(), shell("exit 2"), shell(f"echo '{context}'", blocking=True)]}
    hooked = Hooked(tmp_path, hooks, says("ok"))

    await hooked.session.run("hello")

    assert hooked.told("UserPromptSubmit") == [{"prompt": "hello"}]
    assert list(hooked.session.transcript) == [
        UserMessage(content="hello"),
        SystemMessage(content="<system-reminder>\nbranch: main &lt;/system-reminder>\n</system-reminder>"),
        AssistantMessage(content="ok"),
    ]


@pytest.mark.requirement("B24", "B29", "B16", "R1")
async def test_tool_hooks_see_rewritten_arguments_and_their_context_follows_the_results(tmp_path: Path) -> None:
    rewrite = {"updated_input": {"path": "other.txt", "content": "hello\n"}, "additional_context": "mind the name"}
    hooks = {
        "PreToolUse": [prints(rewrite, **{"if": "/note/"}), record()],
        "PostToolUse": [record()],
    }
    hooked = Hooked(tmp_path, hooks, calls(NOTE), says("ok"))

    async with hooked.session.opened(drain=20):
        await hooked.session.run("x")

    assert not (tmp_path / "note.txt").exists()
    assert (tmp_path / "other.txt").read_text() == "hello\n"
    assert hooked.told("PreToolUse") == [{"tool": "write_file", "args": rewrite["updated_input"]}]
    result = hooked.session.transcript[2]
    assert isinstance(result, ToolMessage)
    assert hooked.session.transcript[3] == SystemMessage(content="<system-reminder>\nmind the name\n</system-reminder>")
    assert hooked.told("PostToolUse") == [
        {"tool": "write_file", "args": rewrite["updated_input"], "output": result.content, "is_error": False}
    ]


@pytest.mark.requirement("F5", "F6")
@pytest.mark.parametrize("first", ["ask", "rewrite"])
async def test_human_is_asked_about_the_rewritten_call_in_either_order(tmp_path: Path, first: str) -> None:
    ask = prints({"hookSpecificOutput": {"permissionDecision": "ask"}})
    rewrite = prints({"updated_input": {"path": "other.txt", "content": "x"}})
    ordered = [ask, rewrite] if first == "ask" else [rewrite, ask]
    hooked = Hooked(tmp_path, {"PreToolUse": ordered}, calls(NOTE), says("ok"))

    await hooked.session.run("x")

    assert [(request.target, request.reason) for request in hooked.approver.requests] == [
        ("other.txt", "PreToolUse hook requested ask")
    ]


@pytest.mark.requirement("B30", "B33", "R2", "R8")
async def test_observers_cannot_change_a_result_and_their_failures_are_shown(tmp_path: Path) -> None:
    observers = [
        shell("exit 2", blocking=True),
        shell("exit 3"),
        shell('echo \'{"block": true, "updated_input": {}}\''),
    ]
    hooked = Hooked(tmp_path, {"PostToolUse": observers}, calls(("list_files", {"pattern": "["})), says("ok"))

    async with hooked.session.opened(drain=20):
        finished = await hooked.session.run("x")

    assert finished.text == "ok"
    assert isinstance(hooked.session.transcript[2], ToolMessage)
    assert "blocked" not in hooked.session.transcript[2].content
    assert sorted(hooked.ran()) == [
        ("PostToolUse", "failed", "exit code 3"),
        ("PostToolUse", "not vetoed", ""),
        ("PostToolUse", "not vetoed", "blocked by hook"),
    ]


@pytest.mark.requirement("B31", "F60")
async def test_observer_outlives_the_run_that_was_cancelled(tmp_path: Path) -> None:
    wait = "while [ ! -e go ]; do sleep 0.01; done; cat > seen.json"
    hooks = {"PostToolUse": [shell(wait, matcher="write_file")]}
    hooked = Hooked(tmp_path, hooks, calls(NOTE), calls(("shell", {"command": "sleep 300"})))

    def cancel_the_second_call(event: AgentEvent) -> None:
        if isinstance(event, ToolStarted) and event.tool == "shell":
            hooked.session.cancel()

    hooked.session.subscribe(cancel_the_second_call)
    hooked.session.set_mode(PermissionMode.BYPASS)
    async with hooked.session.opened(drain=20):
        finished = await hooked.session.run("x")
        assert not (tmp_path / "seen.json").exists()
        (tmp_path / "go").touch()

    assert finished.stop_reason == "cancelled"
    assert json.loads((tmp_path / "seen.json").read_text())["tool"] == "write_file"


@pytest.mark.requirement("B31")
async def test_closing_session_waits_for_observers_no_longer_than_it_says(tmp_path: Path) -> None:
    hooked = Hooked(tmp_path, {"SessionStart": [shell("echo started > started; exec sleep 300")]})

    with anyio.fail_after(30):
        async with hooked.session.opened(drain=0.1):
            pass

    assert hooked.ran() == []


@pytest.mark.requirement("B32", "B16")
async def test_notifications_tell_of_questions_and_of_the_end(tmp_path: Path) -> None:
    hooked = Hooked(
        tmp_path, {"Notification": [record()]}, calls(("shell", {"command": "true"})), says("I was refused.")
    )

    async with hooked.session.opened(drain=20):
        await hooked.session.run("x")

    told = sorted(hooked.told("Notification"), key=lambda payload: str(payload["message"]))
    assert told == [
        {"message": "Approval needed: shell: true"},
        {"message": "The agent has ended: I was refused.", "is_error": False},
    ]


@pytest.mark.requirement("B27", "B28", "B16", "B20")
async def test_task_hooks_refuse_creation_and_completion(tmp_path: Path) -> None:
    hooks = {
        "TaskCreated": [record(), shell("echo too vague >&2; exit 2", blocking=True, **{"if": "/vague/"})],
        "TaskCompleted": [record(matcher="task_update"), shell("echo tests fail >&2; exit 2", blocking=True)],
    }
    script = [
        calls(("task_create", {"subject": "something vague"})),
        calls(("task_create", {"subject": "fix the sum"})),
        calls(("task_update", {"id": "2", "status": "completed"})),
        calls(("task_list", {})),
        says("ok"),
    ]
    hooked = Hooked(tmp_path, hooks, *script)

    await hooked.session.run("x")

    task = {"id": "2", "subject": "fix the sum", "description": "", "status": "pending", "blocked_by": []}
    results = [message.content for message in hooked.session.transcript if isinstance(message, ToolMessage)]
    assert results == [
        "Error [hook_blocked]: blocked by hook: too vague",
        "2. [pending] fix the sum",
        "Error [hook_blocked]: blocked by hook: tests fail",
        "2. [pending] fix the sum",
    ]
    assert hooked.told("TaskCreated")[1]["task"] == task
    completed = task | {"status": "completed"}
    assert hooked.told("TaskCompleted") == [
        {
            "args": completed,
            "task": completed,
            "previous_task": task,
            "status_from": "pending",
            "status_to": "completed",
        }
    ]


@pytest.mark.requirement("B32", "B20", "F7", "S3-spawn")
async def test_calls_of_a_subagent_pass_the_same_hooks_and_its_end_is_told(tmp_path: Path) -> None:
    hooks = {
        "PreToolUse": [shell("echo not this file >&2; exit 2", matcher="write_file", blocking=True)],
        "SubagentStop": [record(matcher="writer"), shell("touch wrong", matcher="reader")],
    }
    spawn = ("spawn_agent", {"name": "writer", "prompt": "write it"})
    hooked = Hooked(tmp_path, hooks, calls(spawn), calls(NOTE), says("I could not."), says("done"))

    async with hooked.session.opened(drain=20):
        finished = await hooked.session.run("x")

    assert (finished.text, finished.changes) == ("done", ())
    assert not (tmp_path / "note.txt").exists()
    assert not (tmp_path / "wrong").exists()
    assert hooked.told("SubagentStop") == [{"agent": "writer", "message": "I could not.", "is_error": False}]
    assert [event.text for event in hooked.events if isinstance(event, SubagentFinished)] == ["I could not."]


@pytest.mark.requirement("R13")
async def test_stop_hook_of_the_established_shape_forces_one_more_turn(tmp_path: Path) -> None:
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": "cat > stop.json; echo run the tests >&2; exit 2"}]}]}
    hooked = Hooked(tmp_path, hooks, says("finished"), says("really finished"))

    finished = await hooked.session.run("x")

    assert finished.text == "really finished"
    assert hooked.session.transcript[2] == UserMessage(
        content="<system-reminder>\nrun the tests\n</system-reminder>", injected=True
    )
    assert json.loads((tmp_path / "stop.json").read_text())["stop_hook_active"] is True


@pytest.mark.requirement("B40", "F60")
async def test_cancel_during_a_hook_ends_it_and_the_next_prompt_works(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "began")
    hooks = {"PreToolUse": [shell("echo yes > began; exec sleep 300", blocking=True)]}
    hooked = Hooked(tmp_path, hooks, calls(NOTE), says("again"))

    async with anyio.create_task_group() as group:
        group.start_soon(hooked.session.run, "x")
        await anyio.to_thread.run_sync((tmp_path / "began").read_text)
        hooked.session.cancel()

    again = await hooked.session.run("y")

    assert again.text == "again"
    assert not any(isinstance(event, ToolStarted) for event in hooked.events)
    assert hooked.session.transcript[2] == ToolMessage(
        tool_call_id="call_1", content="Error [cancelled]: Cancelled before completion"
    )


@pytest.mark.requirement("B1", "S2-layers")
async def test_hooks_that_change_hold_from_the_next_prompt_and_leave_the_running_one(tmp_path: Path) -> None:
    settings = tmp_path / ".agent-lsp" / "settings.json"
    disarm = shell("echo '{}' > .agent-lsp/settings.json; exit 2", blocking=True, matcher="list_files")
    block = shell("exit 2", blocking=True, matcher="write_file")
    script = [calls(("list_files", {})), calls(NOTE), says("one"), calls(("shell", {"command": "true"})), says("two")]
    hooked = Hooked(tmp_path, {"PreToolUse": [disarm, block]}, *script)

    await hooked.session.run("x")
    blocked = not (tmp_path / "note.txt").exists()
    await hooked.session.run("y")

    assert settings.read_text() == "{}\n"
    assert blocked
    assert hooked.session.hooks.runner.hooks == ()


@pytest.mark.requirement("F10", "B30")
async def test_formatter_of_one_edit_does_not_write_over_the_next(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("one\ntwo\nthree\n")
    code = "import time; t = open('lines.txt').read(); time.sleep(0.3); open('lines.txt', 'w').write(t.upper())"
    formatter = {"type": "command", "command": [sys.executable, "-c", code], "matcher": "edit_file", "name": "upper"}

    def edit(old: str, new: str) -> Step:
        return calls(("edit_file", {"path": "lines.txt", "edits": [{"old": old, "new": new}]}))

    script = [edit("one", "first"), edit("THREE", "last"), calls(("list_files", {})), says("ok")]
    hooked = Hooked(tmp_path, {"PostToolUse": [formatter]}, *script)

    async with hooked.session.opened(drain=20):
        await hooked.session.run("x")

    reminders = [message.content for message in hooked.session.transcript if isinstance(message, SystemMessage)]
    assert (tmp_path / "lines.txt").read_text() == "FIRST\nTWO\nLAST\n"
    assert "The hook upper changed lines.txt after you did; read it again." in reminders[0]


@pytest.mark.requirement("B42", "S4-trust")
async def test_trust_is_asked_once_at_the_beginning_and_not_at_the_end(tmp_path: Path) -> None:
    hooked = Hooked(tmp_path, {"Notification": [shell("touch ran")]}, says("ok"), trusted=False)

    async with hooked.session.opened(drain=20):
        await hooked.session.run("x")

    assert [request.source for request in hooked.approver.requests] == ["trust"]
    assert hooked.ran() == [("Notification", "skipped", "not trusted (refused)")]
    assert not (tmp_path / "ran").exists()


@pytest.mark.requirement("R13", "B42")
async def test_stop_hook_that_is_not_trusted_forces_no_turn(tmp_path: Path) -> None:
    hooked = Hooked(tmp_path, {"Stop": [shell("exit 2")]}, says("ok"), trusted=False)

    finished = await hooked.session.run("x")

    assert (finished.stop_reason, finished.text) == ("completed", "ok")


@pytest.mark.requirement("A61", "A62")
@pytest.mark.parametrize("level", [1, 2, 3])
async def test_chapter_without_hooks_runs_none_of_them(tmp_path: Path, level: int) -> None:
    hooks = {event: [shell(f"touch {event}")] for event in ("SessionStart", "UserPromptSubmit", "Notification")}
    hooked = Hooked(tmp_path, hooks, says("ok"), level=level)

    async with hooked.session.opened(drain=20):
        await hooked.session.run("x")

    assert sorted(path.name for path in tmp_path.iterdir()) == [".agent-lsp"]


@pytest.mark.requirement("B29", "B24")
async def test_context_of_a_hook_before_a_block_is_kept(tmp_path: Path) -> None:
    hooks = {"PreToolUse": [prints({"additional_context": "mind this"}), shell("exit 2", blocking=True)]}
    hooked = Hooked(tmp_path, hooks, calls(NOTE), says("ok"))

    await hooked.session.run("x")

    assert hooked.session.transcript[3] == SystemMessage(content="<system-reminder>\nmind this\n</system-reminder>")


@pytest.mark.requirement("B30", "B16")
async def test_arguments_of_a_subagents_calls_are_its_own(tmp_path: Path) -> None:
    spawn = ("spawn_agent", {"name": "reader", "prompt": "look"})
    hooks = {"PostToolUse": [record(matcher="list_files"), record(matcher="spawn_agent")], "PreToolUse": [record()]}
    hooked = Hooked(tmp_path, hooks, calls(spawn), calls(("list_files", {"pattern": "*.md"})), says("none"), says("ok"))

    async with hooked.session.opened(drain=20):
        await hooked.session.run("x")

    told = {payload["tool"]: (payload["args"], payload.get("agent")) for payload in hooked.told("PostToolUse")}
    assert told == {"list_files": ({"pattern": "*.md"}, "reader"), "spawn_agent": (spawn[1], None)}
    assert [payload.get("agent") for payload in hooked.told("PreToolUse")] == [None, "reader"]
