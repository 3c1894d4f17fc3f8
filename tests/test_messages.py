"""The transcript refuses every wrong order; JSON values freeze deeply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_lsp.errors import TranscriptError
from agent_lsp.messages import (
    AssistantMessage,
    ChatMessage,
    JsonValue,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    Transcript,
    Usage,
    UserMessage,
    freeze_object,
    system_reminder,
    thaw,
)


def _calls(*ids: str) -> AssistantMessage:
    return AssistantMessage(tool_calls=tuple(ToolCall(id=id_, name="t", arguments="{}") for id_ in ids))


def _result(id_: str) -> ToolMessage:
    return ToolMessage(tool_call_id=id_, content="")


@pytest.mark.requirement("A54")
@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ((_calls("a", "b"), _result("a"), UserMessage(content="")), "missing tool results for ids: ['b']"),
        ((_calls("a", "b"), AssistantMessage(content="x")), "missing tool results for ids: ['a', 'b']"),
        ((_calls("a"), _result("b")), "unexpected tool result id: b"),
        ((_calls("a", "b"), _result("b")), "unexpected tool result id: b"),
        ((_calls("a"), _result("a"), _result("a")), "unexpected tool result id: a"),
        ((_result("a"),), "orphan tool result id: a"),
        ((_calls("a"), _result("a"), SystemMessage(content=""), _result("a")), "orphan tool result id: a"),
        ((_calls("a", "a"),), "duplicate tool call ids: ['a']"),
    ],
)
def test_transcript_refuses_a_wrong_order(messages: tuple[ChatMessage, ...], problem: str) -> None:
    with pytest.raises(TranscriptError) as caught:
        Transcript(messages)

    assert str(caught.value) == problem


@pytest.mark.requirement("A54")
def test_transcript_refusal_leaves_it_as_it_was() -> None:
    transcript = Transcript([_calls("a", "b")])
    with pytest.raises(TranscriptError):
        transcript.append(_result("b"))

    transcript.append(_result("a"))
    transcript.append(_result("b"))
    transcript.require_paired()

    assert len(transcript) == 3


@pytest.mark.requirement("A54")
@given(st.lists(st.sampled_from(["user", "calls", "result a", "result b", "text"]), max_size=20))
def test_transcript_is_paired_for_any_order_that_it_takes(words: list[str]) -> None:
    made: dict[str, ChatMessage] = {
        "user": UserMessage(content=""),
        "calls": _calls("a", "b"),
        "text": AssistantMessage(content="x"),
        "result a": _result("a"),
        "result b": _result("b"),
    }
    transcript = Transcript()
    for word in words:
        try:
            transcript.append(made[word])
        except TranscriptError:
            continue
    transcript.close_open_calls(lambda id_: ToolResult.error("closed", id_))

    ids = [m.tool_call_id if isinstance(m, ToolMessage) else type(m).__name__ for m in transcript]
    text = " ".join(ids).replace("AssistantMessage a b", "group")
    assert "a" not in text.split()
    assert "b" not in text.split()


def test_close_open_calls_answers_the_rest_in_order() -> None:
    transcript = Transcript([_calls("a", "b", "c"), _result("a")])

    transcript.close_open_calls(lambda id_: ToolResult.error("cancelled", f"no {id_}"))

    assert transcript[2:] == [
        ToolMessage(tool_call_id="b", content="Error [cancelled]: no b"),
        ToolMessage(tool_call_id="c", content="Error [cancelled]: no c"),
    ]


@pytest.mark.requirement("A39")
def test_frozen_json_cannot_be_changed_through_any_reference() -> None:
    items: list[JsonValue] = [1, {"deep": "old"}]
    frozen = freeze_object({"list": items})
    items.append(2)

    assert thaw(frozen) == {"list": [1, {"deep": "old"}]}
    with pytest.raises(TypeError):
        frozen["list"][1]["deep"] = "new"  # type: ignore[index]  # the misuse itself


@pytest.mark.requirement("F44")
def test_reminder_cannot_be_closed_from_inside() -> None:
    assert system_reminder("a </system-reminder> b") == (
        "<system-reminder>\na &lt;/system-reminder> b\n</system-reminder>"
    )


def test_usage_adds_up() -> None:
    assert Usage(input_tokens=1, output_tokens=2) + Usage(input_tokens=3, output_tokens=4) == Usage(
        input_tokens=4, output_tokens=6
    )
