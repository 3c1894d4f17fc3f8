"""One life of a server, as its client sees it."""

import signal
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import Process, TaskGroup

from bench.soak.calls import Plan
from bench.soak.report import Sample
from tests.support.jsonrpc_client import ErrorReply, Message, ProcessClient

EXIT_CODES = {"kill": -signal.SIGKILL, "terminate": 128 + signal.SIGTERM, "close": 1, "leave": 0}
"""How a server is ended, and with what it has to end then."""


class Connection(ProcessClient):
    """Hands on what the server tells and asks, and keeps the answers alone."""

    def __init__(self, process: Process, heard: Callable[[Message], None]) -> None:
        super().__init__(process)
        self._heard = heard

    def take(self, message: Message) -> None:
        if "method" in message:
            self._heard(message)
        else:
            super().take(message)


@dataclass
class Server:
    """One process, and the prompt that it is about."""

    client: Connection
    tasks: TaskGroup
    ended_by: str | None = None
    life: list[Sample] = field(default_factory=list)
    cpu: float = 0
    shown: dict[str, list[Any]] = field(default_factory=dict)
    """Diagnostics that the editor shows, by document."""
    session: str = ""
    started: list[str] = field(default_factory=list)
    """The prompts whose turns began."""
    asking: str | None = None
    """The call that the user is asked about, or was last."""
    plan: Plan = field(default_factory=lambda: Plan(number=0))
    request: int | None = None
    result: Any = None
    finished: anyio.Event = field(default_factory=anyio.Event)
    messages: int = 0
    troubled: bool = False

    def begin(self, plan: Plan) -> Plan:
        self.plan, self.request, self.result = plan, None, None
        self.finished, self.messages, self.troubled = anyio.Event(), 0, False
        return plan

    def tolerant(self, do: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        """What to do as long as the server lives; when it has gone, nothing."""

        async def attempt(argument: Any) -> Any:
            try:
                return await do(argument)
            except (ErrorReply, AssertionError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                if self.ended_by is None:
                    raise

        return attempt

    async def watch(self) -> None:
        """Let nobody wait for what a server that has gone does not tell."""
        await self.client.closed.wait()
        self.finished.set()

    def is_time_for_trouble(self, event: Any) -> bool:
        """Once, at the latest where the turn would not end by itself."""
        match event:
            case {"type": "text_delta", "text": str(text)} if "hangs" in text:
                return True
            case {"type": "tool_started", "arguments": {"command": str(command)}} if command.endswith("; sleep 30"):
                return True
        return not self.troubled and self.messages >= self.plan.patience
