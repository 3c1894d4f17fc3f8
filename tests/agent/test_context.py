"""The loop inside of a model's context: near its end, past it, and where nothing helps."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent_lsp.agent.events import AgentEvent, HistoryCompacted
from agent_lsp.errors import ContextOverflow, ModelError
from agent_lsp.messages import AssistantMessage, ToolResult, Usage, UserMessage
from agent_lsp.models.base import ModelRequest, Reply
from agent_lsp.models.scripted import ScriptedModel, Step, calls, says
from agent_lsp.tools.base import ToolContext
from tests.support.harness import Harness, NoteParams, note_tool

RESULT = "what a program printed\n" * 100
OVERFLOW = ContextOverflow("The conversation is too long for m: no", limit=None)


async def long_result(params: NoteParams, _context: ToolContext) -> ToolResult:
    return ToolResult(content=f"{params.text} {RESULT}")


def harness(tmp_path: Path, script: Sequence[Step], *, limit: int | None) -> Harness:
    made = Harness(tmp_path, script, tools=[note_tool(long_result)])
    made.model.input_limit = limit
    made.agent = replace(made.agent, open_tasks=lambda: "1. [pending] tidy up")
    return made


def compactions(events: list[AgentEvent]) -> list[HistoryCompacted]:
    return [event for event in events if isinstance(event, HistoryCompacted)]


def noted(number: int, usage: int = 0) -> Reply:
    return calls(("note", {"text": str(number)}), usage=Usage(input_tokens=usage, output_tokens=5))


def is_summary_request(request: ModelRequest) -> bool:
    return request.tools == () and request.system.startswith("You sum up")


def summing_up(reply: Step) -> Callable[[ModelRequest], Step]:
    def step(request: ModelRequest) -> Step:
        assert is_summary_request(request)
        return reply

    return step


@pytest.mark.requirement("F53")
async def test_history_is_made_shorter_when_its_estimate_nears_the_limit(tmp_path: Path) -> None:
    script = [*(noted(number) for number in range(6)), says("done")]
    made = harness(tmp_path, script, limit=3500)
    outcome = await made.run("go on")
    [event] = compactions(made.events)
    assert (outcome.text, event.reason, event.how) == ("done", "near_limit", "shortened")
    assert event.tokens_before > 3500 > event.tokens_after
    assert all(RESULT in text for text in made.results().values())  # the record is whole
    shown = made.model.requests[-1].messages
    assert shown[0] == UserMessage(content="go on")
    assert "characters left out" in shown[2].content
    made.model.assert_consumed()


@pytest.mark.requirement("F53")
async def test_the_servers_count_is_believed_more_than_the_estimate(tmp_path: Path) -> None:
    """The same history, at a server that counts twice as many tokens as would be estimated."""
    script = [*(noted(number, usage=1300 * (number + 1)) for number in range(4)), says("done")]
    made = harness(tmp_path, script, limit=5000)
    await made.run("go on")
    assert [event.reason for event in compactions(made.events)] == ["near_limit"]


@pytest.mark.requirement("F53")
async def test_old_rounds_become_a_summary_with_tasks_and_files(tmp_path: Path) -> None:
    summary = says("All was noted.", usage=Usage(input_tokens=100, output_tokens=7))
    script: list[Step] = [*map(noted, range(12)), summing_up(summary), noted(12), says("done")]
    made = harness(tmp_path, script, limit=None)

    def limit_now(_request: ModelRequest) -> Step:
        made.model.input_limit = 1200
        return noted(11)

    script[11] = limit_now
    made.model = ScriptedModel(script)
    made.agent = replace(made.agent, model=made.model)
    outcome = await made.run("go on")
    first = compactions(made.events)[0]
    assert outcome.text == "done"
    assert (first.how, first.usage) == ("summary", Usage(input_tokens=100, output_tokens=7))
    shown = next(request for request in made.model.requests[12:] if request.tools).messages
    assert shown[0] == UserMessage(content="go on")
    assert isinstance(shown[1], UserMessage)
    assert shown[1].injected
    assert "All was noted." in shown[1].content
    assert "1. [pending] tidy up" in shown[1].content
    assert len(made.transcript) == 1 + 2 * 13 + 1


@pytest.mark.requirement("F53")
@pytest.mark.parametrize("failure", [ModelError("down"), says(""), OVERFLOW], ids=["error", "empty", "too long"])
async def test_a_summary_that_fails_is_replaced_by_a_digest(failure: Step, tmp_path: Path) -> None:
    script: list[Step] = [*(noted(number) for number in range(8)), OVERFLOW, summing_up(failure), says("done")]
    made = harness(tmp_path, script, limit=None)
    for _ in range(30):  # what no cutting of results makes small
        made.transcript.append(AssistantMessage(content="I thought about it for long. " * 20))
    outcome = await made.run("go on")
    [event] = compactions(made.events)
    assert (outcome.text, event.reason, event.how) == ("done", "overflow", "digest")
    assert event.tokens_after < event.tokens_before
    shown = made.model.requests[-1].messages
    assert any("- note {" in message.content for message in shown)


@pytest.mark.requirement("F53")
async def test_a_second_refusal_ends_the_turn_with_what_to_do(tmp_path: Path) -> None:
    script: list[Step] = [*map(noted, range(4)), OVERFLOW, OVERFLOW]
    made = harness(tmp_path, script, limit=None)
    with pytest.raises(ContextOverflow) as caught:
        await made.run("go on")
    assert str(caught.value) == (
        "The conversation is too long for m: no. Making the conversation shorter did not help: begin a new session, or "
        "choose a model with a larger context"
    )
    made.model.assert_consumed()
    made.transcript.require_paired()


@pytest.mark.requirement("F53")
async def test_a_refusal_of_what_cannot_be_shorter_is_not_sent_again(tmp_path: Path) -> None:
    made = harness(tmp_path, [OVERFLOW], limit=None)
    with pytest.raises(ContextOverflow, match="begin a new session"):
        await made.run("word " * 5000)
    assert len(made.model.requests) == 1


@pytest.mark.requirement("F53")
async def test_words_beyond_the_limit_are_compacted_once_and_not_at_every_request(tmp_path: Path) -> None:
    made = harness(tmp_path, [*(noted(number) for number in range(5)), says("done")], limit=2_000)
    await made.run("word " * 3_000)
    assert len(compactions(made.events)) <= 3
    assert made.model.requests[-1].messages[0] == UserMessage(content="word " * 3_000)


@pytest.mark.requirement("F53")
async def test_the_shorter_view_holds_for_the_next_prompt(tmp_path: Path) -> None:
    script = [*(noted(number) for number in range(6)), says("done"), says("again")]
    made = harness(tmp_path, script, limit=3500)
    await made.run("go on")
    await made.run("and now?")
    shown = made.model.requests[-1].messages
    assert "characters left out" in shown[2].content
    assert shown[-1] == UserMessage(content="and now?")
    assert len(compactions(made.events)) == 1


@pytest.mark.requirement("F53")
async def test_the_standing_prompt_and_the_tools_count_and_are_never_cut(tmp_path: Path) -> None:
    script: list[Step] = [*map(noted, range(8)), says("done")]
    made = harness(tmp_path, script, limit=9_000)
    made.agent = replace(made.agent, system="rule " * 3_000)
    await made.run("go on")
    for request in made.model.requests:
        assert request.system == "rule " * 3_000
    first = compactions(made.events)[0]
    assert first.how == "shortened"
    assert first.tokens_before > 9_000 > first.tokens_after > 4_000
