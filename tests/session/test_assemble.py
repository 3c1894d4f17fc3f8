"""Profiles, and what a session is wired from."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_lsp.agent.events import AgentEvent, PermissionDecided, TurnFinished
from agent_lsp.agent.profiles import PROFILES, Profile
from agent_lsp.approvals import ApprovalReply, PermissionBehavior
from agent_lsp.errors import ConfigurationError, ModelError
from agent_lsp.hooks.contract import HookEvent, HookResult
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.models.scripted import ScriptedModel, Step, calls, says
from agent_lsp.session.assemble import SessionOptions, open_session
from agent_lsp.session.session import Session
from tests.support.harness import RecordingApprover

ENVIRON = {"PATH": "/usr/bin:/bin"}


def options(tmp_path: Path, script: list[Step] | None = None, **given: Any) -> SessionOptions:
    defaults: dict[str, Any] = {
        "root": tmp_path,
        "approver": RecordingApprover(),
        "model": ScriptedModel(script or []),
        "environ": ENVIRON,
    }
    return SessionOptions(**defaults | given)


def listen(session: Session) -> list[AgentEvent]:
    events: list[AgentEvent] = []
    session.subscribe(events.append)
    return events


@pytest.mark.requirement("A61")
def test_profiles_add_capabilities_level_by_level() -> None:
    assert [(profile.level, set(profile.capabilities)) for profile in PROFILES] == [
        (1, {"loop", "shell"}),
        (2, {"loop", "shell", "tool_registry", "files"}),
        (3, {"loop", "shell", "tool_registry", "files", "policy"}),
        (4, {"loop", "shell", "tool_registry", "files", "policy", "hooks"}),
    ]


@pytest.mark.requirement("A62")
@pytest.mark.parametrize("level", [1, 2, 3])
def test_hooks_below_their_profile_fail_before_anything_is_built(tmp_path: Path, level: int) -> None:
    registered: list[HookRegistry] = []

    with pytest.raises(ConfigurationError, match=r"^hooks require chapter 4 or later$"):
        open_session(options(tmp_path / "missing", level=level, hooks=registered.append))

    assert registered == []


@pytest.mark.requirement("A63")
def test_look_alike_profile_is_refused(tmp_path: Path) -> None:
    twin = Profile(4, PROFILES[3].capabilities)

    with pytest.raises(ConfigurationError, match=r"^profile must be a fixed chapter profile$"):
        open_session(options(tmp_path, profile=twin))


@pytest.mark.requirement("A65")
@pytest.mark.parametrize("level", [3, 4])
@pytest.mark.parametrize("missing", ["approver", "audit"])
def test_policy_needs_an_approver_and_an_audit_sink(tmp_path: Path, level: int, missing: str) -> None:
    with pytest.raises(ConfigurationError, match="need an approver and an audit sink"):
        open_session(options(tmp_path, level=level, **{missing: None}))
    assert open_session(options(tmp_path, level=2, **{missing: None}))


@pytest.mark.requirement("A61")
@pytest.mark.parametrize(
    ("level", "names"),
    [
        (1, ["shell"]),
        (2, ["read_file", "write_file", "edit_file", "list_files", "search", "shell"]),
        (4, ["read_file", "write_file", "edit_file", "list_files", "search", "shell"]),
    ],
)
async def test_profile_decides_which_tools_the_model_sees(tmp_path: Path, level: int, names: list[str]) -> None:
    model = ScriptedModel([says("ok")])
    await open_session(options(tmp_path, level=level, model=model)).run("x")

    assert [tool.name for tool in model.requests[0].tools] == names


@pytest.mark.requirement("A64")
@pytest.mark.parametrize("behavior", [PermissionBehavior.ASK, PermissionBehavior.DENY])
async def test_hook_advice_bites_without_any_rule(tmp_path: Path, behavior: PermissionBehavior) -> None:
    def install(registry: HookRegistry) -> None:
        registry.register(HookEvent.PRE_TOOL_USE, lambda _context: HookResult(permission_behavior=behavior))

    session = open_session(options(tmp_path, [calls(("list_files", {})), says("ok")], hooks=install))
    events = listen(session)
    await session.run("x")

    assert [event.behavior for event in events if isinstance(event, PermissionDecided)] == [str(behavior)]
    assert "permission_denied" in str(session.transcript[2])


@pytest.mark.requirement("A65")
async def test_every_verdict_reaches_the_audit_sink(tmp_path: Path) -> None:
    heard: list[PermissionDecided] = []
    session = open_session(options(tmp_path, [calls(("list_files", {})), says("ok")], audit=heard.append))

    await session.run("x")

    assert [(event.tool, event.behavior) for event in heard] == [("list_files", "allow")]


@pytest.mark.requirement("A58", "A70")
async def test_failed_turn_is_told_and_the_next_works(tmp_path: Path) -> None:
    session = open_session(options(tmp_path, [ModelError("down"), RuntimeError("odd"), says("fine")]))
    events = listen(session)

    ends = [await session.run("x") for _ in range(3)]

    assert [(end.stop_reason, end.error, end.text) for end in ends] == [
        ("failed", "down", ""),
        ("failed", "RuntimeError: odd", ""),
        ("completed", None, "fine"),
    ]
    assert [event for event in events if isinstance(event, TurnFinished)] == ends


async def test_subscriber_that_raises_disturbs_nobody(tmp_path: Path) -> None:
    session = open_session(options(tmp_path, [says("fine")]))
    session.subscribe(_explode)
    events = listen(session)

    assert (await session.run("x")).text == "fine"
    assert isinstance(events[-1], TurnFinished)


def _explode(_event: AgentEvent) -> None:
    raise RuntimeError


@pytest.mark.requirement("C20")
async def test_plan_mode_is_a_guard_as_well_as_a_policy(tmp_path: Path) -> None:
    def allow(registry: HookRegistry) -> None:
        advice = HookResult(permission_behavior=PermissionBehavior.ALLOW)
        registry.register(HookEvent.PRE_TOOL_USE, lambda _context: advice)

    write = calls(("write_file", {"path": "a", "content": "x"}))
    session = open_session(options(tmp_path, [write, says("ok")], mode="plan", hooks=allow))

    await session.run("x")

    assert not (tmp_path / "a").exists()


@pytest.mark.requirement("A10", "A42")
async def test_backup_is_added_by_a_callback_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")

    def install(registry: HookRegistry) -> None:
        def backup(context: Any) -> HookResult:
            source = tmp_path / context.prepared.arguments["path"]
            source.with_suffix(".bak").write_bytes(source.read_bytes())
            return HookResult()

        registry.register(HookEvent.PRE_TOOL_USE, backup)

    write = calls(("write_file", {"path": "a", "content": "new"}))
    approver = RecordingApprover(ApprovalReply(allowed=True))
    await open_session(options(tmp_path, [write, says("ok")], hooks=install, approver=approver)).run("x")

    assert ((tmp_path / "a").read_text(), (tmp_path / "a.bak").read_text()) == ("new", "old")


Change = Callable[[SessionOptions], SessionOptions]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda given: dataclasses.replace(given, level=9), "There is no chapter 9; chapters are 1, 2, 3, 4"),
        (lambda given: dataclasses.replace(given, mode="wild"), "There is no permission mode 'wild'"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, change: Change, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        open_session(change(options(tmp_path)))


@pytest.mark.requirement("S4-validate", "A69")
async def test_model_is_missed_by_a_prompt_and_not_by_validation(tmp_path: Path) -> None:
    session = open_session(options(tmp_path, model=None))
    events = listen(session)

    report = await session.validate()
    finished = await session.run("x")

    assert report.status == "none"
    assert (finished.stop_reason, str(finished.error).split(";")[0]) == ("failed", "No model is set")
    assert (events, list(session.transcript)) == ([finished], [])
    with pytest.raises(ConfigurationError, match=r"^No model is set"):
        session.connect()


@pytest.mark.requirement("S2-layers", "S2-errors")
async def test_settings_that_change_hold_from_the_next_prompt(tmp_path: Path) -> None:
    def shell() -> Step:
        return calls(("shell", {"command": "true"}))

    script: list[Step] = [shell(), says("a"), shell(), says("b"), shell(), says("c")]
    session = open_session(options(tmp_path, script, trusted=True))
    events = listen(session)
    file = tmp_path / ".agent-lsp" / "settings.json"
    file.parent.mkdir()

    await session.run("asks by default")
    file.write_text('{"permissions": {"allow": ["shell"]}}')
    await session.run("is allowed by the rule")
    file.write_text("{")
    await session.run("asks because the file cannot be read")

    decided = [(event.behavior, event.source) for event in events if isinstance(event, PermissionDecided)]
    assert decided == [("ask", "shell-default"), ("allow", "rule"), ("ask", "shell-default")]
    assert "cannot be read" in session.problems[0]


@pytest.mark.requirement("S2-errors")
async def test_unreadable_settings_void_remembered_answers_modes_and_advice(tmp_path: Path) -> None:
    def allow(registry: HookRegistry) -> None:
        advice = HookResult(permission_behavior=PermissionBehavior.ALLOW)
        registry.register(HookEvent.PRE_TOOL_USE, lambda _context: advice)

    (tmp_path / ".agent-lsp").mkdir()
    (tmp_path / ".agent-lsp" / "settings.json").write_text("{")
    script: list[Step] = [calls(("shell", {"command": "true"})), says("ok")]
    session = open_session(options(tmp_path, script, mode="bypass", hooks=allow))
    events = listen(session)

    await session.run("x")

    decided = [(event.behavior, event.source) for event in events if isinstance(event, PermissionDecided)]
    assert decided == [("ask", "settings")]


async def test_turn_tells_which_files_it_changed(tmp_path: Path) -> None:
    write = calls(("write_file", {"path": "sub/a", "content": "x"}), ("list_files", {}))
    session = open_session(
        options(tmp_path, [write, says("ok"), says("nothing")], approver=RecordingApprover(ApprovalReply(allowed=True)))
    )

    assert (await session.run("x")).changes == ("sub/a",)
    assert (await session.run("y")).changes == ()
