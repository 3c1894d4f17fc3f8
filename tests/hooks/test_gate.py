"""A hook is a gated side effect: asked about once, by content, and not run where the answer is no."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from agent_lsp.approvals import ApprovalReply
from agent_lsp.hooks.gate import TrustGate
from agent_lsp.hooks.runner import HookRunner, Occasion, Outcome
from agent_lsp.hooks.settings import ConfiguredHook
from agent_lsp.hooks.trust import TrustItem, hook_item
from agent_lsp.settings.trust import TrustStore
from agent_lsp.workspace import Access, Place
from tests.hooks.configured import command, configured, established, make_runner
from tests.support.harness import RecordingApprover

YES, NO = ApprovalReply(allowed=True), ApprovalReply(allowed=False)
PRE = Occasion(event="PreToolUse", subject="shell")


@dataclass
class Gated:
    """A workspace, a store of what is trusted, and runners that know it by its directory alone."""

    root: Path
    store: Path
    environment: dict[str, str]

    def runner(self, approver: RecordingApprover, *hooks: ConfiguredHook) -> HookRunner:
        """A runner as a new process would have it."""
        return make_runner(self.root, self.environment, *hooks, trust=TrustStore(self.store), approver=approver)

    async def asks_again(self, approved: ConfiguredHook, now: ConfiguredHook | None = None) -> bool:
        """Whether a hook that was approved needs another answer, in the state that it or its scripts have now."""
        approver = RecordingApprover(NO)
        await self.runner(approver, now or approved).run(PRE)
        return bool(approver.requests)

    def ran(self) -> bool:
        return (self.root / "ran").exists()


@pytest.fixture
def gated(tmp_path: Path, environment: dict[str, str]) -> Gated:
    (tmp_path / "work").mkdir()
    return Gated(tmp_path / "work", tmp_path / "trust", environment)


@pytest.mark.requirement("B42", "F70")
async def test_one_question_lists_everything_and_both_hooks_run(gated: Gated) -> None:
    hooks = command("touch ran"), command(["touch", "ran too"], "SessionEnd")
    approver = RecordingApprover(YES)
    runner = gated.runner(approver, *hooks)

    await runner.run(PRE)
    await runner.run(Occasion(event="SessionEnd"))

    (request,) = approver.requests
    lines = ["PreToolUse command: touch ran  (settings.json)", "SessionEnd command: touch 'ran too'  (settings.json)"]
    assert request.arguments == {"would run": lines}
    assert (request.action.command, request.action.access) == ("\n".join(lines), Access.EXECUTE)
    assert sorted(path.name for path in gated.root.iterdir()) == ["ran", "ran too"]


@pytest.mark.requirement("B42")
async def test_hooks_that_wait_together_ask_once(gated: Gated) -> None:
    approver = RecordingApprover(YES, before=anyio.lowlevel.checkpoint)
    hooks = [command(f"touch {name}") for name in "abc"]
    runner = gated.runner(approver, *hooks)

    async with anyio.create_task_group() as group:
        for hook in hooks:
            group.start_soon(runner.run_one, hook, PRE)

    assert len(approver.requests) == 1
    assert sorted(path.name for path in gated.root.iterdir()) == ["a", "b", "c"]


@pytest.mark.requirement("B42", "F70")
async def test_approval_is_found_again_by_another_process(gated: Gated) -> None:
    hook = command("touch ran")
    await gated.runner(RecordingApprover(YES), hook).run(PRE)
    (gated.root / "ran").unlink()

    assert not await gated.asks_again(hook)
    assert gated.ran()


@pytest.mark.requirement("B42", "F70")
async def test_only_what_is_not_yet_trusted_is_in_the_question(gated: Gated) -> None:
    old, new = command("true"), command("touch ran")
    await gated.runner(RecordingApprover(YES), old).run(PRE)
    approver = RecordingApprover(YES)

    await gated.runner(approver, old, new).run(PRE)

    assert [request.arguments for request in approver.requests] == [
        {"would run": ["PreToolUse command: touch ran  (settings.json)"]}
    ]


HTTP = configured("PreToolUse", {"type": "http", "url": "http://a", "headers": {"a": "b"}})


@pytest.mark.requirement("B42", "F70")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (command("true"), command("true ")),
        (command("true"), command("false")),
        (command("a b"), command(["a", "b"])),
        (command(["a", "b c"]), command(["a", "b", "c"])),
        (command("true"), command("true", "PostToolUse")),
        (command("true"), configured("PreToolUse", {"type": "prompt", "prompt": "true"})),
        (command("true"), replace(command("true"), place=Place(source="other.json"))),
        (HTTP, replace(HTTP, target="http://b")),
        (HTTP, replace(HTTP, headers=(("a", "c"),))),
    ],
)
def test_whatever_changes_what_runs_changes_the_digest(
    tmp_path: Path, before: ConfiguredHook, after: ConfiguredHook
) -> None:
    assert hook_item(before, tmp_path).digest != hook_item(after, tmp_path).digest


@pytest.mark.requirement("B42")
def test_place_within_the_file_is_not_what_was_approved(tmp_path: Path) -> None:
    hook = command("true")
    moved = replace(hook, place=replace(hook.place, line=7, column=2))

    assert hook_item(hook, tmp_path).digest == hook_item(moved, tmp_path).digest


@pytest.mark.requirement("B42", "F70")
@pytest.mark.parametrize(
    "hook", [command("./check.sh"), command(["make", "all"]), command('python3 -c "import json"')], ids=str
)
def test_a_command_is_approved_for_one_workspace(tmp_path: Path, hook: ConfiguredHook) -> None:
    assert hook_item(hook, tmp_path / "a").digest != hook_item(hook, tmp_path / "b").digest


SCRIPTS: list[tuple[str, int, Callable[[Path], ConfiguredHook]]] = [
    ("check.sh", 0o755, lambda _root: command("./check.sh")),
    ("check", 0o755, lambda _root: command("./check --all")),
    ("hooks/check.py", 0o644, lambda _root: command("python3 hooks/check.py <a | cat")),
    ("hooks/check.py", 0o644, lambda _root: command(["python3", "hooks/check.py"])),
    ("check.sh", 0o644, lambda _root: command("sh 'check.sh'; true")),
    ("check.sh", 0o644, lambda _root: command("a=$(sh ./check.sh)&&true")),
    ("check.sh", 0o644, lambda root: command(f"sh {root}/check.sh")),
    (".claude/h.sh", 0o755, lambda _root: established_command('"$CLAUDE_PROJECT_DIR"/.claude/h.sh')),
    (".claude/h.sh", 0o755, lambda _root: established_command("${CLAUDE_PROJECT_DIR}/.claude/h.sh")),
    ("my hooks/check.sh", 0o755, lambda _root: command(["my hooks/check.sh"])),
    ("my hooks/check.sh", 0o755, lambda _root: command("'my hooks/check.sh'")),
    ("check", 0o644, lambda _root: command("sh check")),
    ("check", 0o644, lambda _root: command(["awk", "-f", "check"])),
    ("scripts/check.sh", 0o755, lambda _root: command("cd scripts && ./check.sh")),
    ("scripts/a/check", 0o755, lambda _root: command("cd scripts; cd a; ./check")),
    ("scripts/check", 0o644, lambda _root: command(["env", "--chdir=scripts", "sh", "check"])),
    ("scripts/check.sh", 0o755, lambda _root: command(["sh", "-c", "./scripts/check.sh --x"])),
    ("scripts/check", 0o644, lambda _root: command(["sh", "-c", "set -e; sh scripts/check"])),
    ("check.sh", 0o755, lambda _root: command(["sh", "-c", "$PWD/check.sh"])),
    ("check.sh", 0o755, lambda _root: command('"$PWD"/check.sh')),
    ("my hooks/check.sh", 0o755, lambda _root: command('"${PWD}/my hooks/check.sh"')),
    ("check.sh", 0o755, lambda _root: command("$(pwd)/check.sh")),
    ("check.sh", 0o755, lambda _root: command('"`pwd`"/check.sh')),
    ("check.sh", 0o755, lambda _root: command('"$(git rev-parse --show-toplevel)"/check.sh')),
    ("check.sh", 0o755, lambda _root: command("CHECK=./check.sh && $CHECK")),
    ("scripts/check", 0o644, lambda _root: command("bash -e scripts/check")),
    ("scripts/check", 0o644, lambda _root: command("bash -euo pipefail scripts/check data")),
    ("scripts/check", 0o644, lambda _root: command(["/usr/bin/python3", "-I", "-W", "error", "scripts/check"])),
    ("check", 0o644, lambda _root: command("bash <check")),
    ("check", 0o644, lambda _root: command("if true; then . ./check; fi")),
    ("check", 0o644, lambda _root: command("sed --file=check data")),
    ("scripts/check.py", 0o644, lambda _root: command("python3 -m scripts.check")),
    ("scripts/__init__.py", 0o644, lambda _root: command("python3 -Bm scripts.check")),
    ("scripts/__main__.py", 0o644, lambda _root: command(["python3", "-mscripts"])),
    ("Makefile", 0o644, lambda _root: command("make lint")),
    ("GNUmakefile", 0o644, lambda _root: command(["make", "-j", "lint"])),
    ("sub/makefile", 0o644, lambda _root: command("make -C sub lint")),
    ("rules", 0o644, lambda _root: command("make -f rules lint")),
    *(
        ("package.json", 0o644, lambda _root, program=program: command(f"{program} run lint"))
        for program in ("npm", "pnpm", "yarn", "bun")
    ),
    ("web/package.json", 0o644, lambda _root: command("npm --prefix web run lint")),
]
DATA = [
    "cat >>data",
    "sh check.sh >data",
    "sh check.sh data",
    "bash -e check.sh data",
    "python3 -m json.tool data",
    "python3 -c 'print(1)' data",
    "python3 /usr/lib/check.py <data",
    "sh -c 'cat \"$1\"' data data",
    "perl -pi -e 's/a/b/' data",
    "rm -f data",
    "find . -newer data",
    "make lint data",
    "cd sub && tee -a ../data",
    ["sh", "-c", "cat >>data"],
    ["tee", "-a", "data"],
]


def established_command(text: str) -> ConfiguredHook:
    return established({"type": "command", "command": text})


@pytest.mark.requirement("B42", "F70")
@pytest.mark.parametrize(("name", "mode", "hook_of"), SCRIPTS)
async def test_script_that_changed_asks_again(
    gated: Gated, name: str, mode: int, hook_of: Callable[[Path], ConfiguredHook]
) -> None:
    path = gated.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("true\n")
    path.chmod(mode)
    hook = hook_of(gated.root)
    await gated.runner(RecordingApprover(YES), hook).run(PRE)
    assert not await gated.asks_again(hook)

    path.write_text("touch ran\n")

    assert await gated.asks_again(hook)
    assert not gated.ran()


@pytest.mark.requirement("B42", "F70")
@pytest.mark.parametrize("text", DATA, ids=str)
def test_a_file_that_is_only_read_or_written_is_no_script(tmp_path: Path, text: str | list[str]) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "check.sh").write_text("true\n")
    data = tmp_path / "data"
    data.write_text("one")
    before = hook_item(command(text), tmp_path)

    data.write_text("two")

    assert hook_item(command(text), tmp_path) == before


@pytest.mark.requirement("B42", "F70")
async def test_script_that_changes_while_the_question_is_open_does_not_run(gated: Gated) -> None:
    script = gated.root / "check.sh"
    script.write_text("true\n")

    async def change() -> None:
        script.write_text("touch ran\n")

    hook = command("sh check.sh", blocking=True)
    runner = gated.runner(RecordingApprover(YES, before=change), hook)

    outcome = await runner.run(PRE)

    assert not gated.ran()
    assert outcome.blocked_by == hook.name
    assert [run.decision for run in runner.runs] == ["skipped"]
    assert await gated.asks_again(hook)


@pytest.mark.requirement("B42", "F11")
@pytest.mark.parametrize(("blocking", "blocked_by"), [(True, "mine"), (False, None)])
@pytest.mark.parametrize("feedback", ["", "no approver"])
async def test_refusal_blocks_for_a_blocking_hook_and_is_logged_for_another(
    gated: Gated, blocking: bool, blocked_by: str | None, feedback: str
) -> None:
    hook = command("touch ran", blocking=blocking, name="mine")
    approver = RecordingApprover(ApprovalReply(allowed=False, feedback=feedback))
    runner = gated.runner(approver, hook)

    outcomes = [await runner.run(PRE) for _ in range(2)]

    why = f"not trusted ({feedback or 'refused'})"
    reason = f"mine was not run: {why}" if blocking else ""
    assert outcomes == [Outcome(blocked_by=blocked_by, reason=reason)] * 2
    assert [(run.decision, run.reason) for run in runner.runs] == [("skipped", why)] * 2
    assert len(approver.requests) == 1
    assert not gated.ran()


@pytest.mark.requirement("B42")
async def test_refusal_holds_for_the_content_that_was_shown_and_no_other(gated: Gated) -> None:
    approver = RecordingApprover(NO, YES)
    runner = gated.runner(approver, command("touch refused"))
    await runner.run(PRE)

    runner.hooks = (command("touch ran"),)
    await runner.run(PRE)

    assert len(approver.requests) == 2
    assert [path.name for path in gated.root.iterdir()] == ["ran"]


@pytest.mark.requirement("B42")
async def test_refusal_holds_for_hooks_of_every_type(gated: Gated) -> None:
    hooks = HTTP, configured("PreToolUse", {"type": "prompt", "prompt": "Judge"})
    runner = gated.runner(RecordingApprover(), *hooks)

    await runner.run(PRE)

    assert [run.decision for run in runner.runs] == ["skipped", "skipped"]


@pytest.mark.requirement("B42")
async def test_what_was_not_in_the_question_is_not_admitted(tmp_path: Path) -> None:
    gate = TrustGate(trust=TrustStore(tmp_path), approver=RecordingApprover(YES))
    shown = TrustItem(text="shown", place=Place(source="x"), digest="a" * 64)

    assert await gate.ask("b" * 64, lambda: [shown]) == "it is not in the settings any more"
    assert await gate.ask("a" * 64, lambda: [shown]) is None


@pytest.mark.requirement("B42", "F60")
async def test_cancel_while_the_question_is_open_leaves_it_open(gated: Gated) -> None:
    asked = anyio.Event()

    async def wait_for_ever() -> None:
        if not asked.is_set():
            asked.set()
            await anyio.sleep_forever()

    approver = RecordingApprover(YES, before=wait_for_ever)
    runner = gated.runner(approver, command("touch ran"))
    async with anyio.create_task_group() as group:
        group.start_soon(runner.run, PRE)
        await asked.wait()
        group.cancel_scope.cancel()
    assert not gated.ran()

    await runner.run(PRE)

    assert len(approver.requests) == 2
    assert gated.ran()
