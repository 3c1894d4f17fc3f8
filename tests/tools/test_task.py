"""The session's tasks: what may follow on what, and that a refused change has not happened."""

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_lsp.errors import ToolError
from agent_lsp.hooks.settings import ConfiguredHook
from agent_lsp.messages import ToolResult
from agent_lsp.session.hooks import ConfiguredHooks
from agent_lsp.tools.base import AnyTool
from agent_lsp.tools.task import Status, Task, TaskCreate, TaskList, TaskUpdate, TaskWatcher, task_tools
from agent_lsp.workspace import Access, Workspace
from tests.hooks.configured import command, make_runner
from tests.tools.conftest import Call


async def listed(*subjects: str, watcher: TaskWatcher | None = None) -> TaskList:
    """A list with these tasks, watched from then on."""
    tasks = TaskList()
    for subject in subjects:
        await tasks.create(TaskCreate(subject=subject))
    if watcher is not None:
        tasks.watcher = watcher
    return tasks


async def update(tasks: TaskList, id_: str, **changes: Any) -> Task:
    return (await tasks.update(TaskUpdate(id=id_, **changes)))[0]


def tools(tasks: TaskList) -> dict[str, AnyTool]:
    return {tool.name: tool for tool in task_tools(tasks)}


async def test_tasks_are_made_changed_and_shown(call: Call) -> None:
    named = tools(TaskList())

    created = await call(named["task_create"], subject="Build", description="all of it")
    await call(named["task_create"], subject="Test")
    changed = await call(named["task_update"], id="2", status="in_progress", blocked_by=["1"])
    shown = await call(named["task_list"])

    assert created == ToolResult(content="1. [pending] Build")
    assert changed == ToolResult(content="2. [in_progress] Test (waits for 1)")
    assert shown == ToolResult(content="1. [pending] Build\n2. [in_progress] Test (waits for 1)")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"id": "9", "status": "completed"}, "unknown_task"),
        ({"id": "1", "status": "done"}, "invalid_arguments"),
        ({"id": "1", "subject": ""}, "invalid_arguments"),
        ({"id": 1}, "invalid_arguments"),
        ({"id": "1", "blocked_by": ["9"]}, "unknown_task"),
        ({"id": "1", "blocked_by": ["1"]}, "task_cycle"),
    ],
)
async def test_impossible_update_is_told_and_changes_nothing(call: Call, arguments: dict[str, Any], code: str) -> None:
    tasks = await listed("Build")

    assert (await call(tools(tasks)["task_update"], **arguments)).code == code
    assert str(tasks) == "1. [pending] Build"


def test_task_tools_are_the_sessions_own_affairs(root: Path) -> None:
    for tool in task_tools(TaskList()):
        arguments = {"task_create": {"subject": "x"}, "task_update": {"id": "1"}}.get(tool.name, {})
        action = tool.prepare("1", arguments).action(Workspace(root))
        assert (tool.access, action.access, action.paths, action.command) == (
            Access.INTERNAL,
            Access.INTERNAL,
            (),
            None,
        )


# --- what waits for what


async def test_task_is_completed_only_after_what_it_waits_for() -> None:
    tasks = await listed("Build", "Test")
    await update(tasks, "2", blocked_by=("1",))

    with pytest.raises(ToolError, match=r"^Task 2 waits for 1$"):
        await update(tasks, "2", status="completed")
    await update(tasks, "2", status="in_progress")
    await update(tasks, "1", status="completed")

    assert (await update(tasks, "2", status="completed")).status == "completed"


async def test_blockers_can_be_taken_away() -> None:
    tasks = await listed("Build", "Test")
    await update(tasks, "2", blocked_by=("1",))

    assert await update(tasks, "2", blocked_by=(), status="completed") == Task(
        id="2", subject="Test", status="completed"
    )


async def test_ring_of_tasks_is_refused() -> None:
    tasks = await listed("a", "b", "c")
    await update(tasks, "1", blocked_by=("2",))
    await update(tasks, "2", blocked_by=("3",))

    with pytest.raises(ToolError, match=r"^Task 3 would wait for itself$"):
        await update(tasks, "3", blocked_by=("1",))
    assert tasks.get("3").blocked_by == ()


IDS = st.sampled_from("1234")
STATUSES: list[Status | None] = [None, "pending", "in_progress", "completed"]
CHANGES = st.tuples(IDS, st.none() | st.lists(IDS, max_size=3), st.sampled_from(STATUSES))


@settings(deadline=None)
@given(st.lists(CHANGES, max_size=15))
def test_no_sequence_of_updates_makes_a_ring(changes: list[tuple[str, list[str] | None, Status | None]]) -> None:
    async def run() -> TaskList:
        tasks = await listed("a", "b", "c", "d")
        for id_, blocked_by, status in changes:
            try:
                await update(tasks, id_, blocked_by=None if blocked_by is None else tuple(blocked_by), status=status)
            except ToolError as error:
                assert error.code in ("task_cycle", "task_blocked")  # noqa: PT017 (most updates raise nothing)
        return tasks

    tasks = anyio.run(run)
    waiting = {id_: set(tasks.get(id_).blocked_by) for id_ in "1234"}
    while free := {id_ for id_, blockers in waiting.items() if not blockers & waiting.keys()}:
        waiting = {id_: blockers for id_, blockers in waiting.items() if id_ not in free}
    assert waiting == {}


# --- watchers and hooks that refuse


class Watcher:
    """A watcher that keeps what it heard, and refuses where it has an error."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.heard: list[tuple[Task, Task | None]] = []
        self.error = error

    async def __call__(self, task: Task, earlier: Task | None) -> str:
        self.heard.append((task, earlier))
        if self.error is not None:
            raise self.error
        return "mind the gap"


async def test_watcher_hears_of_creations_and_completions_alone() -> None:
    watcher = Watcher()
    tasks = await listed(watcher=watcher)
    await tasks.create(TaskCreate(subject="a"))
    for changes in ({"status": "in_progress"}, {"subject": "b"}, {"status": "completed"}, {"description": "d"}):
        await update(tasks, "1", **changes)
    await update(tasks, "1", status="completed")

    done = Task(id="1", subject="b", status="completed")
    assert watcher.heard == [
        (Task(id="1", subject="a"), None),
        (done, Task(id="1", subject="b", status="in_progress")),
    ]


async def test_context_of_a_watcher_reaches_the_model(call: Call) -> None:
    tasks = await listed(watcher=Watcher())

    assert (await call(tools(tasks)["task_create"], subject="a")).content == "1. [pending] a\nmind the gap"


@pytest.mark.requirement("S3-tasks", "B27")
@pytest.mark.parametrize("error", [ToolError("hook_blocked", "no"), RuntimeError("odd")])
async def test_task_that_is_refused_was_never_there(error: Exception) -> None:
    tasks = await listed("kept", watcher=Watcher(error))

    with pytest.raises(type(error)):
        await tasks.create(TaskCreate(subject="refused"))

    assert str(tasks) == "1. [pending] kept"
    tasks.watcher = Watcher()
    assert (await tasks.create(TaskCreate(subject="next")))[0].id != "1"


@pytest.mark.requirement("B28")
async def test_transition_that_is_refused_has_not_happened() -> None:
    tasks = await listed("a", watcher=Watcher(ToolError("hook_blocked", "no")))

    with pytest.raises(ToolError, match="no"):
        await update(tasks, "1", status="completed", subject="changed too")

    assert str(tasks) == "1. [pending] a"


def hooked(root: Path, environment: dict[str, str], *hooks: ConfiguredHook) -> TaskList:
    """A list that configured hooks watch, as in a session."""
    return TaskList(watcher=ConfiguredHooks(make_runner(root, environment, *hooks), root).watch_task)


@pytest.mark.requirement("B27", "B20")
@pytest.mark.parametrize(
    ("matcher", "content", "left"),
    [
        ("task_create", "Error [hook_blocked]: blocked by hook: too vague", "There are no tasks."),
        ("/create/", "Error [hook_blocked]: blocked by hook: too vague", "There are no tasks."),
        ("task_update", "1. [pending] Think", "1. [pending] Think"),
    ],
)
async def test_task_created_hook_removes_the_task(
    root: Path, environment: dict[str, str], call: Call, matcher: str, content: str, left: str
) -> None:
    hook = command("echo too vague >&2; exit 2", "TaskCreated", blocking=True, matcher=matcher)
    tasks = hooked(root, environment, hook)

    assert (await call(tools(tasks)["task_create"], subject="Think")).content == content
    assert str(tasks) == left


@pytest.mark.requirement("B28", "B16", "B20")
async def test_task_completed_hook_refuses_the_transition_and_sees_both_states(
    root: Path, environment: dict[str, str], call: Call
) -> None:
    text = "cat >payload; echo tests are red >&2; exit 2"
    hook = command(text, "TaskCompleted", blocking=True, matcher="task_update", if_="/Build/")
    tasks = hooked(root, environment, hook)
    await call(tools(tasks)["task_create"], subject="Build")

    result = await call(tools(tasks)["task_update"], id="1", status="completed")

    assert result.content == "Error [hook_blocked]: blocked by hook: tests are red"
    assert str(tasks) == "1. [pending] Build"
    payload = (root / "payload").read_text()
    for part in ('"task": {"id": "1"', '"previous_task": {"id": "1"', '"status_from": "pending"'):
        assert part in payload
    assert '"status_to": "completed"' in payload


@pytest.mark.requirement("B27", "B28", "B22")
async def test_task_hook_that_does_not_block_lets_it_happen(
    root: Path, environment: dict[str, str], call: Call
) -> None:
    tasks = hooked(root, environment, command("exit 2", "TaskCreated"), command("exit 2", "TaskCompleted"))
    await call(tools(tasks)["task_create"], subject="Build")

    await call(tools(tasks)["task_update"], id="1", status="completed")

    assert str(tasks) == "1. [completed] Build"


# --- side by side


class Slow:
    """A watcher that answers when it is told to; ``asked`` says that it was asked."""

    def __init__(self) -> None:
        self.asked, self.answer = anyio.Event(), anyio.Event()

    async def __call__(self, _task: Task, _earlier: Task | None) -> str:
        self.asked.set()
        await self.answer.wait()
        return ""


@pytest.mark.requirement("B27", "F60")
async def test_task_whose_creation_is_cancelled_was_never_there() -> None:
    watcher = Slow()
    tasks = await listed(watcher=watcher)
    async with anyio.create_task_group() as group:
        group.start_soon(tasks.create, TaskCreate(subject="a"))
        await watcher.asked.wait()
        group.cancel_scope.cancel()

    assert str(tasks) == "There are no tasks."


async def test_tasks_that_are_created_side_by_side_have_their_own_ids() -> None:
    watcher = Slow()
    tasks = await listed(watcher=watcher)
    async with anyio.create_task_group() as group:
        for subject in "abc":
            group.start_soon(tasks.create, TaskCreate(subject=subject))
        await watcher.asked.wait()
        watcher.answer.set()

    assert str(tasks) == "1. [pending] a\n2. [pending] b\n3. [pending] c"


@pytest.mark.requirement("B28")
async def test_change_while_a_completion_is_judged_is_not_lost() -> None:
    watcher = Slow()
    tasks = await listed("a", watcher=watcher)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: update(tasks, "1", status="completed"))
        await watcher.asked.wait()
        group.start_soon(lambda: update(tasks, "1", description="new"))
        await anyio.wait_all_tasks_blocked()
        watcher.answer.set()

    assert tasks.get("1") == Task(id="1", subject="a", description="new", status="completed")
