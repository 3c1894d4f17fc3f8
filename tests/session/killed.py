"""A process that works in a session until it is killed, again and again: ``python -m tests.session.killed ROOT STATE``.

For each line on its input it forks a child, whose number it prints and which never ends by itself: the imports are
paid once. The child keeps its own account of what it saw happen, in the order in which it happened.
"""

import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio

from agent_lsp.agent.events import AgentEvent, ToolFinished, ToolStarted, TurnFinished
from agent_lsp.messages import UserMessage
from agent_lsp.models.base import ModelEvent, ModelRequest
from agent_lsp.models.scripted import calls, says
from agent_lsp.session.assemble import SessionOptions, open_session
from agent_lsp.session.session import Session
from agent_lsp.session.stored import stored_sessions
from tests.support.harness import RecordingApprover


class Worker:
    """A model that has two calls made for each prompt, whose marks are never the same twice."""

    name = "worker"
    input_limit = None

    def connect(self) -> None:
        """There is nothing to connect to."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        await anyio.lowlevel.checkpoint()
        mark = len(request.messages)
        if not isinstance(request.messages[-1], UserMessage):
            yield says(f"done {mark}")
            return
        yield calls(
            ("write_file", {"path": f"f{mark % 7}.txt", "content": f"{mark}\n" * 50}),
            ("shell", {"command": f"echo {mark} >> ran; echo {mark} > s{mark % 5}"}),
            text=f"work {mark}",
        )


def work(root: Path, account: Path) -> None:
    """Go on with the session of a workspace until killed."""
    stored = stored_sessions(root)
    options = SessionOptions(
        root=root,
        resume=stored.find(None) if stored.list() else None,
        approver=RecordingApprover(),
        model=Worker(),
        mode="bypass",
        validate=False,
    )
    session = open_session(options)
    ledger = os.open(account, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(event: AgentEvent) -> None:
        turn = len(session.history.turns)
        match event:
            case ToolStarted():
                os.write(ledger, f"started {turn} {event.call_id} {event.tool}\n".encode())
            case ToolFinished():
                os.write(ledger, f"finished {turn} {event.call_id} {event.result.content.splitlines()[0]}\n".encode())
            case TurnFinished():
                os.write(ledger, f"ended {turn} {event.stop_reason}\n".encode())

    session.subscribe(note)
    anyio.run(_work, session)


async def _work(session: Session) -> None:
    while True:
        await session.run("go on")


def main() -> None:
    root, account = map(Path, sys.argv[1:])
    for _line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                work(root, account)
            finally:
                os._exit(1)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("gone", flush=True)


if __name__ == "__main__":
    main()
