"""What a session remembers beside its messages, and what is cleaned up."""

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agent_lsp.agent.events import ToolOutput
from agent_lsp.models.scripted import ScriptedModel, Step, calls, says
from agent_lsp.session.assemble import SessionOptions, open_session
from agent_lsp.session.session import Session
from agent_lsp.session.stored import stored_sessions
from agent_lsp.settings.load import load_settings
from agent_lsp.settings.trust import TrustEverything
from tests.support.harness import RecordingApprover

_opened: list[Session] = []


@pytest.fixture(autouse=True)
def _close_all() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().history.close()


def session_of(root: Path, *script: Step, resume: str | None = None, environ: dict[str, str] | None = None) -> Session:
    session = open_session(
        SessionOptions(
            root=root,
            approver=RecordingApprover(),
            model=ScriptedModel(script),
            mode="bypass",
            validate=False,
            resume=resume,
            environ={"PATH": os.environ["PATH"], **(environ or {})},
        )
    )
    _opened.append(session)
    return session


@pytest.mark.requirement("F61")
async def test_tasks_are_there_when_a_session_goes_on(tmp_path: Path) -> None:
    first = session_of(
        tmp_path,
        calls(("task_create", {"subject": "one"}), ("task_create", {"subject": "two"})),
        calls(("task_update", {"id": "1", "status": "completed"})),
        says("ok"),
    )
    await first.run("plan")
    first.history.close()

    second = session_of(
        tmp_path,
        calls(("task_list", {})),
        calls(("task_create", {"subject": "three", "description": "d"})),
        says("ok"),
        resume=first.id,
    )
    await second.run("go on")

    results = [getattr(message, "content", "") for message in second.transcript[-5:]]
    assert results[1] == "1. [completed] one\n2. [pending] two"
    assert results[3] == "3. [pending] three"


@pytest.mark.requirement("S1-sessions")
async def test_changes_of_a_turn_tell_what_programs_did_too(tmp_path: Path) -> None:
    session = session_of(
        tmp_path,
        calls(("shell", {"command": "mkdir d; echo x > d/made; echo y > other"})),
        calls(("write_file", {"path": "e/f.txt", "content": "z"})),
        says("ok"),
    )

    finished = await session.run("go")

    assert sorted(finished.changes) == ["d/made", "e/f.txt", "other"]


async def test_session_without_a_prompt_leaves_nothing_behind(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    async with session.opened(drain=0):
        pass

    assert stored_sessions(tmp_path).list() == ()


async def test_old_sessions_go_when_a_turn_has_ended(tmp_path: Path) -> None:
    old = session_of(tmp_path, says("ok"))
    await old.run("old")
    old.history.close()
    for lines in (Path(os.environ["XDG_STATE_HOME"]) / "agent-lsp").rglob(f"{old.id}/session.jsonl"):
        os.utime(lines, (1, 1))

    young = session_of(tmp_path, says("ok"))
    await young.run("young")

    assert [summary.title for summary in stored_sessions(tmp_path).list()] == ["young"]


def test_workspace_does_not_say_how_long_sessions_are_kept(tmp_path: Path) -> None:
    (tmp_path / ".agent-lsp").mkdir()
    (tmp_path / ".agent-lsp" / "settings.json").write_text('{"sessions": {"keep_days": 0.001}}')
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "settings.json").write_text('{"sessions": {"keep_days": 7}}')

    loaded = load_settings(tmp_path, user_directory=tmp_path / "user", trust=TrustEverything(), environ={})

    assert loaded.settings.sessions.keep_days == 7
    assert "a workspace does not say how long your sessions are kept" in str(loaded.problems[0])


@pytest.mark.requirement("F76-sessions")
async def test_secrets_of_the_environment_are_not_stored(tmp_path: Path) -> None:
    session = session_of(
        tmp_path,
        calls(("shell", {"command": "echo $DEPLOY_TOKEN"})),
        says("It is correct-horse-battery."),
        environ={"DEPLOY_TOKEN": "correct-horse-battery"},
    )

    await session.run("what is correct-horse-battery?")

    exported = stored_sessions(tmp_path).markdown(session.id)
    assert "correct-horse" not in exported
    assert exported.count("[redacted]") >= 3


@pytest.mark.requirement("F60", "F61")
async def test_session_that_is_closed_during_a_turn_keeps_how_the_turn_ended(tmp_path: Path) -> None:
    session = session_of(tmp_path, calls(("shell", {"command": "echo begun; sleep 60"})))
    begun = anyio.Event()
    session.subscribe(lambda event: begun.set() if isinstance(event, ToolOutput) else None)

    async with anyio.create_task_group() as group:
        started = anyio.Event()
        group.start_soon(lambda: session.hold_open(started.set, drain=0))
        await started.wait()
        group.start_soon(session.run, "go")
        await begun.wait()
        group.cancel_scope.cancel()

    exported = stored_sessions(tmp_path).json(session.id)
    assert exported["turns"][0]["stop_reason"] == "cancelled"
    assert exported["turns"][0]["messages"][-1]["content"] == "Error [cancelled]: Cancelled while running"
