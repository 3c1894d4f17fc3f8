"""Jobs: one way to start, one way to stop, and what becomes of failures."""

import logging

import anyio
import pytest

from agent_lsp.lsp.jobs import JobCancelled, Jobs


async def double(number: int) -> int:
    await anyio.lowlevel.checkpoint()
    return 2 * number


async def test_job_gives_its_result_to_all_who_wait() -> None:
    jobs = Jobs()
    async with anyio.create_task_group() as tasks:
        jobs.attach(tasks)
        job = jobs.start(lambda: double(4), "double")
        assert (job.done, await job.wait(), await job.wait(), job.done) == (False, 8, 8, True)


@pytest.mark.requirement("F60")
async def test_cancelled_job_runs_its_cleanup_and_says_so_to_those_who_wait() -> None:
    jobs, cleaned = Jobs(), list[str]()

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cleaned.append("cleaned")

    async with anyio.create_task_group() as tasks:
        jobs.attach(tasks)
        job = jobs.start(work, "work")
        await anyio.lowlevel.checkpoint()
        job.cancel()
        job.cancel()
        with pytest.raises(JobCancelled, match="work"):
            await job.wait()
    assert cleaned == ["cleaned"]


async def test_waiter_that_is_cancelled_leaves_the_job_running() -> None:
    jobs, release = Jobs(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        jobs.attach(tasks)
        job = jobs.start(release.wait, "work")
        with anyio.move_on_after(0.01) as patience:
            await job.wait()
        assert (patience.cancelled_caught, job.done) == (True, False)
        release.set()
        await job.wait()


async def test_failed_job_is_logged_and_leaves_the_others_alone(caplog: pytest.LogCaptureFixture) -> None:
    jobs = Jobs()

    async def fail() -> None:
        raise ValueError("no")

    async with anyio.create_task_group() as tasks:
        jobs.attach(tasks)
        failing, other = jobs.start(fail, "failing"), jobs.start(lambda: double(1), "other")
        with pytest.raises(ValueError, match="no"):
            await failing.wait()
        assert await other.wait() == 2
    assert caplog.record_tuples == [("agent_lsp.lsp.jobs", logging.ERROR, "failing failed")]


@pytest.mark.requirement("F60")
async def test_end_cancels_all_jobs_and_those_they_start_but_not_the_callers_own() -> None:
    jobs, ended = Jobs(), list[str]()

    async def work(name: str) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(name)
            if name == "parent":
                jobs.start(lambda: work("child"), "child")

    async def end() -> str:
        await jobs.end(5)
        return "own job went on"

    async with anyio.create_task_group() as tasks:
        jobs.attach(tasks)
        jobs.start(lambda: work("parent"), "parent")
        await anyio.lowlevel.checkpoint()
        assert await jobs.start(end, "end").wait() == "own job went on"
    assert ended == ["parent", "child"]


async def test_end_names_the_jobs_that_do_not_end(caplog: pytest.LogCaptureFixture) -> None:
    jobs, release = Jobs(), anyio.Event()

    async def stubborn() -> None:
        with anyio.CancelScope(shield=True):
            await release.wait()

    async with anyio.create_task_group() as tasks:
        jobs.attach(tasks)
        jobs.start(stubborn, "stubborn")
        await anyio.lowlevel.checkpoint()
        await jobs.end(0.01)
        release.set()
    assert caplog.messages == ["not ended 0.01 seconds after their cancellation: stubborn"]


def test_job_cannot_start_while_the_server_does_not_run() -> None:
    with pytest.raises(RuntimeError, match="does not run"):
        Jobs().start(lambda: double(1), "double")
