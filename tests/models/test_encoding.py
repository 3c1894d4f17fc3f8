"""History → request body."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_lsp.messages import (
    AssistantMessage,
    ChatMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSchema,
    Transcript,
    UserMessage,
)
from agent_lsp.models.base import ModelRequest
from agent_lsp.models.encoding import RequestEncoder
from agent_lsp.models.settings import OpenAIChatSettings

SETTINGS = OpenAIChatSettings(name="m")


def encode(*messages: ChatMessage, settings: OpenAIChatSettings = SETTINGS, tools: tuple[ToolSchema, ...] = ()) -> Any:
    request = ModelRequest(system="Be good.", messages=messages, tools=tools)
    return json.loads(RequestEncoder(settings).encode(request))


def history(*messages: ChatMessage, settings: OpenAIChatSettings = SETTINGS) -> Any:
    return encode(*messages, settings=settings)["messages"][1:]


def call(call_id: str, arguments: str = "{}", provider_id: str | None = None) -> ToolCall:
    return ToolCall(id=call_id, name="read", arguments=arguments, provider_id=provider_id)


def test_encoder_writes_the_least_that_a_request_needs() -> None:
    assert encode(UserMessage(content="Hi")) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "Be good."}, {"role": "user", "content": "Hi"}],
    }


@pytest.mark.requirement("F55")
def test_encoder_writes_settings_tools_and_quirks() -> None:
    settings = OpenAIChatSettings(
        name="m",
        max_output_tokens=100,
        temperature=0.0,
        reasoning_effort="low",
        quirks={"no_stream_options": True, "max_completion_tokens": True},
    )
    tool = ToolSchema(name="read", description="Reads.", parameters={"type": "object", "properties": {}})
    assert encode(settings=settings, tools=(tool,)) == {
        "model": "m",
        "stream": True,
        "max_completion_tokens": 100,
        "temperature": 0.0,
        "reasoning_effort": "low",
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads.",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
        "messages": [{"role": "system", "content": "Be good."}],
    }


def test_encoder_writes_max_tokens_where_no_quirk_wants_otherwise() -> None:
    assert encode(settings=OpenAIChatSettings(name="m", max_output_tokens=7))["max_tokens"] == 7


def test_encoder_writes_each_kind_of_message() -> None:
    assert history(
        SystemMessage(content="context"),
        UserMessage(content="é\ud800", injected=True),
        AssistantMessage(content="", reasoning="hm"),
        AssistantMessage(content="reading", tool_calls=(call("x", '{"a": 1}'),)),
        ToolMessage(tool_call_id="x", content="text"),
        AssistantMessage(tool_calls=(call("y"),)),
        ToolMessage(tool_call_id="y", content=""),
    ) == [
        {"role": "system", "content": "context"},
        {"role": "user", "content": "é?"},
        {"role": "assistant", "content": ""},
        {
            "role": "assistant",
            "content": "reading",
            "tool_calls": [{"id": "x", "type": "function", "function": {"name": "read", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "x", "content": "text"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "y", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "y", "content": ""},
    ]


@pytest.mark.requirement("F52")
def test_encoder_echoes_reasoning_in_the_field_that_a_quirk_names() -> None:
    settings = OpenAIChatSettings(name="m", quirks={"echo_reasoning": "reasoning_content"})
    message = AssistantMessage(content="so", reasoning="hm")
    assert history(message, settings=settings) == [{"role": "assistant", "content": "so", "reasoning_content": "hm"}]


@pytest.mark.requirement("F50")
@pytest.mark.parametrize(
    ("calls", "wire"),
    [
        pytest.param((call("a"), call("b")), ["a", "b"], id="own ids"),
        pytest.param((call("a", provider_id="p"), call("b", provider_id="q")), ["p", "q"], id="the server's ids"),
        pytest.param((call("a"), call("b", provider_id="a")), ["a", "b"], id="one id twice"),
        pytest.param((call("1", provider_id="p"), call("2", provider_id="1")), ["p", "1"], id="crossed"),
        pytest.param(
            (call("1", provider_id="p"), call("2", provider_id="p"), call("3", provider_id="1")),
            ["1", "2", "3"],
            id="one id twice and crossed",
        ),
    ],
)
def test_encoder_pairs_calls_and_results_by_ids_that_differ(calls: tuple[ToolCall, ...], wire: list[str]) -> None:
    assistant, *results = history(
        AssistantMessage(tool_calls=calls), *(ToolMessage(tool_call_id=call.id, content=call.id) for call in calls)
    )
    assert [call["id"] for call in assistant["tool_calls"]] == wire
    assert [(result["tool_call_id"], result["content"]) for result in results] == [
        (wire_id, call.id) for wire_id, call in zip(wire, calls, strict=True)
    ]


@pytest.mark.requirement("F51")
@pytest.mark.parametrize("arguments", ['{"a": ', "{}{}", "[]", "NaN", '{"a": NaN}', "[" * 100_000, "read it"])
def test_encoder_wraps_arguments_that_servers_cannot_read_again(arguments: str) -> None:
    [message] = history(AssistantMessage(tool_calls=(call("x", arguments),)))
    echoed = message["tool_calls"][0]["function"]["arguments"]
    assert json.loads(echoed) == {"invalid_arguments": arguments}


# The cache

MESSAGES = st.builds(UserMessage, content=st.text()) | st.builds(AssistantMessage, content=st.text())


@settings(deadline=None)
@given(st.lists(st.lists(MESSAGES, max_size=4), max_size=6), st.lists(st.integers(0, 30), max_size=6))
def test_encoder_writes_the_same_whatever_it_wrote_before(rounds: list[list[ChatMessage]], cuts: list[int]) -> None:
    encoder = RequestEncoder(SETTINGS)
    messages: list[ChatMessage] = []
    for number, added in enumerate(rounds):
        messages = messages[: cuts[number] if number < len(cuts) else None] + added
        request = ModelRequest(system="Be good.", messages=messages)
        assert encoder.encode(request) == RequestEncoder(SETTINGS).encode(request)


def test_encoder_notices_a_message_replaced_in_the_middle() -> None:
    encoder = RequestEncoder(SETTINGS)
    messages = [UserMessage(content="a"), UserMessage(content="b"), UserMessage(content="c")]
    encoder.encode(ModelRequest(system="", messages=messages))
    messages[1] = UserMessage(content="B")
    body = json.loads(encoder.encode(ModelRequest(system="", messages=messages)))
    assert [message["content"] for message in body["messages"]] == ["", "a", "B", "c"]


def test_encoder_follows_a_new_prompt_and_new_tools() -> None:
    encoder = RequestEncoder(SETTINGS)
    tool = ToolSchema(name="read", description="Reads.", parameters={})
    encoder.encode(ModelRequest(system="old", messages=[]))
    body = json.loads(encoder.encode(ModelRequest(system="new", messages=[], tools=(tool,))))
    assert (body["messages"][0]["content"], body["tools"][0]["function"]["name"]) == ("new", "read")


def test_encoder_touches_each_message_once() -> None:
    class CountingTranscript(Transcript):
        sliced = 0

        def __getitem__(self, index: Any) -> Any:
            taken = super().__getitem__(index)
            self.sliced += len(taken)
            return taken

    encoder, transcript = RequestEncoder(SETTINGS), CountingTranscript()
    for number in range(50):
        transcript.append(UserMessage(content=str(number)))
        encoder.encode(ModelRequest(system="", messages=transcript))
    assert transcript.sliced == 50
