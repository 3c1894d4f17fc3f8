"""One client served in this process: what it may do to the server, and what the server may not do to it."""

import gc
import json
import logging
import os
import socket
from typing import Any

import anyio
import pytest
from anyio import to_thread
from anyio.lowlevel import checkpoint
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from agent_lsp.lsp.server import AgentServer, _watch_client, serve
from tests.lsp.example_server import example_server
from tests.lsp.harness import serving
from tests.support.jsonrpc_client import ErrorReply, connect, frame

INITIALIZE = {"id": 0, "method": "initialize", "params": {"processId": None, "capabilities": {}}}


def message(body: dict[str, Any]) -> bytes:
    return frame(json.dumps({"jsonrpc": "2.0"} | body).encode())


@pytest.mark.requirement("F63")
async def test_client_that_does_not_read_is_still_heard_and_gets_every_answer() -> None:
    requests = [{"id": number, "method": "agent/echo", "params": ["x" * 100_000]} for number in range(1, 51)]
    ours, theirs = socket.socketpair()
    with theirs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, example_server(), theirs.fileno(), theirs.fileno())
            with anyio.fail_after(10):
                stream = b"".join(message(body) for body in [INITIALIZE, *requests])
                await to_thread.run_sync(ours.sendall, stream, abandon_on_cancel=True)
            async with connect(ours) as client:
                await client.answer(50)
                assert [reply["id"] for reply in client.received] == list(range(51))


@pytest.mark.requirement("F62")
async def test_server_ends_when_nobody_reads_its_output_any_more() -> None:
    request_end, client_end = os.pipe()
    gone, answer_end = os.pipe()
    os.close(gone)
    os.write(client_end, message(INITIALIZE))
    try:
        with anyio.fail_after(2):
            assert await serve(example_server(), request_end, answer_end) == 1
    finally:
        for descriptor in (request_end, client_end, answer_end):
            os.close(descriptor)


@pytest.mark.requirement("F62")
@pytest.mark.parametrize("process_id", [None, 0, -1, 2**22 + 1, 2**40])
async def test_server_does_not_watch_a_process_that_it_cannot_see(process_id: int | None) -> None:
    server = example_server()
    server.process_id = process_id
    server.begun.set()
    with anyio.fail_after(1):
        await _watch_client(server)
    assert not server.stopped.is_set()


async def test_first_reason_to_stop_gives_the_exit_code() -> None:
    server = AgentServer("example", "1")
    server.stop(143)
    server.stop(0)
    assert server.exit_code == 143


@pytest.mark.requirement("F34")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_document_is_mirrored_in_the_encoding_agreed_on(encoding: str) -> None:
    units = {"utf-8": 4, "utf-16": 2, "utf-32": 1}[encoding]
    uri = "file:///nowhere/a.py"
    place = {"line": 0, "character": units}
    changes = [
        {"range": {"start": place, "end": place}, "text": "b"},
        {"range": {"start": place, "end": place}, "text": "a"},
    ]
    async with serving(example_server()) as client:
        await client.initialize({"general": {"positionEncodings": [encoding]}})
        item = {"uri": uri, "languageId": "python", "version": 1, "text": "\U0001f600\n"}
        await client.notify("textDocument/didOpen", {"textDocument": item})
        await client.notify(
            "textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": changes}
        )
        expected = {"text": "\U0001f600ab\n", "version": 2, "unsaved": True, "typed": True}
        assert await client.request("agent/document", {"uri": uri}) == expected
        await client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        assert await client.request("agent/document", {"uri": uri}) == expected | {"unsaved": False, "typed": False}
        await client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert await client.request("agent/document", {"uri": uri}) is None


@pytest.mark.requirement("F34", "F63")
async def test_edit_with_numbers_beyond_the_protocols_bounds_is_not_lost() -> None:
    uri, version = "file:///nowhere/a.py", 1_700_000_000_000
    span = {"start": {"line": 0, "character": 1}, "end": {"line": 2**32 - 1, "character": 2**32 - 1}}
    edit = {"range": span, "rangeLength": -1, "text": "b"}
    async with serving(example_server()) as client:
        await client.initialize()
        item = {"uri": uri, "languageId": "python", "version": version, "text": "a\n\n"}
        await client.notify("textDocument/didOpen", {"textDocument": item})
        identifier = {"uri": uri, "version": version + 1}
        await client.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [edit]})
        expected = {"text": "ab", "version": version + 1, "unsaved": True, "typed": True}
        assert await client.request("agent/document", {"uri": uri}) == expected


async def test_document_is_not_mirrored_a_second_time_by_pygls() -> None:
    server = example_server()
    async with serving(server) as client:
        await client.initialize()
        item = {"uri": "untitled:a", "languageId": "x", "version": 1, "text": ""}
        await client.notify("textDocument/didOpen", {"textDocument": item})
        await client.request("agent/echo")
        assert server.workspace.text_documents == {}


@pytest.mark.parametrize(
    "method", ["textDocument/didOpen", "textDocument/didSave", "textDocument/didClose", "shutdown"]
)
async def test_feature_registered_for_a_builtin_method_is_called_after_it(method: str) -> None:
    server, called = example_server(), list[str]()

    async def record(_params: Any) -> None:
        await checkpoint()
        called.append(method)

    server.feature(method)(record)
    item = {"uri": "untitled:a", "languageId": "x", "version": 1, "text": ""}
    async with serving(server) as client:
        await client.initialize()
        if method == "shutdown":
            await client.request(method)
        else:
            await client.notify(method, {"textDocument": item})
            await client.request("agent/echo")
            await client.request("agent/echo")
    assert called == [method]


@pytest.mark.requirement("F76")
async def test_no_part_of_a_message_is_logged_above_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    secret = "sk-secret"
    async with serving(example_server()) as client:
        await client.initialize(initializationOptions={"apiKey": secret}, trace=secret)
        assert await client.request("agent/echo", [secret]) == [secret]
        call = {"command": "example.echo", "arguments": [secret]}
        assert await client.request("workspace/executeCommand", call) == [secret]
        await client.notify("$/setTrace", {"value": secret})
        await client.send_bytes(frame(secret.encode()))
        for method in ("agent/fail", "agent/nothing", "textDocument/hover"):
            with pytest.raises(ErrorReply):
                await client.request(method, {"how": "crash", "position": secret})
    assert "agent/fail failed" in caplog.text
    assert secret not in caplog.text


async def test_error_that_pygls_reports_is_logged_and_not_shown() -> None:
    server = example_server()
    async with serving(server) as client:
        await client.initialize()
        server._report_server_error(ValueError("no"), JsonRpcException)
        assert await client.request("agent/echo", [1]) == [1]
        assert len(client.received) == 2


def test_garbage_collection_that_was_off_for_the_start_is_on_again_after_initialize() -> None:
    gc.disable()
    try:
        example_server().begin(types.ServerCapabilities())
        assert gc.isenabled()
    finally:
        gc.unfreeze()
        gc.enable()


async def test_notification_without_json_form_fails_where_it_is_sent() -> None:
    server = example_server()
    async with serving(server) as client:
        await client.initialize()
        with pytest.raises(ValueError, match="JSON compliant"):
            server.protocol.notify("example/nan", [float("nan")])
        assert await client.request("agent/echo", [1]) == [1]
        assert client.of_method("example/nan") == []
