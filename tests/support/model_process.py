"""The scripted model server as a process of its own, for tests in other languages: JSON lines in, JSON lines out.

The first line out is ``{"base_url": …}``. Each line in is ``{"do": NAME, …}`` with the arguments of the method below
that has the name, and is answered in order by ``{"result": …}`` or ``{"error": TEXT}``. It ends with its input::

    python -m tests.support.model_process
"""

import itertools
import json
import sys
from collections.abc import Callable
from typing import Any

from tests.support.openai_server import End, OpenAIServer

_numbers = itertools.count(1)


def text(server: OpenAIServer, *, text: str, end: str = "complete") -> None:
    """Queue a text."""
    server.reply_text(text, end=End(end))


def calls(server: OpenAIServer, *, calls: list[dict[str, Any]], text: str = "") -> None:
    """Queue calls of tools, each ``{"name": …, "arguments": {…}}``."""
    numbered = [(f"call_{next(_numbers)}", call["name"], json.dumps(call["arguments"])) for call in calls]
    server.reply_tool_calls(*numbered, text=text)


def error(server: OpenAIServer, *, status: int, message: str = "") -> None:
    """Queue an error status."""
    server.reply_error(status, message)


def requests(server: OpenAIServer) -> list[Any]:
    """The bodies of the requests that have come."""
    return [request.body for request in server.requests]


def consumed(server: OpenAIServer) -> None:
    """An error unless every answer was asked for, and none beyond them."""
    server.assert_consumed()


def left(server: OpenAIServer) -> bool:
    """Whether a client has left an answer before its end."""
    return server.client_left.is_set()


def forget(server: OpenAIServer) -> None:
    """Start anew."""
    server.forget()


VERBS: dict[str, Callable[..., Any]] = {
    verb.__name__: verb for verb in (text, calls, error, requests, consumed, left, forget)
}


def main() -> None:
    with OpenAIServer() as server:
        print(json.dumps({"base_url": server.base_url}), flush=True)
        for line in sys.stdin:
            order = json.loads(line)
            try:
                answer = {"result": VERBS[order.pop("do")](server, **order)}
            except Exception as problem:  # whatever it is, whoever asked has to hear it
                answer = {"error": f"{type(problem).__name__}: {problem}"}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
