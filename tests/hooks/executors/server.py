"""A real HTTP server on the loopback interface that answers hooks, and a listener that nobody may reach."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it came; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """``endless`` repeats the body until the client leaves; ``stalls`` sends it and no more, though more is announced.

    ``silent`` sends nothing at all until the client leaves.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False
    stalls: bool = False
    silent: bool = False


class HookServer:
    """Gives every request the same response and keeps the requests."""

    def __init__(self, response: Response, address: str = "127.0.0.1") -> None:
        self.requests: list[Request] = []
        self.response = response
        self._server = _Server(self, address)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, owner: HookServer, address: str) -> None:
        super().__init__((address, 0), _Handler)
        self.owner = owner

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves early is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner = self.server.owner
        owner.requests.append(Request(method=self.command, path=self.path, headers=headers, body=body))
        self.close_connection = True
        with suppress(OSError):
            self._answer(owner.response)

    do_GET = do_POST  # noqa: N815 (a redirect that is followed may become one)

    def _answer(self, response: Response) -> None:
        if not response.silent:
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            if not response.endless and response.status != 204:
                self.send_header("Content-Length", str(len(response.body) + response.stalls))
            self.end_headers()
            self.wfile.write(response.body)
            self.wfile.flush()
        while response.endless:
            self.wfile.write(response.body)
        if response.stalls or response.silent:
            self.connection.recv(1)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def unreached() -> Iterator[int]:
    """The port of a listener on every address; fails if anything has connected to it by the end."""
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        yield int(listener.getsockname()[1])
        listener.setblocking(False)
        try:
            connection, peer = listener.accept()
        except BlockingIOError:
            return
        connection.close()
        raise AssertionError(f"something connected from {peer}")
