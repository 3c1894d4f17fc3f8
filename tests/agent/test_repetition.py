"""A turn that only repeats itself ends with a reason."""

from pathlib import Path

import pytest

from agent_lsp.agent.repetition import FAILING_CALLS, ROUNDS, Repetition
from agent_lsp.errors import AgentLimitError, ToolError
from agent_lsp.messages import ToolCall, ToolResult
from agent_lsp.models.scripted import calls, says
from agent_lsp.tools.base import ToolContext
from tests.support.harness import Harness, NoteParams, note_tool

FAILED = ToolResult.error("broken", "no such thing")


def heed(repetition: Repetition, *made: tuple[str, str, ToolResult]) -> None:
    """One round of calls, each given by its tool, its arguments and its result."""
    named = tuple(ToolCall(id=str(n), name=name, arguments=text) for n, (name, text, _) in enumerate(made))
    repetition.heed(named, {str(n): result for n, (*_, result) in enumerate(made)})


async def fail(params: NoteParams, _context: ToolContext) -> ToolResult:
    raise ToolError("broken", f"cannot note {params.text}")


@pytest.mark.requirement("F35")
async def test_three_identical_failing_calls_in_a_row_end_the_turn(tmp_path: Path) -> None:
    script = [calls(("note", {"text": "x"}))] * 3
    harness = Harness(tmp_path, script, tools=[note_tool(fail)])
    with pytest.raises(AgentLimitError) as caught:
        await harness.run()
    assert str(caught.value) == (
        'The model made the same failing call 3 times in a row: note {"text": "x"} - Error [broken]: cannot note x'
    )
    harness.model.assert_consumed()
    harness.transcript.require_paired()


@pytest.mark.requirement("F35")
async def test_the_next_prompt_begins_a_new_count(tmp_path: Path) -> None:
    call = calls(("note", {"text": "x"}))
    harness = Harness(tmp_path, [call, call, says("no"), call, call, says("still no")], tools=[note_tool(fail)])
    assert (await harness.run()).text == "no"
    assert (await harness.run()).text == "still no"


@pytest.mark.requirement("F35")
@pytest.mark.parametrize(
    "between",
    [
        ("note", '{"text": "y"}', FAILED),
        ("read", '{"text": "x"}', FAILED),
        ("note", '{"text": "x"}', ToolResult(content="fine")),
    ],
    ids=["other arguments", "another tool", "a success"],
)
def test_anything_else_between_failing_calls_begins_a_new_count(between: tuple[str, str, ToolResult]) -> None:
    repetition = Repetition()
    for _ in range(3):
        for _ in range(FAILING_CALLS - 1):
            heed(repetition, ("note", '{"text": "x"}', FAILED))
        heed(repetition, between)


@pytest.mark.requirement("F35")
def test_failing_calls_are_the_same_however_their_json_and_their_message_are_written() -> None:
    repetition = Repetition()
    heed(repetition, ("note", '{"a": 1, "b": 2}', ToolResult.error("x", "at 10:01")))
    heed(repetition, ("note", '{"b": 2,"a":1}', ToolResult.error("x", "at 10:02")))
    with pytest.raises(AgentLimitError):
        heed(repetition, ("note", '{"a":1,"b":2}', ToolResult.error("x", "at 10:03")))


@pytest.mark.requirement("F35")
def test_calls_of_one_answer_count_once_for_the_model_had_not_seen_them_fail() -> None:
    repetition = Repetition()
    for _ in range(FAILING_CALLS - 1):
        heed(repetition, *[("note", "{}", FAILED)] * 4)
    with pytest.raises(AgentLimitError):
        heed(repetition, ("note", "{}", FAILED))


@pytest.mark.requirement("F35")
@pytest.mark.parametrize("length", ROUNDS)
def test_rounds_that_only_repeat_themselves_end_the_turn(length: int) -> None:
    repetition = Repetition()
    for number in range(length * ROUNDS[length] - 1):
        heed(repetition, ("read", f'{{"path": "{number % length}"}}', ToolResult(content="the same")))
    with pytest.raises(AgentLimitError, match="went round in circles"):
        heed(repetition, ("read", f'{{"path": "{length - 1}"}}', ToolResult(content="the same")))


@pytest.mark.requirement("F35")
def test_waiting_for_something_that_changes_is_no_repetition() -> None:
    repetition = Repetition()
    for number in range(100):
        heed(repetition, ("shell_output", '{"id": "1"}', ToolResult(content=f"{number} lines")))
