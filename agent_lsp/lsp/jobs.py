"""Work that outlives the message that began it.

Invariants: every job runs under the server's one root task group; a job that fails is logged and never ends the
server; whoever wants a job to stop (a cancelled request, the progress's cancel button, a command, shutdown, the end
of input) calls the same ``cancel``.
"""

import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

logger = logging.getLogger(__name__)

T = TypeVar("T")


class JobCancelled(Exception):
    """Raised to those who wait for a job that was cancelled."""


class Job(Generic[T]):
    """One piece of background work and what it came to."""

    def __init__(self, function: Callable[[], Awaitable[T]], name: str) -> None:
        self.name = name
        self._function = function
        self._scope = anyio.CancelScope()
        self._done = anyio.Event()
        self._result: tuple[T] | None = None
        self._error: Exception | None = None

    def cancel(self) -> None:
        """Ask the job to stop; at once and without waiting. A finished job takes no notice."""
        self._scope.cancel()

    @property
    def done(self) -> bool:
        return self._done.is_set()

    async def wait(self) -> T:
        """Wait for the end of the job: its result, its exception, or JobCancelled."""
        await self._done.wait()
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise JobCancelled(self.name)
        return self._result[0]

    async def settle(self) -> None:
        """Wait for the end of the job, whatever it came to."""
        await self._done.wait()

    async def run(self) -> None:
        """Do the work; for ``Jobs`` alone."""
        try:
            with self._scope:
                self._result = (await self._function(),)
        except Exception as error:
            logger.exception("%s failed", self.name)
            self._error = error
        finally:
            self._done.set()


_current: ContextVar[Job[Any] | None] = ContextVar("current_job", default=None)


class Jobs:
    """The jobs that run now."""

    def __init__(self) -> None:
        self._running: set[Job[Any]] = set()
        self._tasks: TaskGroup | None = None

    def attach(self, tasks: TaskGroup) -> None:
        """Run the jobs under this task group from now on."""
        self._tasks = tasks

    def start(self, function: Callable[[], Awaitable[T]], name: str) -> Job[T]:
        """Start a job; it makes its first step after the caller's next wait. ``name`` is for the log."""
        if self._tasks is None:
            raise RuntimeError("the server does not run")
        job = Job(function, name)
        self._running.add(job)
        self._tasks.start_soon(self._run, job, name=name)
        return job

    async def _run(self, job: Job[Any]) -> None:
        _current.set(job)
        try:
            await job.run()
        finally:
            self._running.discard(job)

    async def end(self, within: float) -> None:
        """Cancel every job but the caller's own and wait for them, at most ``within`` seconds."""
        with anyio.move_on_after(within):
            while others := self._running - {_current.get()}:
                for job in others:
                    job.cancel()
                for job in others:
                    await job.settle()
        if left := sorted(job.name for job in self._running - {_current.get()}):
            logger.error("not ended %s seconds after their cancellation: %s", within, ", ".join(left))
