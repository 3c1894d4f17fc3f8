"""One reply out of bytes, without a network."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_lsp.errors import ContextOverflow, ModelError
from agent_lsp.messages import AssistantMessage, ToolCall, Usage
from agent_lsp.models.base import FinishReason, ModelEvent, ReasoningChunk, Reply, TextChunk
from agent_lsp.models.faults import TransientFault
from agent_lsp.models.reply import ReplyReader
from agent_lsp.models.settings import OpenAIChatSettings
from tests.support.openai_server import DONE, Json, chunk, event, tool_call, usage_chunk

SETTINGS = OpenAIChatSettings(name="m", api_key="key-that-is-secret")


def read(*pieces: bytes, document: bool = False) -> list[ModelEvent]:
    reader = ReplyReader(SETTINGS, document=document)
    return [*(shown for piece in pieces for shown in reader.feed(piece)), *reader.end()]


def reply_to(*payloads: Json, done: bool = True) -> Reply:
    last = read(*map(event, payloads), DONE if done else b"")[-1]
    assert isinstance(last, Reply)
    return last


CALL = ToolCall(id="x", name="read", arguments="{}")
CALL_DELTA = {"tool_calls": [tool_call(0, "x", "read", "{}")]}


@pytest.mark.requirement("F52")
@pytest.mark.parametrize(
    ("delta", "events"),
    [
        pytest.param({"role": "assistant"}, [], id="role only"),
        pytest.param({"role": "assistant", "content": None}, [], id="content null"),
        pytest.param({"content": ""}, [], id="content empty"),
        pytest.param({"content": "a"}, [TextChunk(text="a")], id="content"),
        pytest.param(
            {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, "c", {"type": "image"}]},
            [TextChunk(text="ab")],
            id="content as parts",
        ),
        pytest.param({"content": None, "refusal": "no"}, [TextChunk(text="no")], id="refusal"),
        pytest.param({"content": [{"type": "refusal", "refusal": "no"}]}, [TextChunk(text="no")], id="refusal part"),
        pytest.param({"reasoning": "hm"}, [ReasoningChunk(text="hm")], id="reasoning"),
        pytest.param({"reasoning_content": "hm"}, [ReasoningChunk(text="hm")], id="reasoning content"),
        pytest.param(
            {"reasoning": "hm", "reasoning_content": "hm", "content": "a"},
            [ReasoningChunk(text="hm"), TextChunk(text="a")],
            id="reasoning under both names",
        ),
        pytest.param(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
            [ReasoningChunk(text="hm")],
            id="reasoning as a part",
        ),
        pytest.param({"content": 5, "tool_calls": "no", "reasoning": {}}, [], id="types that nobody expects"),
    ],
)
def test_reader_shows_each_kind_of_delta(delta: Json, events: list[ModelEvent]) -> None:
    text = "".join(event.text for event in events if isinstance(event, TextChunk))
    reasoning = "".join(event.text for event in events if isinstance(event, ReasoningChunk))
    message = AssistantMessage(content=text, reasoning=reasoning)
    stream = (event(chunk(delta)), event(chunk(finish_reason="stop")), DONE)
    assert read(*stream) == [*events, Reply(message=message, finish_reason="stop")]


@pytest.mark.requirement("F52")
@pytest.mark.parametrize(
    "payloads",
    [
        pytest.param([usage_chunk(1, 1), chunk({"content": "a"}), chunk(finish_reason="stop"), usage_chunk(3, 2)]),
        pytest.param([chunk({"content": "a"}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 2})]),
        pytest.param([{}, {"choices": None}, chunk({"content": "a"}, "stop"), usage_chunk(3, 2), {"usage": None}]),
        pytest.param([{"choices": [{"delta": None}]}, chunk({"content": "a"}, "stop"), usage_chunk(3, 2)]),
    ],
)
def test_reader_takes_chunks_without_choices_and_the_last_usage(payloads: list[Json]) -> None:
    usage = Usage(input_tokens=3, output_tokens=2)
    assert reply_to(*payloads) == Reply(message=AssistantMessage(content="a"), finish_reason="stop", usage=usage)


@pytest.mark.requirement("F51", "F52")
@pytest.mark.parametrize(
    ("sent", "delta", "finish_reason"),
    [
        ("stop", {"content": "a"}, "stop"),
        ("stop", CALL_DELTA, "tool_calls"),
        ("tool_calls", CALL_DELTA, "tool_calls"),
        ("tool_calls", {"content": "a"}, "stop"),
        ("TOOL_CALLS", CALL_DELTA, "tool_calls"),
        ("function_call", CALL_DELTA, "tool_calls"),
        ("eos", {"content": "a"}, "stop"),
        ("length", {"content": "a"}, "length"),
        ("length", CALL_DELTA, "length"),
        ("max_tokens", CALL_DELTA, "length"),
        ("content_filter", CALL_DELTA, "content_filter"),
        (None, {"content": "a"}, "stop"),
        (None, CALL_DELTA, "tool_calls"),
        ("", CALL_DELTA, "tool_calls"),
    ],
)
def test_reader_says_why_the_answer_ended(sent: str | None, delta: Json, finish_reason: FinishReason) -> None:
    message = AssistantMessage(content="a") if "content" in delta else AssistantMessage(tool_calls=(CALL,))
    assert reply_to(chunk(delta), chunk(finish_reason=sent)) == Reply(message=message, finish_reason=finish_reason)


def test_reader_takes_the_calls_of_old_servers() -> None:
    deltas = ({"function_call": {"name": "read", "arguments": "{"}}, {"function_call": {"arguments": "}"}})
    reply = reply_to(*map(chunk, deltas), chunk(finish_reason="function_call"))
    [call] = reply.message.tool_calls
    assert (reply.finish_reason, call.name, call.arguments) == ("tool_calls", "read", "{}")


@pytest.mark.requirement("F54")
def test_reader_needs_no_done_behind_a_finish_reason() -> None:
    expected = Reply(message=AssistantMessage(content="a"), finish_reason="stop")
    assert reply_to(chunk({"content": "a"}), chunk(finish_reason="stop"), done=False) == expected


def test_reader_reads_nothing_behind_done() -> None:
    assert read(event(chunk({"content": "a"}, "stop")), DONE, event(chunk({"content": "b"})), b"data: rubbish\n\n") == [
        TextChunk(text="a"),
        Reply(message=AssistantMessage(content="a"), finish_reason="stop"),
    ]


@pytest.mark.requirement("F54")
@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        pytest.param([], "the answer ended in the middle", id="nothing"),
        pytest.param([DONE], "the answer ended in the middle", id="nothing but done"),
        pytest.param([event(chunk({"content": "a"}))], "the answer ended in the middle", id="no finish reason"),
        pytest.param([event(chunk(CALL_DELTA))], "the answer ended in the middle", id="a call, no finish reason"),
        pytest.param([event(chunk({"content": "a"}))[:20]], "the answer has an unreadable part", id="half a chunk"),
        pytest.param([b"data: rubbish\n\n", DONE], "the answer has an unreadable part", id="not JSON"),
        pytest.param([b"data: " + b"[" * 100_000 + b"\n\n"], "the answer has an unreadable part", id="too deep"),
        pytest.param(
            [event(chunk(finish_reason="error")), DONE], "the answer ended with error", id="finish reason error"
        ),
    ],
)
def test_reader_refuses_half_an_answer(pieces: list[bytes], reason: str) -> None:
    with pytest.raises(TransientFault) as caught:
        read(*pieces)
    assert caught.value.reason == reason


@pytest.mark.requirement("F54")
@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "busy", "type": "server_error"}},
        {"error": {"message": "busy", "code": 502}},
        {"error": {"message": "busy", "code": "503", "type": None}},
        {"error": {"message": "busy", "type": "overloaded_error"}},
        {"error": {"message": "busy", "code": "rate_limit_exceeded"}},
        {"error": {"message": "Overloaded, please try again"}},
        {"error": "upstream timeout"},
        {"object": "error", "message": "busy", "code": 500},
        {"choices": [{"delta": {}, "error": {"message": "busy", "code": 502}, "finish_reason": "error"}]},
    ],
)
def test_reader_sees_a_passing_error_inside_the_stream(error: Json) -> None:
    with pytest.raises(TransientFault):
        read(event(chunk({"content": "a"})), event(error), DONE)


@pytest.mark.requirement("F53", "F54", "F76")
@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            {"error": {"message": "bad key-that-is-secret", "code": "invalid_request"}},
            ModelError,
            "The model server https://api.openai.com/v1 refused the request (bad [redacted])",
        ),
        (
            {"error": {"message": "too long", "code": "context_length_exceeded"}},
            ContextOverflow,
            "The conversation is too long for m: too long",
        ),
    ],
)
def test_reader_sees_a_lasting_error_inside_the_stream(error: Json, kind: type[ModelError], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(event(chunk({"content": "a"})), event(error), DONE)
    assert (type(caught.value), str(caught.value)) == (kind, message)


def test_reader_reads_a_document_where_no_stream_came() -> None:
    choice = b'{"index": 0, "message": {"role": "assistant", "content": "\xc3\xa9"}, "finish_reason": "stop"}'
    assert read(b'{"object": "chat.completion",\n "choices": [', choice[:60], choice[60:], b"]}", document=True) == [
        TextChunk(text="é"),
        Reply(message=AssistantMessage(content="é"), finish_reason="stop"),
    ]


STREAM = b"".join(
    [
        event(chunk({"role": "assistant", "content": None}), "\r\n"),
        b": keep-alive\r\n\r\n",
        event(chunk({"reasoning": "hmm…"}), "\r\n"),
        event(chunk({"content": "für 🙂"})),
        event(chunk({"tool_calls": [tool_call(0, "x", "read", '{"path": "')]})),
        event(chunk({"tool_calls": [{"index": 0, "function": {"arguments": 'ä.txt"}'}}]})),
        event(chunk(finish_reason="tool_calls"), "\r\n"),
        event(usage_chunk(3, 2)),
        DONE,
    ]
)
WHOLE = [
    ReasoningChunk(text="hmm…"),
    TextChunk(text="für 🙂"),
    Reply(
        message=AssistantMessage(
            content="für 🙂",
            reasoning="hmm…",
            tool_calls=(ToolCall(id="x", name="read", arguments='{"path": "ä.txt"}'),),
        ),
        finish_reason="tool_calls",
        usage=Usage(input_tokens=3, output_tokens=2),
    ),
]


@pytest.mark.requirement("F54")
@settings(deadline=None)
@given(st.sets(st.integers(0, len(STREAM))))
def test_reader_does_not_see_how_bytes_are_split(cuts: set[int]) -> None:
    marks = sorted({0, *cuts, len(STREAM)})
    assert read(*(STREAM[start:end] for start, end in pairwise(marks))) == WHOLE


@pytest.mark.requirement("F54")
def test_reader_never_takes_a_beginning_for_the_whole() -> None:
    through = STREAM.index(b'"tool_calls"}')
    for length in range(through):
        with pytest.raises(TransientFault):
            read(STREAM[:length])
