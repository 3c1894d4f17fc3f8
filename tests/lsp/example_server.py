"""A server for the tests, with nothing of the agent in it; as a script it serves its standard streams."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import anyio
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from agent_lsp.errors import AgentLspError
from agent_lsp.lsp.documents import path_of
from agent_lsp.lsp.jobs import Job
from agent_lsp.lsp.progress import work_done_progress
from agent_lsp.lsp.server import AgentServer, run


def example_server() -> AgentServer:
    """A new server with the features and commands below."""
    server = AgentServer("example", "1")
    features: dict[str, Callable[..., Any]] = {
        "agent/echo": lambda params: params,
        "agent/fail": fail,
        "agent/unserialisable": lambda params: {"nan": float("nan"), "object": object()}[params["what"]],
        "agent/wait": wait,
        "agent/document": document,
        "agent/confirm": confirm,
        "agent/steps": steps,
        types.TEXT_DOCUMENT_HOVER: hover,
    }
    commands: dict[str, Callable[..., Any]] = {
        "example.echo": lambda *arguments: list(arguments),
        "example.wait": wait,
        "example.progress": progress,
        "example.child": child,
        "example.shielded": shielded,
        "example.crash": crash,
        "example.thread": thread,
        "example.streams": streams,
    }
    for name, feature in features.items():
        server.feature(name)(feature)
    for name, command in commands.items():
        server.command(name)(command)
    return server


def hover(params: types.HoverParams) -> types.Hover:
    return types.Hover(contents=f"{params.position.line}:{params.position.character}")


async def fail(params: dict[str, str]) -> None:
    match params["how"]:
        case "crash":
            raise ValueError("a secret of the implementation")
        case "group":
            async with anyio.create_task_group():
                raise JsonRpcInvalidParams("inside a group")
        case "domain":
            raise AgentLspError("The model does not answer. Check the URL.")


async def wait(ls: AgentServer, *_arguments: Any) -> None:
    """Wait until cancelled, and tell both."""
    ls.protocol.notify("example/waiting")
    try:
        await anyio.sleep_forever()
    finally:
        ls.protocol.notify("example/cancelled")


def document(ls: AgentServer, params: dict[str, str]) -> dict[str, Any] | None:
    path = path_of(params["uri"])
    found = None if path is None else ls.documents.get(path)
    return None if found is None else asdict(found)


async def confirm(ls: AgentServer, params: dict[str, Any]) -> Any:
    """Ask the user, at most for the given seconds."""
    question = types.ShowMessageRequestParams(type=types.MessageType.Info, message="Sure?")
    with anyio.move_on_after(params["seconds"]):
        action = await ls.window_show_message_request_async(question)
        return action and action.title
    return "silence"


async def progress(ls: AgentServer, *reports: str) -> None:
    """Run a job under a progress until it is cancelled, and tell when it has ended."""

    async def work() -> None:
        try:
            async with work_done_progress(ls, "Working", lambda: job.cancel()) as shown:
                for report in reports:
                    shown.report(report)
                shown.finish("over")
                await anyio.sleep_forever()
        finally:
            ls.protocol.notify("example/ended")

    job: Job[None] = ls.start_job(work, "work")


async def steps(ls: AgentServer, params: dict[str, Any]) -> None:
    """Report the steps under the client's progress, each when the client asks for it by answering."""
    async with work_done_progress(ls, "Stepping", lambda: None, params["workDoneToken"]) as shown:
        for step in params["steps"]:
            shown.report(step)
            await ls.protocol.send_request_async("example/next", {"after": step})


async def child(ls: AgentServer) -> int:
    """Start a job with a child process in a session of its own: the child's process id."""
    process = await anyio.open_process(["sleep", "60"], start_new_session=True, stdin=subprocess.DEVNULL)

    async def work() -> None:
        try:
            await process.wait()
        finally:
            os.killpg(process.pid, 9)

    ls.start_job(work, "child")
    return process.pid


async def shielded(ls: AgentServer) -> None:
    """Start a job that no cancel reaches."""

    async def work() -> None:
        with anyio.CancelScope(shield=True):
            await anyio.sleep_forever()

    ls.start_job(work, "shielded")


async def crash(ls: AgentServer) -> None:
    """Start a job that fails."""

    async def work() -> None:
        raise ValueError("a job failed")

    ls.start_job(work, "crash")


async def thread(ls: AgentServer) -> None:
    """Start a job that waits for a thread that does not end."""

    async def work() -> None:
        await anyio.to_thread.run_sync(threading.Event().wait, abandon_on_cancel=True)

    ls.start_job(work, "thread")


def streams() -> dict[str, str]:
    """What a child reads from its standard input; and print something, as careless libraries do."""
    print("careless")
    os.write(1, b"careless\n")
    output = subprocess.run(
        [sys.executable, "-c", "import sys; print(repr(sys.stdin.read()))"], stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["echo", "careless child"], check=True)
    return {"read": output.stdout.decode().strip()}


if __name__ == "__main__":
    sys.exit(run(example_server()))
