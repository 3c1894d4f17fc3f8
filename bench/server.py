"""The smallest server that speaks the model's wire format: one canned stream, and when each request arrived."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from bench.measure import clock


def _stream(tool: str | None) -> bytes:
    """One streamed answer: a word, or one call of a tool without arguments."""
    call = {"index": 0, "id": "call", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    delta = {"role": "assistant", "content": "ok"} if tool is None else {"role": "assistant", "tool_calls": [call]}
    choices = [
        {"index": 0, "delta": delta, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "stop" if tool is None else "tool_calls"},
    ]
    chunks = [
        {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [c]} for c in choices
    ]
    return b"".join(b"data: %b\n\n" % data for data in (*(json.dumps(c).encode() for c in chunks), b"[DONE]"))


class BenchServer:
    """A loopback server in a thread; ``arrivals`` and ``departures`` are clock times of requests and answers."""

    def __init__(self, *, tool: str | None = None) -> None:
        self.arrivals: list[float] = []
        self.departures: list[float] = []
        outer, stream = self, _stream(tool)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else the delayed acknowledgement of the body is what gets measured

            def do_POST(self) -> None:
                outer.arrivals.append(clock())
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(stream)))
                self.end_headers()
                self.wfile.write(stream)
                outer.departures.append(clock())

            def log_message(self, *_arguments: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
