"""Model servers that are slow, busy or shared, as an editor meets them."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.flows.test_language_server import command, editor
from tests.support.openai_server import (
    DONE,
    Answer,
    Json,
    OpenAIServer,
    RecordedRequest,
    chunk,
    event,
    tool_call,
    usage_chunk,
)

ACCEPT = {"permissions": {"mode": "accept_edits"}}


@pytest.mark.requirement("F54", "S4-progress", "S4-cancel")
async def test_a_wait_for_a_busy_server_is_shown_and_can_be_cancelled(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_error(429, "slow down", headers={"Retry-After": "50"})
    server.reply_text("now")

    def said(part: str) -> Callable[[dict[str, Any]], bool]:
        return lambda message: part in json.dumps(message)

    async with editor(tmp_path, server, events=True) as client:
        asked = await client.ask("agent/prompt", {"prompt": "hi", "workDoneToken": "t"})
        await client.wait_for(said("HTTP 429: slow down; trying again in 50 s"))
        with anyio.fail_after(20):
            cancelled = await command(client, "agent.cancel")
            await client.wait_for(lambda message: message.get("id") == asked and "method" not in message)
            again = await client.request("agent/prompt", {"prompt": "hi again"})
        retries = [m["event"] for m in client.of_method("agent/event") if m["event"]["type"] == "model_retry"]
    assert cancelled == {"cancelled": True}
    assert [(retry["attempt"], retry["delay"]) for retry in retries] == [(1, 50.0)]
    assert again["text"] == "now"
    assert len(server.requests) == 2


class EchoServer(OpenAIServer):
    """Writes a file with the prompt's own word, then says it. No first request is answered before all have come."""

    def __init__(self, sessions: int) -> None:
        super().__init__()
        self._all_here = threading.Barrier(sessions, timeout=60)

    def take(self, request: RecordedRequest) -> Answer:
        self.requests.append(request)
        messages = request.body["messages"]
        word = [message["content"] for message in messages if message["role"] == "user"][-1]
        if messages[-1]["role"] == "user":
            self._all_here.wait()
            arguments = json.dumps({"path": f"{word}.txt", "content": word})
            deltas: list[Json] = [{"tool_calls": [tool_call(0, "call_1", "write_file", arguments)]}]
        else:
            deltas = [{"content": f"{word} "} for _ in range(20)]
        chunks = (*map(chunk, deltas), chunk(finish_reason="stop"), usage_chunk(len(word), 1))
        return Answer(pieces=(*map(event, chunks), DONE))


@pytest.mark.requirement("S4-run", "S4-event")
async def test_sessions_that_run_at_once_do_not_mix(tmp_path: Path) -> None:
    names = ["alpha", "bravo", "charlie", "foxtrot"]
    with EchoServer(len(names)) as server:
        async with editor(tmp_path, server, events=True, settings=ACCEPT) as client:
            sessions = [(await command(client, "agent.session.new"))["sessionId"] for _ in names]
            results: dict[str, Any] = {}

            async def ask(session: str, word: str) -> None:
                results[word] = await client.request("agent/prompt", {"prompt": word, "sessionId": session}, 90)

            async with anyio.create_task_group() as group:
                for session, name in zip(sessions, names, strict=True):
                    group.start_soon(ask, session, name)
            events = client.of_method("agent/event")
    for session, name in zip(sessions, names, strict=True):
        result, own = results[name], [entry for entry in events if entry["sessionId"] == session]
        assert (result["sessionId"], result["text"]) == (session, f"{name} " * 20)
        assert result["changes"] == [f"{name}.txt"]
        assert result["usage"] == {"inputTokens": 2 * len(name), "outputTokens": 2}
        assert (tmp_path / "work" / f"{name}.txt").read_text() == name
        assert [entry["seq"] for entry in own] == list(range(1, len(own) + 1))
        assert not [
            entry for entry in own if any(other in json.dumps(entry["event"]) for other in names if other != name)
        ]
    for request in server.requests:
        said = [message["content"] for message in request.body["messages"] if message["role"] == "user"]
        assert len(said) == 1
