"""A real chat completions server on the loopback interface that plays scripted answers and keeps the requests.

It runs in threads of its own, so that async tests and tests of subprocesses use it alike::

    with OpenAIServer() as server:
        server.reply_tool_calls(("call_1", "read_file", '{"path": "a.txt"}'))
        server.reply_text("done")
        ...  # point something at server.base_url
    assert server.requests[0].body["model"] == "m"
"""

import contextlib
import enum
import json
import socket
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]
DONE = b"data: [DONE]\n\n"


class End(enum.Enum):
    """How an answer ends, once its pieces are sent."""

    COMPLETE = "complete"
    CUT = "cut"  # the connection breaks where more was announced
    HANG = "hang"  # nothing more comes, until the client leaves
    SILENT = "silent"  # not even the head of the answer comes, until the client leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One scripted answer. Each piece is a write of its own, and an HTTP chunk of its own."""

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "text/event-stream"
    end: End = End.COMPLETE


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """A request as it came; header names are lower case."""

    path: str
    headers: Mapping[str, str]
    body: Json


def event(payload: Json, line_end: str = "\n") -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(payload, ensure_ascii=False)}{line_end}{line_end}".encode()


def chunk(delta: Json | None = None, finish_reason: str | None = None, **more: Any) -> Json:
    """One chat completion chunk with one choice."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}


def usage_chunk(input_tokens: int, output_tokens: int) -> Json:
    """The chunk without choices that ends a stream with ``include_usage``."""
    usage = {"prompt_tokens": input_tokens, "completion_tokens": output_tokens}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage}


def tool_call(index: int, call_id: str, name: str, arguments: str) -> Json:
    """One entry of ``delta.tool_calls``."""
    return {
        "index": index,
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


class OpenAIServer:
    """Answers each request with the next scripted answer; without one it answers 400 and counts it as unexpected."""

    def __init__(self) -> None:
        self.requests: list[RecordedRequest] = []
        self.unexpected = 0
        self.connections = 0
        self.client_left = threading.Event()
        self._answers: deque[Answer] = deque()
        self._asked = threading.Condition()
        self._open: set[socket.socket] = set()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="openai-server")

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        for connection in tuple(self._open):
            _break(connection)
        self._server.server_close()

    # Scripting

    def reply(self, answer: Answer) -> None:
        """Queue any answer."""
        self._answers.append(answer)

    def reply_raw(self, *pieces: bytes, end: End = End.COMPLETE, content_type: str = "text/event-stream") -> None:
        """Queue bytes as they are."""
        self.reply(Answer(pieces=pieces, end=end, content_type=content_type))

    def reply_chunks(self, *payloads: Json, end: End = End.COMPLETE) -> None:
        """Queue a stream of chunks, with ``[DONE]`` behind them if the answer is complete."""
        pieces = tuple(map(event, payloads))
        self.reply(Answer(pieces=(*pieces, DONE) if end is End.COMPLETE else pieces, end=end))

    def reply_text(
        self, text: str, *, finish_reason: str = "stop", usage: tuple[int, int] = (10, 5), end: End = End.COMPLETE
    ) -> None:
        """Queue a text, streamed in words; unless ``end`` is COMPLETE, it stops behind the last word."""
        words = [chunk({"content": word}) for word in _words(text)]
        closing = [chunk(finish_reason=finish_reason), usage_chunk(*usage)] if end is End.COMPLETE else []
        self.reply_chunks(chunk({"role": "assistant", "content": ""}), *words, *closing, end=end)

    def reply_tool_calls(self, *calls: tuple[str, str, str], text: str = "", usage: tuple[int, int] = (10, 5)) -> None:
        """Queue calls, each given as id, name and the JSON text of its arguments, streamed as OpenAI does."""
        deltas: list[Json] = [{"content": word} for word in _words(text)]
        for index, (call_id, name, arguments) in enumerate(calls):
            deltas.append({"tool_calls": [tool_call(index, call_id, name, "")]})
            deltas += [
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in _halves(arguments)
            ]
        head = chunk({"role": "assistant", "content": None})
        self.reply_chunks(head, *map(chunk, deltas), chunk(finish_reason="tool_calls"), usage_chunk(*usage))

    def reply_error(
        self,
        status: int,
        message: str = "",
        *,
        code: str | None = None,
        kind: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Queue an error status with OpenAI's error body."""
        body = json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()
        self.reply(Answer(pieces=(body,), status=status, headers=headers or {}, content_type="application/json"))

    def assert_consumed(self) -> None:
        """Raise AssertionError unless every answer was asked for, and none beyond them."""
        if self._answers or self.unexpected:
            raise AssertionError(f"{len(self._answers)} answers left, {self.unexpected} requests too many")

    def forget(self) -> None:
        """Start anew: no answers are left, no requests have come."""
        self._answers.clear()
        self.requests.clear()
        self.unexpected = 0
        self.client_left.clear()

    def wait_for_requests(self, count: int, timeout: float = 10.0) -> None:
        """Block until so many requests have come. Raises AssertionError after ``timeout`` seconds."""
        with self._asked:
            if not self._asked.wait_for(lambda: len(self.requests) >= count, timeout):
                raise AssertionError(f"{len(self.requests)} requests came, {count} were awaited")

    def wait_for_client_to_leave(self, timeout: float = 10.0) -> None:
        """Block until a client has left an answer before its end. Raises AssertionError after ``timeout`` seconds."""
        if not self.client_left.wait(timeout):
            raise AssertionError("The client did not leave")

    # What the handlers use

    def take(self, request: RecordedRequest) -> Answer:
        with self._asked:
            self.requests.append(request)
            self._asked.notify_all()
        if self._answers:
            return self._answers.popleft()
        self.unexpected += 1
        body = b'{"error": {"message": "The test server has no scripted answer left"}}'
        return Answer(pieces=(body,), status=400, content_type="application/json")

    def opened(self, connection: socket.socket) -> None:
        self.connections += 1
        self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        self._open.discard(connection)


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, script: OpenAIServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves while it is written to is what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.script.opened(self.connection)

    def finish(self) -> None:
        self.server.script.closed(self.connection)
        super().finish()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = RecordedRequest(path=self.path, headers=headers, body=json.loads(body))
        answer = self.server.script.take(request)
        try:
            self._send(answer)
        except ConnectionError:
            self.server.script.client_left.set()
            self._break()

    def _send(self, answer: Answer) -> None:
        if answer.end is not End.SILENT:
            self._send_head(answer)
            for piece in filter(None, answer.pieces):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        match answer.end:
            case End.COMPLETE:
                self.wfile.write(b"0\r\n\r\n")
            case End.CUT:
                self._break()
            case End.HANG | End.SILENT:
                self.connection.recv(1)
                raise ConnectionError

    def _send_head(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in {"Content-Type": answer.content_type, **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _break(self) -> None:
        self.close_connection = True
        _break(self.connection)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def _break(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _words(text: str) -> Iterable[str]:
    return text.replace(" ", " \0").split("\0") if text else ()


def _halves(text: str) -> Iterable[str]:
    middle = len(text) // 2
    return filter(None, (text[:middle], text[middle:]))
