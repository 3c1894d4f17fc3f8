"""The model behind a real local server."""

import contextlib
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any

import anyio
import anyio.to_thread
import pytest

from agent_lsp.errors import ContextOverflow, ModelError
from agent_lsp.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, Transcript, Usage, UserMessage
from agent_lsp.models.base import ModelEvent, ModelRequest, Reply, RetryWait, TextChunk
from agent_lsp.models.openai_chat import OpenAIChatModel
from agent_lsp.models.settings import Backoff, OpenAIChatSettings
from tests.support.openai_server import DONE, Answer, End, OpenAIServer, chunk, event

KEY = "key-that-is-secret"
HELLO = Reply(
    message=AssistantMessage(content="Hello you"),
    finish_reason="stop",
    usage=Usage(input_tokens=10, output_tokens=5),
)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server
    server.assert_consumed()


@contextlib.asynccontextmanager
async def model_at(base_url: str, **changes: Any) -> AsyncIterator[OpenAIChatModel]:
    settings = OpenAIChatSettings(name="m", base_url=base_url, api_key=KEY, backoff=Backoff(base=0.001, cap=30.0))
    async with contextlib.aclosing(OpenAIChatModel(replace(settings, **changes))) as model:
        yield model


async def ask(model: OpenAIChatModel, *messages: ChatMessage) -> list[ModelEvent]:
    request = ModelRequest(system="Be good.", messages=Transcript(messages or [UserMessage(content="Hi")]))
    return [event async for event in model.stream(request)]


async def ask_in_vain(model: OpenAIChatModel) -> tuple[list[ModelEvent], str]:
    """What came before the ModelError, and its text."""
    events: list[ModelEvent] = []
    stream = model.stream(ModelRequest(system="", messages=[]))
    try:
        while True:
            events.append(await anext(stream))
    except ModelError as error:
        return events, str(error)


async def test_model_streams_a_text(server: OpenAIServer) -> None:
    server.reply_text("Hello you")
    async with model_at(server.base_url) as model:
        assert await ask(model) == [TextChunk(text="Hello "), TextChunk(text="you"), HELLO]
    [request] = server.requests
    assert (request.path, request.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert request.headers["content-type"] == "application/json"
    assert request.body == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "Be good."}, {"role": "user", "content": "Hi"}],
    }


@pytest.mark.requirement("F50")
async def test_model_echoes_calls_and_results_under_the_ids_of_the_server(server: OpenAIServer) -> None:
    server.reply_tool_calls(("x", "read", '{"path": "a"}'), ("y", "list", ""), text="Reading")
    server.reply_text("Hello you")
    async with model_at(server.base_url) as model:
        reply = (await ask(model))[-1]
        assert reply == Reply(
            message=AssistantMessage(
                content="Reading",
                tool_calls=(
                    ToolCall(id="x", name="read", arguments='{"path": "a"}'),
                    ToolCall(id="y", name="list", arguments="{}"),
                ),
            ),
            finish_reason="tool_calls",
            usage=Usage(input_tokens=10, output_tokens=5),
        )
        results = (ToolMessage(tool_call_id="x", content="1"), ToolMessage(tool_call_id="y", content="2"))
        await ask(model, UserMessage(content="Hi"), reply.message, *results)
    assistant, *tools = server.requests[1].body["messages"][2:]
    assert [call["id"] for call in assistant["tool_calls"]] == ["x", "y"]
    assert [message["tool_call_id"] for message in tools] == ["x", "y"]


async def test_model_uses_one_connection_for_all_requests(server: OpenAIServer) -> None:
    async with model_at(server.base_url) as model:
        for _ in range(3):
            server.reply_text("Hello you")
            await ask(model)
    assert server.connections == 1


@pytest.mark.requirement("F54")
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
async def test_model_reads_a_stream_that_comes_byte_by_byte(server: OpenAIServer, line_end: str) -> None:
    text = f": hi{line_end}{line_end}".encode() + event(chunk({"content": "schön 🙂"}, "stop"), line_end) + DONE
    server.reply_raw(*(bytes([byte]) for byte in text))
    async with model_at(server.base_url) as model:
        message = AssistantMessage(content="schön 🙂")
        assert await ask(model) == [TextChunk(text="schön 🙂"), Reply(message=message, finish_reason="stop")]


@pytest.mark.requirement("F54")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(Answer(end=End.CUT), "the answer broke off: ", id="connection cut before anything"),
        pytest.param(
            Answer(pieces=(event(chunk({"content": "Hel"})),), end=End.CUT), "the answer broke off: ", id="cut"
        ),
        pytest.param(Answer(pieces=(event(chunk({"content": "Hel"})),)), "the answer ended in the middle", id="ended"),
        pytest.param(Answer(), "the answer ended in the middle", id="empty"),
        pytest.param(
            Answer(pieces=(b'data: {"error": {"message": "busy", "type": "server_error"}}\n\n',)), "busy", id="error"
        ),
        pytest.param(
            Answer(status=500, content_type="text/html", pieces=(b"<html>",)),
            "HTTP 500: Internal Server Error",
            id="500 with a page",
        ),
        pytest.param(
            Answer(status=503, content_type="text/plain", pieces=(b"busy",)), "HTTP 503: busy", id="503 with a text"
        ),
        pytest.param(Answer(status=503, pieces=(b"bu",), end=End.CUT), "no answer: ", id="cut in the body of an error"),
        pytest.param(
            Answer(status=408, content_type="application/json", pieces=(b'{"detail": "slow"}',)),
            "HTTP 408: slow",
            id="408",
        ),
        pytest.param(
            Answer(status=200, content_type="application/json", pieces=(b'{"error": {"code": 502, "message": "up"}}',)),
            "HTTP 502: up",
            id="an error document",
        ),
    ],
)
async def test_model_sends_again_after_a_fault_that_passes(server: OpenAIServer, answer: Answer, reason: str) -> None:
    server.reply(answer)
    server.reply_text("Hello you")
    async with model_at(server.base_url) as model:
        events = await ask(model)
    [wait] = [event for event in events if isinstance(event, RetryWait)]
    assert wait.attempt == 1
    assert wait.reason.startswith(reason)
    assert events[events.index(wait) + 1 :] == [TextChunk(text="Hello "), TextChunk(text="you"), HELLO]
    assert server.requests[0].body == server.requests[1].body


@pytest.mark.requirement("F54")
async def test_model_keeps_an_answer_whose_connection_breaks_behind_the_end(server: OpenAIServer) -> None:
    server.reply_chunks(chunk({"content": "Hi"}), chunk(finish_reason="stop"), end=End.CUT)
    async with model_at(server.base_url) as model:
        reply = Reply(message=AssistantMessage(content="Hi"), finish_reason="stop")
        assert await ask(model) == [TextChunk(text="Hi"), reply]


@pytest.mark.requirement("F54")
async def test_model_ends_at_done_even_if_the_server_does_not(server: OpenAIServer) -> None:
    server.reply_raw(event(chunk({"content": "Hi"}, "stop")), DONE, end=End.HANG)
    async with model_at(server.base_url) as model:
        with anyio.fail_after(10):
            reply = Reply(message=AssistantMessage(content="Hi"), finish_reason="stop")
            assert await ask(model) == [TextChunk(text="Hi"), reply]


@pytest.mark.requirement("F54")
@pytest.mark.parametrize(
    ("headers", "delay"), [({"Retry-After": "0.05"}, 0.05), ({"retry-after-ms": "40", "Retry-After": "20"}, 0.04)]
)
async def test_model_waits_as_long_as_the_server_asks(
    server: OpenAIServer, headers: Mapping[str, str], delay: float
) -> None:
    server.reply_error(429, "slow down", headers=headers)
    server.reply_text("Hello you")
    async with model_at(server.base_url) as model:
        assert (await ask(model))[0] == RetryWait(attempt=1, delay=delay, reason="HTTP 429: slow down")


@pytest.mark.requirement("F54")
async def test_model_gives_up_after_a_number_of_retries(server: OpenAIServer) -> None:
    for _ in range(3):
        server.reply_error(500, "busy")
    async with model_at(server.base_url, backoff=Backoff(base=0.001, retries=2)) as model:
        events, error = await ask_in_vain(model)
    assert [event.reason for event in events if isinstance(event, RetryWait)] == ["HTTP 500: busy", "HTTP 500: busy"]
    assert error == f"The model server {server.base_url} failed 3 times, last: HTTP 500: busy. Try again later"


@pytest.mark.requirement("F54", "F60")
async def test_model_can_be_cancelled_while_it_waits(server: OpenAIServer) -> None:
    server.reply_error(429, "slow down", headers={"Retry-After": "29"})
    waits = []
    async with model_at(server.base_url) as model:
        with anyio.fail_after(10), anyio.CancelScope() as scope:
            async for item in model.stream(ModelRequest(system="", messages=[])):
                waits.append(item)
                scope.cancel()
    assert waits == [RetryWait(attempt=1, delay=29.0, reason="HTTP 429: slow down")]


@pytest.mark.requirement("F54")
@pytest.mark.parametrize("end", [End.HANG, End.SILENT])
async def test_model_sends_again_after_a_silence(server: OpenAIServer, end: End) -> None:
    server.reply_text("Hel", end=end)
    server.reply_text("Hello you")
    async with model_at(server.base_url, read_timeout=0.2) as model:
        events = await ask(model)
    assert [type(item) for item in events if not isinstance(item, TextChunk)] == [RetryWait, Reply]
    assert events[-1] == HELLO


@pytest.mark.requirement("F53", "F54", "F56")
@pytest.mark.parametrize(
    ("status", "message", "code", "kind"),
    [
        (400, "no", None, ModelError),
        (401, "no", "invalid_api_key", ModelError),
        (404, "no", "model_not_found", ModelError),
        (429, "no", "insufficient_quota", ModelError),
        (400, "no", "context_length_exceeded", ContextOverflow),
        (500, "the request exceeds the available context size", None, ContextOverflow),
    ],
)
async def test_model_sends_once_what_never_succeeds(
    server: OpenAIServer, status: int, message: str, code: str | None, kind: type[ModelError]
) -> None:
    server.reply_error(status, message, code=code)
    async with model_at(server.base_url) as model:
        with pytest.raises(ModelError) as caught:
            await ask(model)
    assert type(caught.value) is kind
    assert len(server.requests) == 1


@pytest.mark.requirement("F56", "F76")
async def test_model_names_the_setting_and_no_secret_for_a_bad_key(server: OpenAIServer) -> None:
    server.reply_error(401, f"Incorrect API key provided: {KEY}.")
    async with model_at(server.base_url) as model:
        with pytest.raises(ModelError) as caught:
            await ask(model)
    assert str(caught.value) == (
        f"The model server {server.base_url} refused the API key (HTTP 401: Incorrect API key provided: [redacted]). "
        "Set OPENAI_API_KEY, or name the right variable in model.api_key_env"
    )
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.requirement("F56")
async def test_model_names_the_setting_for_a_server_that_is_down() -> None:
    with OpenAIServer() as stopped:
        base_url = stopped.base_url
    async with model_at(base_url) as model:
        events, error = await ask_in_vain(model)
    assert [type(event) for event in events] == [RetryWait, RetryWait]
    assert error.startswith(f"The model server {base_url} failed 3 times, last: no answer: ")
    assert error.endswith(". Check that it runs, and model.base_url")


@pytest.mark.requirement("F56")
async def test_model_names_the_setting_for_a_web_page(server: OpenAIServer) -> None:
    server.reply_raw(b"<html>Welcome</html>", content_type="text/html; charset=utf-8")
    async with model_at(server.base_url) as model:
        with pytest.raises(ModelError, match=r"answered with a web page\. Check model\.base_url"):
            await ask(model)


async def test_model_sends_the_key_without_the_blanks_around_it(server: OpenAIServer) -> None:
    server.reply_text("Hello you")
    async with model_at(server.base_url, api_key=f" {KEY}\n") as model:
        await ask(model)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_model_speaks_to_a_server_without_a_key(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.reply_text("Hello you")
    async with model_at(server.base_url, api_key=None) as model:
        assert (await ask(model))[-1] == HELLO
    assert KEY not in str(server.requests[0].headers)


async def test_model_reads_an_answer_that_is_no_stream(server: OpenAIServer) -> None:
    server.reply_raw(
        b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}', content_type="application/json"
    )
    async with model_at(server.base_url) as model:
        reply = Reply(message=AssistantMessage(content="Hi"), finish_reason="stop")
        assert await ask(model) == [TextChunk(text="Hi"), reply]


@pytest.mark.requirement("F60")
async def test_model_hangs_up_when_its_stream_is_closed(server: OpenAIServer) -> None:
    server.reply_text("Hello", end=End.HANG)
    async with model_at(server.base_url) as model:
        async with contextlib.aclosing(model.stream(ModelRequest(system="", messages=[]))) as events:
            assert await anext(events) == TextChunk(text="Hello")
        await anyio.to_thread.run_sync(server.wait_for_client_to_leave)


@pytest.mark.requirement("F60")
async def test_model_hangs_up_when_it_is_cancelled_in_an_answer(server: OpenAIServer) -> None:
    server.reply_text("Hello", end=End.HANG)
    server.reply_text("Hello you")
    async with model_at(server.base_url) as model:
        with anyio.fail_after(10), anyio.CancelScope() as scope:
            async for _ in model.stream(ModelRequest(system="", messages=[])):
                scope.cancel()
        await anyio.to_thread.run_sync(server.wait_for_client_to_leave)
        assert (await ask(model))[-1] == HELLO


@pytest.mark.requirement("F60")
async def test_model_hangs_up_when_it_is_cancelled_before_an_answer(server: OpenAIServer) -> None:
    server.reply_text("Hello", end=End.SILENT)
    server.reply_text("Hello you")
    async with model_at(server.base_url) as model:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, model)
            await anyio.to_thread.run_sync(server.wait_for_requests, 1)
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(server.wait_for_client_to_leave)
        assert (await ask(model))[-1] == HELLO


def test_importing_the_model_does_not_import_the_client_library() -> None:
    program = "import sys, agent_lsp.models.openai_chat; print('openai' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.split() == ["False"]
