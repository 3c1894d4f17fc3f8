"""The model that plays a script."""

import pytest

from agent_lsp.errors import ModelError
from agent_lsp.messages import AssistantMessage, ToolCall, Transcript, Usage, UserMessage
from agent_lsp.models.base import Model, ModelEvent, ModelRequest, ReasoningChunk, Reply, TextChunk
from agent_lsp.models.scripted import RecordedRequest, ScriptedModel, Step, calls, says

HISTORY = Transcript([UserMessage(content="Hi")])
REQUEST = ModelRequest(system="Be good.", messages=HISTORY)


async def play(model: Model, request: ModelRequest = REQUEST) -> list[ModelEvent]:
    return [event async for event in model.stream(request)]


async def test_scripted_model_streams_text_and_reasoning_in_pieces() -> None:
    reply = says("abcdefg", reasoning="hm", usage=Usage(input_tokens=1))
    assert await play(ScriptedModel([reply])) == [
        ReasoningChunk(text="h"),
        ReasoningChunk(text="m"),
        TextChunk(text="abc"),
        TextChunk(text="def"),
        TextChunk(text="g"),
        Reply(
            message=AssistantMessage(content="abcdefg", reasoning="hm"),
            finish_reason="stop",
            usage=Usage(input_tokens=1),
        ),
    ]


async def test_scripted_model_numbers_its_calls() -> None:
    assert await play(ScriptedModel([calls(("read", {"path": "ä"}), ("list", {}), text="")])) == [
        Reply(
            message=AssistantMessage(
                tool_calls=(
                    ToolCall(id="call_1", name="read", arguments='{"path": "ä"}'),
                    ToolCall(id="call_2", name="list", arguments="{}"),
                )
            ),
            finish_reason="tool_calls",
        )
    ]


async def test_scripted_model_asks_functions_for_their_step() -> None:
    def echo(request: ModelRequest) -> Step:
        return says(f"{request.system} {len(request.messages)}")

    assert (await play(ScriptedModel([lambda _: echo])))[-1] == says("Be good. 1")


async def test_scripted_model_raises_what_the_script_says_and_goes_on() -> None:
    model = ScriptedModel([ModelError("down"), says("up")])
    with pytest.raises(ModelError, match="down"):
        await play(model)
    assert (await play(model))[-1] == says("up")
    model.assert_consumed()


async def test_scripted_model_keeps_requests_as_they_were() -> None:
    history = Transcript([UserMessage(content="Hi")])
    model = ScriptedModel([says("a"), says("b")])
    await play(model, ModelRequest(system="s", messages=history))
    history.append(AssistantMessage(content="a"))
    await play(model, ModelRequest(system="s", messages=history))
    hi, answer = UserMessage(content="Hi"), AssistantMessage(content="a")
    assert model.requests == [
        RecordedRequest(system="s", messages=(hi,), tools=()),
        RecordedRequest(system="s", messages=(hi, answer), tools=()),
    ]


async def test_scripted_model_refuses_a_request_beyond_the_script() -> None:
    model = ScriptedModel([says("a")])
    await play(model)
    with pytest.raises(AssertionError, match="The script has 1 steps and was asked for one more"):
        await play(model)
    with pytest.raises(AssertionError, match="The script has 1 steps, 2 were asked for"):
        model.assert_consumed()


def test_scripted_model_tells_of_a_script_left_over() -> None:
    with pytest.raises(AssertionError, match="The script has 1 steps, 0 were asked for"):
        ScriptedModel([says("a")]).assert_consumed()
