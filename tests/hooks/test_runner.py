"""Hooks of one occasion: in order, first veto wins, the rest merges whatever the order, nothing happens unseen."""

import json
import shlex
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.errors import ToolError
from agent_lsp.hooks.runner import HookRunner, Occasion, Outcome
from agent_lsp.hooks.settings import ConfiguredHook
from agent_lsp.tools.edit import EDIT_FILE
from tests.hooks.configured import command, configured, established, make_runner

SHELL = Occasion(event="PreToolUse", subject="shell", args={"command": "ls"}, payload={"tool": "shell"})
FAILURES = ["exit 1", "sleep 300", "echo '{'", "./missing", """echo '{"decision": "maybe"}'""", "kill -KILL $$"]


def prints(name: str, event: str = "PreToolUse", *, log: bool = True, **envelope: Any) -> ConfiguredHook:
    """A hook that answers with this envelope, and leaves its name in a file."""
    note = f"echo {name} >>log; " if log else ""
    return command(f"{note}printf %s {shlex.quote(json.dumps(envelope))}", event, name=name, blocking=True)


def decisions(runner: HookRunner) -> list[tuple[str, str]]:
    return [(run.hook.name, run.decision) for run in runner.runs]


def log(root: Path) -> list[str]:
    return (root / "log").read_text().split() if (root / "log").exists() else []


@pytest.mark.requirement("B21")
async def test_hooks_run_in_order_and_the_first_veto_ends_it(tmp_path: Path, environment: dict[str, str]) -> None:
    hooks = prints("a"), prints("b", block=True), prints("c", block=True, reason="late")

    outcome = await make_runner(tmp_path, environment, *hooks).run(SHELL)

    assert outcome == Outcome(blocked_by="b", reason="blocked by hook")
    assert log(tmp_path) == ["a", "b"]


@pytest.mark.requirement("B19", "B21")
@pytest.mark.parametrize(("text", "blocked_by"), [("rm -rf build", "guard"), ("ls", None)])
async def test_example_entry_blocks_what_it_should(
    tmp_path: Path, environment: dict[str, str], text: str, blocked_by: str | None
) -> None:
    entry = {"type": "command", "command": "exit 2", "matcher": "shell", "if": "/rm -rf/", "blocking": True}
    guard = configured("PreToolUse", entry | {"timeout": 30, "name": "guard"})

    outcome = await make_runner(tmp_path, environment, guard).run(
        Occasion(event="PreToolUse", subject="shell", args={"command": text})
    )

    assert outcome.blocked_by == blocked_by


DENY = json.dumps({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}})


@pytest.mark.requirement("B22")
@pytest.mark.parametrize(
    "text",
    [
        "exit 2",
        """echo '{"block": true}'""",
        """echo '{"decision": "block"}'""",
        """echo '{"continue": false}'""",
        f"echo '{DENY}'",
    ],
)
async def test_hook_that_does_not_block_has_no_veto(tmp_path: Path, environment: dict[str, str], text: str) -> None:
    runner = make_runner(tmp_path, environment, command(text, name="a", blocking=False), prints("b"))

    assert await runner.run(SHELL) == Outcome()
    assert decisions(runner) == [("a", "not vetoed"), ("b", "passed")]


@pytest.mark.requirement("B22", "B7")
async def test_observer_never_blocks(tmp_path: Path, environment: dict[str, str]) -> None:
    hook = command("exit 2", "PostToolUse", blocking=True, on_failure="block")

    assert await make_runner(tmp_path, environment, hook).run(Occasion(event="PostToolUse")) == Outcome()


# --- merging


@pytest.mark.requirement("B23")
async def test_hooks_that_pass_are_merged(tmp_path: Path, environment: dict[str, str]) -> None:
    hooks = (
        prints("a", additional_context="one", updated_input={"command": "first"}),
        prints("b"),
        prints("c", additional_context="two", updated_input={"command": "second"}),
    )

    outcome = await make_runner(tmp_path, environment, *hooks).run(SHELL)

    assert outcome == Outcome(context="one\n\ntwo", args={"command": "second"})


@pytest.mark.requirement("B18", "B23")
async def test_next_hook_sees_and_is_matched_on_the_rewritten_arguments(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    hooks = (
        prints("rewrite", updated_input={"command": "rm -rf build"}),
        command("cat >payload; exit 2", name="new", if_="/rm -rf/", blocking=False),
        command("exit 2", name="old", if_="/ls/", blocking=True),
    )
    runner = make_runner(tmp_path, environment, *hooks)

    outcome = await runner.run(SHELL)

    assert outcome == Outcome(args={"command": "rm -rf build"})
    assert decisions(runner) == [("rewrite", "passed"), ("new", "not vetoed")]
    assert json.loads((tmp_path / "payload").read_text())["args"] == {"command": "rm -rf build"}


BEHAVIORS = {"allow": PermissionBehavior.ALLOW, "ask": PermissionBehavior.ASK}
KINDS: dict[str, dict[str, Any]] = {
    "silent": {},
    "allow": {"hookSpecificOutput": {"permissionDecision": "allow"}},
    "ask": {"hookSpecificOutput": {"permissionDecision": "ask"}},
    "context": {"additional_context": "c"},
    "rewrite": {"updated_input": {"command": "new"}},
    "block": {"block": True},
    "deny": {"hookSpecificOutput": {"permissionDecision": "deny"}},
}


def verdict(kinds: list[str], outcome: Outcome) -> None:
    """The decision follows from which answers there are."""
    assert (outcome.blocked_by is not None) == bool({"block", "deny"} & set(kinds))
    if outcome.blocked_by is None:
        assert outcome.args == ({"command": "new"} if "rewrite" in kinds else None)
        wanted = (BEHAVIORS.get(kind, PermissionBehavior.PASSTHROUGH) for kind in kinds)
        assert outcome.advice == max(wanted, default=PermissionBehavior.PASSTHROUGH)
        assert outcome.context == "\n\n".join("c" for kind in kinds if kind == "context")


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    "pair", [("rewrite", "silent"), ("rewrite", "ask"), ("ask", "allow"), ("allow", "block"), ("rewrite", "deny")]
)
async def test_pair_decides_the_same_in_either_order(
    tmp_path: Path, environment: dict[str, str], pair: tuple[str, str]
) -> None:
    for kinds in permutations(pair):
        hooks = [prints(kind, log=False, **KINDS[kind]) for kind in kinds]
        verdict([*kinds], await make_runner(tmp_path, environment, *hooks).run(SHELL))


@pytest.mark.requirement("F5")
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kinds=st.lists(st.sampled_from(list(KINDS)), max_size=4))
async def test_decision_depends_on_the_answers_and_not_on_their_order(
    tmp_path: Path, environment: dict[str, str], kinds: list[str]
) -> None:
    hooks = [prints(kind, log=False, **KINDS[kind]) for kind in kinds]

    verdict(kinds, await make_runner(tmp_path, environment, *hooks).run(SHELL))


# --- failures


@pytest.mark.requirement("B14", "F4")
@pytest.mark.parametrize("text", FAILURES)
@pytest.mark.parametrize(
    ("on_failure", "blocked", "advice", "decision"),
    [
        ("ignore", False, PermissionBehavior.PASSTHROUGH, "failed"),
        ("ask", False, PermissionBehavior.ASK, "failed"),
        ("block", True, PermissionBehavior.PASSTHROUGH, "blocked"),
    ],
)
async def test_failure_is_logged_and_does_what_on_failure_says(
    tmp_path: Path,
    environment: dict[str, str],
    text: str,
    on_failure: str,
    blocked: bool,
    advice: PermissionBehavior,
    decision: str,
) -> None:
    hook = command(text, name="a", on_failure=on_failure, timeout=0.3, blocking=True)
    runner = make_runner(tmp_path, environment, hook, prints("b"))

    outcome = await runner.run(SHELL)

    assert ((outcome.blocked_by == "a"), outcome.advice) == (blocked, advice)
    assert runner.runs[0].decision == decision
    assert runner.runs[0].reason != ""
    assert log(tmp_path) == ([] if blocked else ["b"])


@pytest.mark.requirement("B14")
@pytest.mark.parametrize("event", ["UserPromptSubmit", "TaskCreated", "TaskCompleted"])
async def test_failure_of_other_blocking_events_blocks_where_it_should(
    tmp_path: Path, environment: dict[str, str], event: str
) -> None:
    strict = command("exit 1", event, name="strict", on_failure="block")
    lax = command("exit 1", event, name="lax", blocking=True)

    assert (await make_runner(tmp_path, environment, lax, strict).run(Occasion(event=event))).blocked_by == "strict"
    assert await make_runner(tmp_path, environment, lax).run(Occasion(event=event)) == Outcome()


@pytest.mark.requirement("B13", "B14")
@pytest.mark.parametrize("edits", [5, ["x"], [{"old_string": "a"}, None]])
async def test_established_rewrite_that_makes_no_sense_is_left_for_the_tool_to_refuse(
    tmp_path: Path, environment: dict[str, str], edits: Any
) -> None:
    envelope = {"hookSpecificOutput": {"updatedInput": {"file_path": "a", "edits": edits}}}
    hook = established({"type": "command", "command": f"echo {shlex.quote(json.dumps(envelope))}"})
    runner = make_runner(tmp_path, environment, hook)

    outcome = await runner.run(Occasion(event="PreToolUse", subject="edit_file"))

    assert outcome.args is not None
    with pytest.raises(ToolError, match="failed schema validation: edits"):
        EDIT_FILE.validate(outcome.args)


@pytest.mark.requirement("B14", "B23")
@pytest.mark.parametrize("args", [{"path": 5}, {"edits": []}, {"edits": [{"new": "b", "odd": 1}]}, {"edits": 5}])
async def test_rewrite_of_another_kind_does_not_break_an_established_hook(
    tmp_path: Path, environment: dict[str, str], args: dict[str, Any]
) -> None:
    hooks = prints("rewrite", updated_input=args), established({"type": "command", "command": "exit 0"})
    runner = make_runner(tmp_path, environment, *hooks)

    outcome = await runner.run(Occasion(event="PreToolUse", subject="edit_file", payload={"tool": "edit_file"}))

    assert outcome == Outcome(args=args)


# --- what is visible


@pytest.mark.requirement("F11")
async def test_unmatched_hooks_say_why(tmp_path: Path, environment: dict[str, str]) -> None:
    other, late = command("true", matcher="other"), command("true", if_="/rm/")
    elsewhere, runs = command("true", "PostToolUse"), command("true")
    runner = make_runner(tmp_path, environment, other, late, elsewhere, runs)

    await runner.run(SHELL)

    assert runner.unmatched == {
        other: "matcher 'other' does not match 'shell'",
        late: "if '/rm/' does not match the arguments",
    }
    assert [run.hook for run in runner.runs] == [runs]

    await runner.run(Occasion(event="PreToolUse", subject="other"))
    assert other not in runner.unmatched


@pytest.mark.requirement("F11", "B33")
async def test_run_is_kept_with_everything_that_it_did(tmp_path: Path, environment: dict[str, str]) -> None:
    hook = prints("a", systemMessage="for you", updated_input={"command": "new"}, **KINDS["ask"])
    runner = make_runner(tmp_path, environment, hook, command("echo why >&2; exit 2", name="b", blocking=True))

    await runner.run(SHELL)

    first, second = runner.runs
    assert (first.decision, first.exit_code, first.message, first.subject) == ("passed", 0, "for you", "shell")
    assert first.effect == {"permission": "ask", "updated_input": '{"command": "new"}'}
    assert (second.decision, second.reason, second.exit_code, second.stderr) == ("blocked", "why", 2, "why")
    assert first.started <= second.started
    assert min(first.duration, second.duration) > 0


@pytest.mark.requirement("B16")
async def test_payload_leaves_out_what_is_empty(tmp_path: Path, environment: dict[str, str]) -> None:
    hook = command("cat >payload", "SubagentStop")
    payload = {"agent": "scout", "message": "", "output": None, "is_error": False, "attempt": 1}

    await make_runner(tmp_path, environment, hook).run(Occasion(event="SubagentStop", subject="scout", payload=payload))

    given = json.loads((tmp_path / "payload").read_text())
    assert given == {
        "event": "SubagentStop",
        "session_id": "session 1",
        "cwd": str(tmp_path),
        "agent": "scout",
        "is_error": False,
        "attempt": 1,
    }
