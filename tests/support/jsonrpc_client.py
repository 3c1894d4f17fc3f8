"""A language client with no library between the test and the wire.

It reads frames strictly, so that a stray byte on the server's output fails the test, and it answers the server's
requests from a table, as editors do: with a result, with an error, or never.
"""

import inspect
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

Message: TypeAlias = dict[str, Any]
Handler: TypeAlias = Callable[[Any], Any]

C = TypeVar("C", bound="Client")

TIMEOUT = 10.0
"""Seconds after which a message that did not come fails the test."""


class ErrorReply(Exception):
    """The answer was an error. Raised by ``Client.request``, and by a handler that wants to send one."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.data = data


class NoReply(Exception):
    """Raised by a handler that never answers."""


class Client:
    """One connection; ``received`` holds every message of the server in order."""

    def __init__(self, incoming: ByteReceiveStream, outgoing: ByteSendStream) -> None:
        self._incoming = BufferedByteReceiveStream(incoming)
        self._outgoing = outgoing
        self._sending = anyio.Lock()
        self._ids = itertools.count(1)
        self._arrived = anyio.Event()
        self.closed = anyio.Event()
        self.received: list[Message] = []
        self.handlers: dict[str, Handler] = {}

    # Sending

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        async with self._sending:
            await self._outgoing.send(data)

    async def send(self, message: Any) -> None:
        """Send any JSON value as one frame."""
        await self.send_bytes(frame(json.dumps(message).encode()))

    async def notify(self, method: str, params: Any = None) -> None:
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def ask(self, method: str, params: Any = None) -> int:
        """Send a request and do not wait; the id is for ``answer``."""
        id_ = next(self._ids)
        await self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        return id_

    async def answer(self, id_: int | str | None, timeout: float = TIMEOUT) -> Any:
        """Wait for the answer to a request: its result, or ErrorReply."""
        message = await self.wait_for(lambda message: "method" not in message and message["id"] == id_, timeout)
        if (error := message.get("error")) is not None:
            raise ErrorReply(error["code"], error["message"], error.get("data"))
        return message["result"]

    async def request(self, method: str, params: Any = None, timeout: float = TIMEOUT) -> Any:
        return await self.answer(await self.ask(method, params), timeout)

    async def initialize(self, capabilities: Message | None = None, **params: Any) -> Any:
        """Do the opening as an editor does it: the result of ``initialize``."""
        defaults = {"processId": None, "rootUri": None, "capabilities": capabilities or {}}
        result = await self.request("initialize", defaults | params)
        await self.notify("initialized", {})
        return result

    async def shut_down(self) -> None:
        """Leave as an editor does it."""
        await self.request("shutdown")
        await self.notify("exit")

    async def close(self) -> None:
        """End the server's input."""
        await self._outgoing.aclose()

    # Receiving

    async def wait_for(self, predicate: Callable[[Message], bool], timeout: float = TIMEOUT) -> Message:
        """The first message, of those received already and those to come, for which the predicate holds."""
        seen = 0
        with anyio.fail_after(timeout):
            while True:
                for message in self.received[seen:]:
                    if predicate(message):
                        return message
                if self.closed.is_set():
                    raise AssertionError(f"the server has closed its output; it sent {self.received}")
                seen = len(self.received)
                await self._arrived.wait()

    async def wait_for_method(self, method: str, timeout: float = TIMEOUT) -> Message:
        """The first notification or request of the server with this method."""
        return await self.wait_for(lambda message: message.get("method") == method, timeout)

    def of_method(self, method: str) -> list[Any]:
        """The parameters of every notification and request received with this method."""
        return [message.get("params") for message in self.received if message.get("method") == method]

    async def listen(self) -> None:
        """Receive until the server closes its output; handlers that wait hold up nothing."""
        try:
            async with anyio.create_task_group() as replies:
                while (message := await self._next()) is not None:
                    self.take(message)
                    if "method" in message and "id" in message:
                        replies.start_soon(self._reply, message)
                replies.cancel_scope.cancel()
        finally:
            self.closed.set()
            self._signal()

    def take(self, message: Message) -> None:
        """Keep a message, and let those look who wait for one."""
        self.received.append(message)
        self._signal()

    def _signal(self) -> None:
        self._arrived.set()
        self._arrived = anyio.Event()

    async def _next(self) -> Message | None:
        try:
            header = await self._incoming.receive_until(b"\r\n\r\n", 100)
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return None
        name, _, length = header.partition(b": ")
        assert name == b"Content-Length", f"not a frame: {header!r}"
        message = json.loads(await self._incoming.receive_exactly(int(length)), parse_constant=_refuse)
        assert isinstance(message, dict)
        return message

    async def _reply(self, request: Message) -> None:
        reply: Message
        try:
            handler = self.handlers.get(request["method"], _unknown)
            result = handler(request.get("params"))
            reply = {"result": await result if inspect.isawaitable(result) else result}
        except NoReply:
            return
        except ErrorReply as error:
            reply = {"error": {"code": error.code, "message": error.message}}
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it may have gone meanwhile
            await self.send({"jsonrpc": "2.0", "id": request["id"]} | reply)


class ProcessClient(Client):
    """The connection to a server that is a process of its own."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        super().__init__(process.stdout, process.stdin)
        self.process = process

    async def exit_code(self, timeout: float = TIMEOUT) -> int:
        """Wait for the end of the process."""
        with anyio.fail_after(timeout):
            return await self.process.wait()


@asynccontextmanager
async def spawn(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stderr: IO[bytes] | None = None,
) -> AsyncIterator[ProcessClient]:
    """Start a server and connect to its standard streams; what is left of it afterwards is killed."""
    arguments = [os.fspath(part) for part in command]
    async with await anyio.open_process(
        arguments, cwd=cwd, env=env, stderr=stderr, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            async with listening(ProcessClient(process)) as client:
                yield client
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)


@asynccontextmanager
async def connect(connection: socket.socket) -> AsyncIterator[Client]:
    """Connect over a socket, which is closed afterwards."""
    stream = await SocketStream.from_socket(connection)
    async with stream, listening(Client(stream, stream)) as client:
        yield client


@asynccontextmanager
async def listening(client: C) -> AsyncIterator[C]:
    """Receive in the background while the block runs."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.listen)
        yield client
        tasks.cancel_scope.cancel()


def frame(body: bytes) -> bytes:
    """One message as it goes over the wire."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _unknown(_params: Any) -> Any:
    raise ErrorReply(-32601, "Method not found")


def _refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} on the wire")
