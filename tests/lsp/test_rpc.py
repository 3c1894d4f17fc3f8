"""Every request gets one answer, the one that the protocol wants, and the user sees nothing of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from tests.lsp.example_server import example_server
from tests.lsp.harness import serving
from tests.support.jsonrpc_client import Client, ErrorReply, NoReply, frame

EDITORS = {
    path.name.removesuffix(".initialize.json"): json.loads(path.read_text())
    for path in sorted(Path(__file__).parent.glob("fixtures/editors/*.json"))
}


async def assert_alive(client: Client) -> None:
    assert await client.request("agent/echo", {"alive": True}) == {"alive": True}
    assert client.of_method("window/showMessage") == []


@pytest.mark.requirement("F63")
@pytest.mark.parametrize(
    ("body", "code", "id_"),
    [
        pytest.param(b"{", -32700, None, id="malformed"),
        pytest.param(b"", -32700, None, id="empty"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 7, "method": "\xff"}', -32700, None, id="not UTF-8"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 7, "method": "agent/echo", "params": [NaN]}', -32700, None, id="NaN"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 7, "method": "agent/echo", "params": [1e999]}', -32700, None, id="inf"),
        pytest.param(b"[" * 100_000, -32700, None, id="deep"),
        pytest.param(b"[]", -32600, None, id="batch"),
        pytest.param(b"3", -32600, None, id="number"),
        pytest.param(b'{"jsonrpc": "2.0", "id": null, "method": "agent/echo"}', -32600, None, id="null id"),
        pytest.param(b'{"jsonrpc": "2.0", "id": true, "method": "agent/echo"}', -32600, None, id="boolean id"),
        pytest.param(b'{"jsonrpc": "2.0", "id": [7], "method": "agent/echo"}', -32600, None, id="array id"),
        pytest.param(b'{"id": 7, "method": "agent/echo"}', -32600, 7, id="no version"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 7, "method": 3}', -32600, 7, id="method of wrong type"),
        pytest.param(
            b'{"jsonrpc": "2.0", "id": 7, "method": "agent/echo", "params": 3}', -32600, 7, id="scalar params"
        ),
        pytest.param(b'{"jsonrpc": "2.0"}', -32600, None, id="neither request nor answer"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover"}', -32602, 7, id="missing params"),
        pytest.param(
            b'{"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover", "params": {"position": 3}}',
            -32602,
            7,
            id="invalid params",
        ),
        pytest.param(b'{"jsonrpc": "2.0", "id": 7, "method": "workspace/executeCommand"}', -32602, 7, id="no command"),
        pytest.param(
            b'{"jsonrpc": "2.0", "id": 7, "method": "workspace/executeCommand", "params": {"command": "no"}}',
            -32602,
            7,
            id="unknown command",
        ),
        pytest.param(
            b'{"jsonrpc": "2.0", "id": 7, "method": "workspace/executeCommand",'
            b'"params": {"command": "example.echo", "arguments": {"a": 1}}}',
            -32602,
            7,
            id="arguments not an array",
        ),
        pytest.param(b'{"jsonrpc": "2.0", "id": 7, "method": "agent/nothing"}', -32601, 7, id="unknown custom"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 7, "method": "$/nothing"}', -32601, 7, id="unknown optional"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 7, "method": "textDocument/rename"}', -32601, 7, id="unregistered"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {}}', -32600, 7, id="initialize"),
    ],
)
async def test_wrong_message_is_answered_once(body: bytes, code: int, id_: int | None) -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        await client.send_bytes(frame(body))
        with pytest.raises(ErrorReply) as reply:
            await client.answer(id_)
        assert reply.value.code == code
        await assert_alive(client)
        assert [message.get("id") for message in client.received].count(id_) == 1


@pytest.mark.requirement("F63")
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("crash", (-32603, "Internal error in agent/fail; the server's log has the details", None)),
        ("group", (-32602, "inside a group", None)),
        ("domain", (-32803, "The model does not answer. Check the URL.", None)),
    ],
)
async def test_failing_handler_is_answered_without_traceback(how: str, expected: tuple[int, str, Any]) -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        with pytest.raises(ErrorReply) as reply:
            await client.request("agent/fail", {"how": how})
        assert (reply.value.code, reply.value.message, reply.value.data) == expected
        await assert_alive(client)


@pytest.mark.requirement("F63")
@pytest.mark.parametrize("what", ["nan", "object"])
async def test_result_without_json_form_is_an_error(what: str) -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        with pytest.raises(ErrorReply) as reply:
            await client.request("agent/unserialisable", {"what": what})
        assert reply.value.code == -32603
        await assert_alive(client)


@pytest.mark.requirement("F63")
async def test_unknown_notifications_are_ignored() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        for method in ("$/nothing", "agent/nothing", "textDocument/didRename"):
            await client.notify(method, {"a": 1})
        await client.notify("textDocument/didOpen", {"textDocument": 3})
        await client.notify("$/cancelRequest", {"id": 99})
        await client.notify("$/cancelRequest", {"id": [99]})
        await client.notify("window/workDoneProgress/cancel", {"token": [99]})
        await client.notify("$/cancelRequest")
        await assert_alive(client)
        assert len(client.received) == 2


@pytest.mark.requirement("F63")
@pytest.mark.parametrize("method", ["initialize", "shutdown", "workspace/executeCommand", "textDocument/hover"])
async def test_request_without_an_id_is_ignored(method: str) -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        await client.notify(method, {"command": "example.wait"})
        await assert_alive(client)
        assert client.of_method("example/waiting") == []


@pytest.mark.requirement("F63")
@pytest.mark.parametrize("how", ["crash", "group", "domain"])
async def test_failing_notification_is_logged_only(how: str, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        await client.notify("agent/fail", {"how": how})
        await assert_alive(client)
        assert len(client.received) == 2
    logged = [(record.levelname, record.exc_info is not None) for record in caplog.records]
    assert logged == [("ERROR", True) if how == "crash" else ("WARNING", False)]


@pytest.mark.requirement("F63")
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}}, id="unread question"),
        pytest.param({"jsonrpc": "2.0", "error": {}}, id="no id"),
        pytest.param({"jsonrpc": "2.0", "id": [1], "result": 1}, id="odd id"),
        pytest.param({"jsonrpc": "2.0", "id": 99, "result": 1}, id="never asked"),
        pytest.param({"id": 99, "result": 1}, id="no version"),
    ],
)
async def test_answer_is_never_answered(answer: dict[str, Any]) -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        await client.send(answer)
        await assert_alive(client)
        assert len(client.received) == 2


@pytest.mark.requirement("F63")
async def test_requests_before_initialize_are_refused() -> None:
    async with serving(example_server()) as client:
        for method in ("agent/echo", "workspace/executeCommand", "shutdown"):
            with pytest.raises(ErrorReply) as reply:
                await client.request(method, {})
            assert reply.value.code == -32002
        await client.initialize()
        await assert_alive(client)


@pytest.mark.requirement("F63")
async def test_requests_after_shutdown_are_refused() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        assert await client.request("shutdown") is None
        for method in ("agent/echo", "shutdown", "initialize"):
            with pytest.raises(ErrorReply) as reply:
                await client.request(method, {})
            assert reply.value.code == -32600


@pytest.mark.requirement("F63")
async def test_messages_sent_with_initialize_are_handled_after_it() -> None:
    async def take_a_while(_params: Any) -> None:
        for _ in range(10):
            await checkpoint()

    server = example_server()
    server.feature("initialize")(take_a_while)
    async with serving(server) as client:
        messages: list[dict[str, Any]] = [
            {"id": 1, "method": "initialize", "params": {"processId": None, "capabilities": {}}},
            {"method": "initialized", "params": {}},
            {"id": 2, "method": "agent/echo", "params": [1]},
        ]
        await client.send_bytes(b"".join(frame(json.dumps({"jsonrpc": "2.0"} | m).encode()) for m in messages))
        assert await client.answer(2) == [1]
        assert [message["id"] for message in client.received] == [1, 2]


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"jsonrpc": "2.0", "id": 1, "method": "exit"}, id="looks like a message"),
        pytest.param({"type_name": "T", "class": 1, "a-b": {"_x": [1, 2.5, None, "é", True]}}, id="odd keys"),
        pytest.param([1, {"a": None}], id="array"),
        pytest.param({"lone surrogate": "\ud800"}, id="lone surrogate"),
        pytest.param(None, id="none"),
    ],
)
async def test_custom_params_and_command_arguments_arrive_as_they_were_sent(params: Any) -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        assert await client.request("agent/echo", params) == params
        call = {"command": "example.echo", "arguments": [params, 1]}
        assert await client.request("workspace/executeCommand", call) == [params, 1]


async def test_request_without_params_member_is_answered() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        await client.send({"jsonrpc": "2.0", "id": "a", "method": "agent/echo"})
        assert await client.answer("a") is None


async def test_typed_request_gets_typed_params_and_its_result_leaves_out_none() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        params = {"textDocument": {"uri": "file:///a"}, "position": {"line": 3, "character": 4}}
        assert await client.request("textDocument/hover", params) == {"contents": "3:4"}


@pytest.mark.requirement("F60")
@pytest.mark.parametrize(
    ("method", "params"),
    [("agent/wait", {}), ("workspace/executeCommand", {"command": "example.wait", "arguments": []})],
)
async def test_cancelled_request_ends_its_handler(method: str, params: Any) -> None:
    server = example_server()
    async with serving(server) as client:
        await client.initialize()
        id_ = await client.ask(method, params)
        await client.wait_for_method("example/waiting")
        await client.notify("$/cancelRequest", {"id": id_})
        with pytest.raises(ErrorReply) as reply:
            await client.answer(id_)
        assert reply.value.code == -32800
        await client.wait_for_method("example/cancelled")
        await assert_alive(client)


@pytest.mark.requirement("F63")
async def test_cancel_of_true_is_no_cancel_of_one() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        await client.send({"jsonrpc": "2.0", "id": 1, "method": "agent/wait"})
        await client.wait_for_method("example/waiting")
        await client.notify("$/cancelRequest", {"id": True})
        await assert_alive(client)
        assert client.of_method("example/cancelled") == []


@pytest.mark.requirement("F63")
async def test_second_request_with_an_id_in_use_is_refused() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        id_ = await client.ask("agent/wait")
        await client.wait_for_method("example/waiting")
        await client.send({"jsonrpc": "2.0", "id": id_, "method": "agent/echo"})
        with pytest.raises(ErrorReply) as reply:
            await client.answer(id_)
        assert reply.value.code == -32600
        assert client.of_method("example/cancelled") == []


@pytest.mark.requirement("F60")
async def test_shutdown_cancels_work_in_flight_and_answers_null() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        waiting = [
            await client.ask("agent/wait"),
            await client.ask("workspace/executeCommand", {"command": "example.wait"}),
        ]
        await client.wait_for(lambda _: len(client.of_method("example/waiting")) == 2)
        assert await client.request("shutdown") is None
        for id_ in waiting:
            with pytest.raises(ErrorReply) as reply:
                await client.answer(id_)
            assert reply.value.code == -32800


async def test_failing_job_leaves_the_server_running() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        assert await client.request("workspace/executeCommand", {"command": "example.crash"}) is None
        await assert_alive(client)


@pytest.mark.parametrize("params", EDITORS.values(), ids=EDITORS.keys())
async def test_initialize_of_real_editors_is_answered(params: dict[str, Any]) -> None:
    async with serving(example_server()) as client:
        result = await client.request("initialize", params)
        offered = params["capabilities"].get("general", {}).get("positionEncodings", ["utf-16"])
        assert result["serverInfo"] == {"name": "example", "version": "1"}
        assert result["capabilities"]["positionEncoding"] == offered[0]
        sync = result["capabilities"]["textDocumentSync"]
        assert (sync["openClose"], sync["change"], sync["save"]) == (True, 2, True)


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"capabilities": {}, "processId": "abc"}, id="process id"),
        pytest.param({"capabilities": "junk"}, id="capabilities"),
        pytest.param({"capabilities": {"textDocument": 7}}, id="number for an object"),
        pytest.param({"capabilities": {"general": {"positionEncodings": ["utf-7", 3]}}}, id="encodings"),
        pytest.param(
            {"capabilities": {"workspace": {"symbol": {"symbolKind": {"valueSet": [1, 27, "x", 2]}}}}}, id="kind"
        ),
        pytest.param(
            {"capabilities": {"workspace": {"workspaceEdit": {"resourceOperations": ["create", "zap"]}}}},
            id="operation",
        ),
        pytest.param(
            {
                "capabilities": {
                    "textDocument": {
                        "completion": {
                            "completionItem": {"tagSupport": {"valueSet": [1, 2]}, "documentationFormat": ["x"]}
                        },
                        "publishDiagnostics": {"tagSupport": {"valueSet": [1, 2, 3]}},
                    }
                }
            },
            id="tags and markup",
        ),
        pytest.param({"clientInfo": {"version": "1"}, "capabilities": {}}, id="client without name"),
        pytest.param({"trace": "loud", "capabilities": {}}, id="trace"),
        pytest.param({"rootUri": "file://[bad", "capabilities": {}}, id="root"),
        pytest.param(
            {"rootUri": 3, "rootPath": 4, "workspaceFolders": [{"uri": "file:///a"}], "capabilities": {}}, id="folders"
        ),
    ],
)
async def test_initialize_is_answered_whatever_is_announced(params: dict[str, Any]) -> None:
    async with serving(example_server()) as client:
        result = await client.request("initialize", params)
        assert result["capabilities"]["positionEncoding"] == "utf-16"


async def test_initialize_keeps_the_capabilities_that_fit() -> None:
    server = example_server()
    async with serving(server) as client:
        await client.initialize(
            {
                "window": {"workDoneProgress": True, "showDocument": {"support": "yes"}},
                "workspace": {
                    "applyEdit": True,
                    "symbol": {"symbolKind": {"valueSet": [1, 27, 2]}},
                    "workspaceEdit": 3,
                },
            }
        )
        announced = server.client_capabilities
        assert announced.window is not None
        assert announced.window.work_done_progress is True
        assert announced.workspace is not None
        assert announced.workspace.apply_edit is True
        assert announced.workspace.workspace_edit is None
        assert announced.workspace.symbol is not None
        assert announced.workspace.symbol.symbol_kind is not None
        assert announced.workspace.symbol.symbol_kind.value_set == (1, 2)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({"title": "Yes"}, "Yes", id="an action"),
        pytest.param(None, None, id="dismissed"),
    ],
)
async def test_question_gets_the_clients_answer(answer: Any, expected: Any) -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        client.handlers["window/showMessageRequest"] = lambda _: answer
        assert await client.request("agent/confirm", {"seconds": 10}) == expected


@pytest.mark.requirement("F63")
@pytest.mark.parametrize("answer", ["text", 3, [1], {"no title": 1}])
async def test_answer_of_wrong_shape_fails_the_question(answer: Any) -> None:
    server = example_server()
    async with serving(server) as client:
        await client.initialize()
        client.handlers["window/showMessageRequest"] = lambda _: answer
        with pytest.raises(ErrorReply) as reply:
            await client.request("agent/confirm", {"seconds": 10})
        assert reply.value.code == -32603
        assert "wrong shape" in reply.value.message
        await assert_alive(client)


@pytest.mark.parametrize("error_body", [{"code": -32601, "message": "no"}, {"code": "x"}, "no", 3])
async def test_refused_question_fails(error_body: Any) -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        client.handlers["window/showMessageRequest"] = never
        id_ = await client.ask("agent/confirm", {"seconds": 10})
        question = await client.wait_for_method("window/showMessageRequest")
        await client.send({"jsonrpc": "2.0", "id": question["id"], "error": error_body})
        with pytest.raises(ErrorReply):
            await client.answer(id_)
        await assert_alive(client)


async def test_question_that_timed_out_is_withdrawn_and_its_late_answer_ignored() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        client.handlers["window/showMessageRequest"] = never
        assert await client.request("agent/confirm", {"seconds": 0.01}) == "silence"
        question = await client.wait_for_method("window/showMessageRequest")
        withdrawal = await client.wait_for_method("$/cancelRequest")
        assert withdrawal["params"] == {"id": question["id"]}
        await client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"title": "Yes"}})
        await assert_alive(client)


async def test_cancelled_request_withdraws_its_question() -> None:
    async with serving(example_server()) as client:
        await client.initialize()
        client.handlers["window/showMessageRequest"] = never
        id_ = await client.ask("agent/confirm", {"seconds": 10})
        question = await client.wait_for_method("window/showMessageRequest")
        await client.notify("$/cancelRequest", {"id": id_})
        assert (await client.wait_for_method("$/cancelRequest"))["params"] == {"id": question["id"]}
        with pytest.raises(ErrorReply) as reply:
            await client.answer(id_)
        assert reply.value.code == -32800


async def test_nothing_is_kept_of_messages_that_are_done_with() -> None:
    server = example_server()
    async with serving(server) as client:
        await client.initialize({"window": {"workDoneProgress": True}})
        client.handlers["window/showMessageRequest"] = lambda _: None
        for number in range(20):
            await client.notify("$/setTrace", {"value": "off"})
            await client.request("workspace/executeCommand", {"command": "example.echo", "arguments": [number]})
            await client.request("agent/confirm", {"seconds": 10})
        await assert_alive(client)
        protocol = server.protocol
        kept = (protocol._request_futures, protocol._result_types, protocol._answering, protocol.progress.tokens)
        assert [len(table) for table in kept] == [0, 0, 0, 0]


def never(_params: Any) -> Any:
    raise NoReply
