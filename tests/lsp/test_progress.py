"""A progress shows what a job does in whatever editor there is, and its cancel button reaches the job."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.lsp.example_server import example_server
from tests.lsp.harness import serving
from tests.support.jsonrpc_client import Client, ErrorReply, Message, NoReply

SHOWN = {"window": {"workDoneProgress": True}}


async def begin(client: Client, *reports: str) -> None:
    await client.request("workspace/executeCommand", {"command": "example.progress", "arguments": list(reports)})


def progress_of(client: Client) -> list[Any]:
    return [params["value"] for params in client.of_method("$/progress")]


@pytest.mark.requirement("F60")
async def test_progress_begins_reports_and_ends_when_the_user_cancels_it() -> None:
    server = example_server()
    async with serving(server) as client:
        client.handlers["window/workDoneProgress/create"] = lambda _: None
        await client.initialize(SHOWN)
        await begin(client, *(f"step {number}" for number in range(1000)))
        began = await client.wait_for_method("$/progress")
        await client.notify("window/workDoneProgress/cancel", {"token": began["params"]["token"]})
        await client.wait_for_method("example/ended")
        assert progress_of(client) == [
            {"kind": "begin", "title": "Working", "cancellable": True, "message": "over"},
            {"kind": "end", "message": "over"},
        ]
        assert server.protocol.progress_cancels == {}
        assert server.protocol._request_futures == {}


async def test_progress_begins_although_the_editor_never_answers_create() -> None:
    server = example_server()
    async with serving(server) as client:
        client.handlers["window/workDoneProgress/create"] = never
        await client.initialize(SHOWN)
        await begin(client)
        began = await client.wait_for_method("$/progress")
        assert client.of_method("$/cancelRequest") == []
        await client.notify("window/workDoneProgress/cancel", {"token": began["params"]["token"]})
        await client.wait_for_method("example/ended")
        assert server.protocol._request_futures == {}


async def test_progress_is_silent_where_the_editor_refuses_it() -> None:
    async with serving(example_server()) as client:
        client.handlers["window/workDoneProgress/create"] = refuse
        await client.initialize(SHOWN)
        await begin(client)
        created = await client.wait_for_method("window/workDoneProgress/create")
        await client.notify("window/workDoneProgress/cancel", {"token": created["params"]["token"]})
        await client.wait_for_method("example/ended")
        assert progress_of(client) == []


async def test_progress_is_spared_an_editor_that_does_not_announce_it() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        await begin(client, "step")
        assert await client.request("shutdown") is None
        await client.wait_for_method("example/ended")
        assert client.of_method("window/workDoneProgress/create") == []
        assert progress_of(client) == []


async def test_progress_with_the_clients_token_begins_at_once() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        client.handlers["example/next"] = never
        id_ = await client.ask("agent/steps", {"workDoneToken": "theirs", "steps": ["one", "two", "three"]})
        for step in ("one", "two", "three"):
            asked = await client.wait_for(is_next_after(step))
            await client.wait_for(is_shown(step))
            await client.send({"jsonrpc": "2.0", "id": asked["id"], "result": None})
        assert await client.answer(id_) is None
        assert {params["token"] for params in client.of_method("$/progress")} == {"theirs"}
        assert progress_of(client) == [
            {"kind": "begin", "title": "Stepping", "cancellable": True, "message": "one"},
            {"kind": "report", "cancellable": True, "message": "two"},
            {"kind": "report", "cancellable": True, "message": "three"},
            {"kind": "end", "message": "three"},
        ]
        assert client.of_method("window/workDoneProgress/create") == []


async def test_cancel_of_an_unknown_progress_is_ignored() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        await client.notify("window/workDoneProgress/cancel", {"token": "unknown"})
        assert await client.request("agent/echo", [1]) == [1]


def is_next_after(step: str) -> Callable[[Message], bool]:
    return lambda message: message.get("method") == "example/next" and message["params"] == {"after": step}


def is_shown(step: str) -> Callable[[Message], bool]:
    return lambda message: message.get("method") == "$/progress" and message["params"]["value"]["message"] == step


def never(_params: Any) -> Any:
    raise NoReply


def refuse(_params: Any) -> Any:
    raise ErrorReply(-32601, "no")
