"""The tasks of a session: what the model means to do, as a list that people and hooks can follow.

Invariant: a task that a watcher refuses was never there, and a transition that one refuses has not happened
(B27, B28).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import anyio
from pydantic import Field

from agent_lsp.approvals import Action
from agent_lsp.errors import ToolError
from agent_lsp.messages import ToolResult
from agent_lsp.tools.base import AnyTool, P, Params, Tool, ToolContext
from agent_lsp.workspace import Access

Status: TypeAlias = Literal["pending", "in_progress", "completed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task; ``blocked_by`` holds the ids of tasks that must be completed first."""

    id: str
    subject: str
    description: str = ""
    status: Status = "pending"
    blocked_by: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        shown = {"id": self.id, "subject": self.subject, "description": self.description, "status": self.status}
        return shown | {"blocked_by": list(self.blocked_by)}

    def __str__(self) -> str:
        waits = f" (waits for {', '.join(self.blocked_by)})" if self.blocked_by else ""
        return f"{self.id}. [{self.status}] {self.subject}{waits}"


TaskWatcher: TypeAlias = Callable[[Task, Task | None], Awaitable[str]]
"""Hears of a task that was created (no earlier one) or is to be completed; may answer with context for the model.
Raises ToolError to refuse."""


async def _nobody(_task: Task, _earlier: Task | None) -> str:
    return ""


@dataclass(slots=True, kw_only=True)
class TaskList:
    """The tasks of one session, in the order of their creation."""

    watcher: TaskWatcher = _nobody
    _tasks: dict[str, Task] = field(default_factory=dict)
    _created: int = 0
    _changing: anyio.Lock = field(default_factory=anyio.Lock)

    def __str__(self) -> str:
        return "\n".join(map(str, self._tasks.values())) or "There are no tasks."

    def open_ones(self) -> str:
        """The tasks that are not completed, a line each; empty where there are none."""
        return "\n".join(str(task) for task in self._tasks.values() if task.status != "completed")

    def to_json(self) -> list[dict[str, Any]]:
        """All tasks, as ``restore`` takes them."""
        return [task.to_json() for task in self._tasks.values()]

    def restore(self, tasks: Iterable[Mapping[str, Any]]) -> None:
        """Take the tasks of an earlier time; no watcher hears of them. Raises TypeError, or KeyError, for others."""
        for given in tasks:
            task = Task(**{**given, "blocked_by": tuple(given["blocked_by"])})
            self._tasks[task.id] = task
        self._created = max([self._created, *(int(id_) for id_ in self._tasks if id_.isdecimal())])

    def get(self, id_: str) -> Task:
        task = self._tasks.get(id_)
        if task is None:
            raise ToolError("unknown_task", f"There is no task {id_}. {self}")
        return task

    async def create(self, params: "TaskCreate") -> tuple[Task, str]:
        async with self._changing:
            return await self._create(params)

    async def update(self, params: "TaskUpdate") -> tuple[Task, str]:
        async with self._changing:
            return await self._update(params)

    async def _create(self, params: "TaskCreate") -> tuple[Task, str]:
        self._created += 1
        task = Task(id=str(self._created), subject=params.subject, description=params.description)
        self._tasks[task.id] = task
        try:
            return task, await self.watcher(task, None)
        except BaseException:
            del self._tasks[task.id]
            raise

    async def _update(self, params: "TaskUpdate") -> tuple[Task, str]:
        earlier = self.get(params.id)
        task = replace(earlier, **params.model_dump(exclude_none=True))
        self._require_possible(task)
        context = ""
        if task.status == "completed" != earlier.status:
            context = await self.watcher(task, earlier)
        self._tasks[task.id] = task
        return task, context

    def _require_possible(self, task: Task) -> None:
        """Raise ToolError for blockers that do not exist, that form a ring, or that hold a completed task up."""
        waiting, seen = list(task.blocked_by), set[str]()
        while waiting:
            id_ = waiting.pop()
            if id_ == task.id:
                raise ToolError("task_cycle", f"Task {task.id} would wait for itself")
            if id_ not in seen:
                seen.add(id_)
                waiting += self.get(id_).blocked_by
        open_ones = [id_ for id_ in task.blocked_by if self.get(id_).status != "completed"]
        if task.status == "completed" and open_ones:
            raise ToolError("task_blocked", f"Task {task.id} waits for {', '.join(open_ones)}")


class TaskCreate(Params):
    """Add a task to the session's list, for work that has several steps."""

    subject: str = Field(min_length=1, description="What is to be done, in one line")
    description: str = Field(default="", description="What belongs to it")


class TaskUpdate(Params):
    """Change a task: its status when you begin or complete it, its text, or what it waits for."""

    id: str = Field(description="The task's id")
    status: Status | None = None
    subject: str | None = Field(default=None, min_length=1)
    description: str | None = None
    blocked_by: tuple[str, ...] | None = Field(default=None, description="Ids of tasks that must be completed first")


class TaskListParams(Params):
    """Show all tasks with their status."""


def task_tools(tasks: TaskList) -> tuple[AnyTool, ...]:
    """The three tools on one list."""

    async def create(params: TaskCreate, _context: ToolContext) -> ToolResult:
        return _report(*await tasks.create(params))

    async def update(params: TaskUpdate, _context: ToolContext) -> ToolResult:
        return _report(*await tasks.update(params))

    async def show(_params: TaskListParams, _context: ToolContext) -> ToolResult:
        return ToolResult(content=str(tasks))

    return (
        _tool("task_create", TaskCreate, create),
        _tool("task_update", TaskUpdate, update),
        _tool("task_list", TaskListParams, show),
    )


def _report(task: Task, context: str) -> ToolResult:
    return ToolResult(content="\n".join(filter(None, (str(task), context))))


def _tool(name: str, params: type[P], run: Callable[[P, ToolContext], Awaitable[ToolResult]]) -> AnyTool:
    action = Action(tool=name, access=Access.INTERNAL)
    return Tool(name=name, params=params, access=Access.INTERNAL, run=run, action=lambda _params, _workspace: action)
