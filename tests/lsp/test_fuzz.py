"""The real server and a client that is wrong in every way: each request gets its one answer, and the server lives.

One process takes all examples. When it has, its output is judged as a whole: no answer too many, no pop-up, no
traceback, neither on the wire nor in the log.
"""

import copy
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_lsp.lsp.setup import make_server
from tests.flows.test_command_line import environment
from tests.flows.test_language_server import CAPABILITIES, COMMAND
from tests.lsp.harness import serving
from tests.lsp.test_rpc import EDITORS
from tests.support.jsonrpc_client import ErrorReply, ProcessClient, frame, spawn
from tests.support.openai_server import OpenAIServer

pytestmark = pytest.mark.requirement("F63")

Json: TypeAlias = Any

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
NOT_INITIALIZED, REQUEST_FAILED = -32002, -32803

URI = "file:///nowhere/a.txt"
RANGE = {"start": {"line": 0, "character": 1}, "end": {"line": 2, "character": 3}}
DOCUMENT = {"textDocument": {"uri": URI}}
PROMPT = {"prompt": "x", "context": [{"uri": URI, "range": RANGE}], "sessionId": None, "mode": None, "workDoneToken": 1}
DIAGNOSTIC = {"range": RANGE, "message": "m", "severity": 1, "source": "agent-lsp", "code": "validation", "data": {}}
WELL_FORMED: dict[str, Json] = {
    "initialize": {"processId": None, "rootUri": None, "capabilities": CAPABILITIES},
    "initialized": {},
    "textDocument/didOpen": {"textDocument": {"uri": URI, "languageId": "text", "version": 1, "text": "a\nb\n"}},
    "textDocument/didChange": {
        "textDocument": {"uri": URI, "version": 2},
        "contentChanges": [{"range": RANGE, "rangeLength": 3, "text": "c"}, {"text": "d"}],
    },
    "textDocument/didSave": {**DOCUMENT, "text": "d"},
    "textDocument/didClose": DOCUMENT,
    "textDocument/codeAction": {**DOCUMENT, "range": RANGE, "context": {"diagnostics": [DIAGNOSTIC], "only": ["x"]}},
    "codeAction/resolve": {"title": "t", "kind": "quickfix", "data": ["agent.run", [PROMPT]]},
    "textDocument/codeLens": DOCUMENT,
    "workspace/textDocumentContent": {"uri": "agent-lsp:/a.diff"},
    "workspace/didChangeConfiguration": {
        "settings": {
            "agentLsp": {
                "permissions": {"mode": "default", "deny": ["shell"], "approval_timeout": 1},
                "hooks": {"Stop": [{"type": "command", "command": "true", "timeout": 1}]},
                "validation": {"validators": [{"name": "a", "command": "true", "paths": ["*"]}]},
            }
        }
    },
    "workspace/didChangeWatchedFiles": {"changes": [{"uri": URI, "type": 1}]},
    "workspace/didChangeWorkspaceFolders": {
        "event": {"added": [{"uri": "file:///nowhere", "name": "n"}], "removed": [{"uri": "file:///b", "name": "b"}]}
    },
    "window/workDoneProgress/cancel": {"token": "unknown"},
    "$/setTrace": {"value": "off"},
    "$/cancelRequest": {"id": 99_999_999},
    "agent/prompt": PROMPT,
    "agent.run": PROMPT,
    "agent.cancel": {"sessionId": "s"},
    "agent.mode": {"mode": "default"},
    "agent.approvals.answer": {"id": "i", "decision": "deny", "scope": "once", "feedback": "f"},
    "agent.approvals.part": {"id": "i", "hunk": 0, "decision": "allow"},
    "agent.approvals.show": {"id": "i", "side": "before"},
    "agent.approvals.allow": {"id": "i"},
    "agent.approvals.deny": {"id": "i"},
    "agent.validate": {"sessionId": "s"},
    "agent.hooks.open": {"source": "/nowhere/settings.json", "line": 1, "column": 1},
    "agent.hooks.dismiss": {"uri": URI},
    "agent.trust": {"decision": "revoke"},
}
"""Parameters of methods, and argument objects of commands, to damage."""

_protocol = make_server().protocol
OPTIONS = {"events": True, "approvals": True, "documents": True, "settings": {"permissions": {"mode": "default"}}}
TOLD_BY_TURNS = ("Agent: ", "Settings: ", "Allow trust: ", "Validation was not run: ")
COMMANDS = sorted(_protocol.fm.commands)
METHODS = sorted({*_protocol.fm.builtin_features, *_protocol.fm.features, "$/cancelRequest"})
UNKNOWN = ["textDocument/rename", "agent/nothing", "$/nothing", "", "\ud800"]
HEADERS = [
    b"Content-Length: %d\r\n\r\n%b",
    b"content-length:%d\n\n%b",
    b"CONTENT-LENGTH \t: %d \r\nContent-Type: x\r\n\r\n%b",
    b"Content-Type: x\r\ncontent-length: %d\r\n\r\n%b",
]
ODD_BYTES = [b"NaN", b"-Infinity", b"1e999", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\0", b"[" * 5000]
ENDS = ("shutdown", "exit")

NUMBERS = st.sampled_from([0, 1, -1, 2**31 - 1, 2**32 - 1, -(2**31), 2**64, 10**400, 0.5, -1e308])
TEXTS = st.sampled_from(["", "a", "1", "\ud800", "\0", "😀\r\n", "file:", "file:///dev/zero", "x" * 999])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.builds(lambda: _nested(300)) | st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=3), v, max_size=3)
)


def _nested(depth: int) -> Json:
    value: Json = None
    for _ in range(depth):
        value = [{"": value}]
    return value


@st.composite
def damaged(draw: st.DrawFn, value: Json) -> Json:
    """A value of which up to three parts are missing or something else."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(0, 3))):
        value = _damage(draw, value)
    return value


def _damage(draw: st.DrawFn, value: Json) -> Json:
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    if not keys or draw(st.integers(0, 5)) == 0:
        return draw(VALUES)
    key = draw(st.sampled_from(keys))
    if draw(st.integers(0, 5)) == 0:
        del value[key]
    else:
        value[key] = _damage(draw, value[key])
    return value


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, Json]:
    """A method, known or not, and parameters for it."""
    method = draw(st.sampled_from([name for name in METHODS if name not in ENDS] + COMMANDS + UNKNOWN))
    params = draw(damaged(WELL_FORMED.get(method, {})))
    if method in COMMANDS:
        method, params = "workspace/executeCommand", {"command": method, "arguments": [params]}
    if method == "workspace/executeCommand":
        params = draw(damaged(params) if draw(st.booleans()) else st.just(params))
    return method, params


MESSAGES = VALUES | st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | st.just("2.0") | VALUES,
        "id": st.just("an id") | st.just("an id") | VALUES,
        "method": st.sampled_from(["agent.status", "$/setTrace", "agent/nothing"]) | VALUES,
        "params": st.just({}) | VALUES,
        "result": VALUES,
        "error": VALUES,
    },
)


def has_id(message: Json) -> bool:
    """Whether an answer to this message can name it."""
    return isinstance(message, dict) and type(message.get("id")) in (int, str)


def is_answer(message: Json) -> bool:
    """Whether a message answers, rightly or not, a question of the server, and so is never answered itself."""
    return "method" not in message and (has_id(message) or "result" in message or "error" in message)


def is_well_formed(message: Json) -> bool:
    """Whether a message is a request or a notification of JSON-RPC as LSP uses it."""
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
        and isinstance(message.get("params"), dict | list | None)
        and ("id" not in message or has_id(message))
    )


class Wire:
    """A server process, for tests that do not wait themselves."""

    def __init__(self, portal: BlockingPortal, client: ProcessClient) -> None:
        self._portal = portal
        self._ids = itertools.count(1000)
        self.client = client
        self.asked: Counter[int | str | None] = Counter()

    def send(self, data: bytes) -> None:
        self._portal.call(self.client.send_bytes, data)

    def next_id(self) -> int | str:
        """An id of its own, by turns of both types."""
        number = next(self._ids)
        return number if number % 2 else f"id {number}"

    def answer(self, id_: int | str) -> int:
        """The code of the answer, 0 for a result."""
        self.asked[id_] += 1
        try:
            self._portal.call(self.client.answer, id_)
        except ErrorReply as error:
            return error.code
        return 0

    def malformed(self, refusal: int = METHOD_NOT_FOUND) -> list[int]:
        """The codes of the answers to nobody since the last time; all there are, as the server has answered since."""
        assert self.call("agent/nothing", {}) == refusal
        codes = [m["error"]["code"] for m in self.client.received if "method" not in m and m["id"] is None]
        new = codes[self.asked[None] :]
        self.asked[None] = len(codes)
        return new

    def call(self, method: str, params: Json) -> int:
        id_ = self.next_id()
        self.send(encoded({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}))
        return self.answer(id_)


def encoded(message: Json) -> bytes:
    return frame(json.dumps(message).encode())


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A server that has been initialized; what it has said is judged at the end."""
    directory = tmp_path_factory.mktemp("fuzz")
    root = directory / "work"
    root.mkdir()
    log = directory / "log"
    command = [*COMMAND, "--log-level", "info", "--log-file", str(log)]
    with OpenAIServer() as model, start_blocking_portal() as portal, (directory / "stderr").open("wb") as stderr:
        server = spawn(command, cwd=root, env=environment(directory, model), stderr=stderr)
        with portal.wrap_async_context_manager(server) as client:
            portal.call(client.initialize, CAPABILITIES)
            wire = Wire(portal, client)
            yield wire
            assert wire.call("shutdown", None) == 0
            wire.send(encoded({"jsonrpc": "2.0", "method": "exit"}))
            assert portal.call(client.exit_code) == 0
    answers = Counter(message["id"] for message in client.received if "method" not in message)
    assert answers - wire.asked == {1: 1}  # that of initialize
    assert wire.asked - answers == {}
    said = json.dumps(client.received)
    assert "Traceback" not in said
    assert "Traceback" not in log.read_text(encoding="utf-8")
    assert (directory / "stderr").read_bytes() == b""
    told = [params["message"] for params in client.of_method("window/showMessage")]
    assert [message for message in told if not message.startswith(TOLD_BY_TURNS)] == []


def fuzz(examples: int) -> settings:
    return settings(max_examples=examples, derandomize=True, deadline=None)


@fuzz(600)
@given(call=calls(), asks=st.booleans())
def test_call_with_any_params_is_answered_or_ignored(wire: Wire, call: tuple[str, Json], asks: bool) -> None:
    method, params = call
    well_formed = isinstance(params, dict | list | None)
    if not asks:
        wire.send(encoded({"jsonrpc": "2.0", "method": method, "params": params}))
        assert wire.malformed() == ([] if well_formed else [INVALID_REQUEST])
        return
    code = wire.call(method, params)
    if not well_formed or method == "initialize":
        assert code == INVALID_REQUEST
    elif method in (*UNKNOWN, "$/cancelRequest"):  # which is a notification alone
        assert code == METHOD_NOT_FOUND
    else:
        assert code in (0, INVALID_PARAMS, REQUEST_FAILED)


@fuzz(400)
@given(message=MESSAGES)
def test_message_of_any_shape_is_answered_as_json_rpc_says(wire: Wire, message: Json) -> None:
    if has_id(message):
        message["id"] = wire.next_id()
    wire.send(encoded(message))
    new = wire.malformed()
    if isinstance(message, dict) and is_answer(message):
        assert new == []
    elif has_id(message):
        assert (new, wire.answer(message["id"]) == INVALID_REQUEST) == ([], not is_well_formed(message))
    else:
        assert new == ([] if is_well_formed(message) else [INVALID_REQUEST])


@pytest.mark.parametrize("id_", ["", "1001", "\ud800", "\0", 0, -1, 2**53 + 1, 10**400])
def test_id_of_any_value_comes_back(wire: Wire, id_: int | str) -> None:
    wire.send(encoded({"jsonrpc": "2.0", "id": id_, "method": "agent/nothing"}))
    assert wire.answer(id_) == METHOD_NOT_FOUND


def test_text_of_any_kind_can_be_logged(wire: Wire) -> None:
    lone_surrogate = {"textDocument": {"uri": "\ud800", "version": 2}, "contentChanges": []}
    wire.send(encoded({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": lone_surrogate}))
    assert wire.malformed() == []


@fuzz(200)
@given(place=st.integers(0, 80), length=st.integers(0, 5), junk=st.binary(max_size=5) | st.sampled_from(ODD_BYTES))
def test_content_that_is_not_json_is_a_parse_error(wire: Wire, place: int, length: int, junk: bytes) -> None:
    body = '{"jsonrpc": "2.0", "method": "$/nothing", "params": [1.5, null, "é😀\\n", {}]}'.encode()
    body = body[:place] + junk + body[place + length :]
    try:
        message = json.loads(
            body.decode(), parse_constant=int, parse_float=lambda digits: 1 // math.isfinite(float(digits))
        )
    except (ValueError, ZeroDivisionError, RecursionError):
        expected = [PARSE_ERROR]
    else:
        expected = [] if is_well_formed(message) or is_answer(message) else [INVALID_REQUEST]
    wire.send(frame(body))
    assert wire.malformed() == expected


@st.composite
def streams(draw: st.DrawFn) -> list[bytes | None]:
    """Pieces of a damaged stream; each None stands for a frame that must be answered."""
    body = encoded({"jsonrpc": "2.0", "method": "$/nothing", "params": ["x" * draw(st.integers(0, 400))]})
    header, _, content = body.partition(b"\r\n\r\n")
    too_short = st.integers(0, len(content) - 1)
    too_long = st.integers(len(content) + 1, 999) | st.integers(999, 10**7) | st.just(10**12)
    wrong = st.builds(lambda length: b"Content-Length: %d\r\n\r\n%b" % (length, content), too_short | too_long)
    garbage = st.binary(max_size=30) | st.sampled_from(
        [header, header + b"\r\n", header + b"\r\n\r\n", content, b"\0" * 9999]
    )
    return draw(st.lists(st.none() | wrong | garbage, max_size=8))


@fuzz(200)
@given(pieces=streams(), style=st.sampled_from(HEADERS), cut=st.integers(1, 500))
def test_frame_is_answered_whatever_came_before_it(
    wire: Wire, pieces: list[bytes | None], style: bytes, cut: int
) -> None:
    ids = [wire.next_id() for _ in pieces]
    bodies = [json.dumps({"jsonrpc": "2.0", "id": id_, "method": "agent/nothing"}).encode() for id_ in ids]
    wanted = [id_ for id_, piece in zip(ids, pieces, strict=True) if piece is None]
    stream = b"".join(
        piece or style % (len(body), body) if piece is None else piece
        for piece, body in zip(pieces, bodies, strict=True)
    )
    wire.send(stream[:cut])
    wire.send(stream[cut:])
    assert [wire.answer(id_) for id_ in wanted] == [METHOD_NOT_FOUND] * len(wanted)
    assert set(wire.malformed()) <= {PARSE_ERROR, INVALID_REQUEST}


def test_what_does_not_fit_the_stage_of_life_is_refused(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with start_blocking_portal() as portal:
        server = spawn(COMMAND, cwd=tmp_path / "work", env=environment(tmp_path))
        with portal.wrap_async_context_manager(server) as client:
            wire = Wire(portal, client)
            refuses_everything(wire, NOT_INITIALIZED, admitted=("initialize", "exit"))
            assert wire.call("initialize", WELL_FORMED["initialize"]) == 0
            assert wire.call("shutdown", None) == 0
            refuses_everything(wire, INVALID_REQUEST, admitted=("exit",))
            wire.send(encoded({"jsonrpc": "2.0", "method": "exit"}))
            assert portal.call(client.exit_code) == 0
    assert {message.get("method") for message in client.received} == {None}


def refuses_everything(wire: Wire, code: int, admitted: tuple[str, ...]) -> None:
    """Send every method as a request and as a notification, and what is no message."""
    for method in METHODS + UNKNOWN:
        shapes: list[Json] = [None, [], WELL_FORMED.get(method, {})]
        for params in shapes:
            if method not in admitted:
                assert wire.call(method, params) == code
            if method != "exit":
                wire.send(encoded({"jsonrpc": "2.0", "method": method, "params": params}))
    wire.send(frame(b"{") + encoded([]) + encoded({"jsonrpc": "2.0", "id": 1, "result": None}))
    assert wire.malformed(code) == [PARSE_ERROR, INVALID_REQUEST]


@fuzz(60)
@given(params=damaged({**EDITORS["nvim-0.11"], "initializationOptions": OPTIONS}))
async def test_initialize_with_any_params_is_answered(params: Json) -> None:
    async with serving(make_server()) as client:
        id_ = await client.ask("initialize", params)
        if isinstance(params, dict):
            assert (await client.answer(id_))["serverInfo"]["name"] == "agent-lsp"
        else:
            with pytest.raises(ErrorReply) as reply:
                await client.answer(id_)
            assert reply.value.code == (INVALID_PARAMS if isinstance(params, list | None) else INVALID_REQUEST)
