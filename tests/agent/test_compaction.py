"""A history made shorter: valid, with all of the user's words, and small enough, or it says that it cannot be."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_lsp.agent.compaction import Compacted, condense, digest, estimate, in_hand, rendered, shorten, split
from agent_lsp.messages import (
    AssistantMessage,
    ChatMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Transcript,
    UserMessage,
)

LONG = "a line of what a program printed\n" * 200


@dataclass
class Past:
    """A history, step by step."""

    messages: list[ChatMessage] = field(default_factory=list)

    def user(self, text: str) -> "Past":
        self.messages.append(UserMessage(content=text))
        return self

    def round(self, *made: tuple[str, str, str], text: str = "") -> "Past":
        """An answer with calls: tool, arguments, result."""
        ids = [f"{len(self.messages)}-{n}" for n in range(len(made))]
        named = tuple(ToolCall(id=i, name=name, arguments=text) for i, (name, text, _) in zip(ids, made, strict=True))
        self.messages.append(AssistantMessage(content=text, tool_calls=named))
        self.messages += [ToolMessage(tool_call_id=i, content=told) for i, (*_, told) in zip(ids, made, strict=True)]
        return self


def words(messages: Sequence[ChatMessage]) -> list[str]:
    return [message.content for message in messages if isinstance(message, UserMessage) and not message.injected]


def is_history(messages: Sequence[ChatMessage]) -> bool:
    Transcript(messages).require_paired()
    return True


# Random histories

TEXT = st.text(max_size=60) | st.integers(0, 3000).map(lambda size: "word " * size)
ROUND = st.lists(st.tuples(st.sampled_from(["read_file", "shell"]), st.dictionaries(st.text(), TEXT, max_size=2), TEXT))
STEP = st.one_of(
    TEXT.map(lambda text: UserMessage(content=text)),
    TEXT.map(lambda text: UserMessage(content=text, injected=True)),
    TEXT.map(lambda text: SystemMessage(content=text)),
    TEXT.map(lambda text: AssistantMessage(content=text)),
    ROUND,
)


def build(steps: Sequence[object]) -> Transcript:
    past = Past()
    for step in steps:
        if isinstance(step, list):
            past.round(*((name, json.dumps(arguments), told) for name, arguments, told in step))
        else:
            assert isinstance(step, UserMessage | SystemMessage | AssistantMessage)
            past.messages.append(step)
    return Transcript(past.messages)


@pytest.mark.requirement("F53")
@settings(deadline=None, max_examples=200)
@given(st.lists(STEP, max_size=12), st.integers(0, 20_000), st.text(max_size=200))
def test_a_compacted_history_is_valid_and_keeps_the_users_words(steps: list[object], target: int, summary: str) -> None:
    history = build(steps)
    made: Compacted = shorten(history, target) or condense(history, target, summary, how="digest")
    assert is_history(made.messages)
    assert words(made.messages) == words(history)
    assert made.tokens == estimate(made.messages)
    assert made.fits == (made.tokens <= target)
    if not made.fits:  # all that could go has gone
        assert all(len(message.content) <= 200 for message in made.messages if isinstance(message, ToolMessage))


@settings(deadline=None, max_examples=100)
@given(st.lists(STEP, max_size=12), st.integers(0, 20_000))
def test_split_tears_nothing_apart_and_keeps_the_last_round(steps: list[object], target: int) -> None:
    history = build(steps)
    old, new = split(history, target)
    assert [message for block in (*old, *new) for message in block] == list(history)
    assert is_history([message for block in old for message in block])
    assert is_history([message for block in new for message in block])
    assert new or not history


# What is done first, and what next


def test_old_results_are_cut_first_and_the_newest_round_stays_whole() -> None:
    past = Past().user("do it")
    for number in range(4):
        past.round(("read_file", f'{{"path": "{number}"}}', LONG))
    before = estimate(past.messages)
    made = shorten(past.messages, before * 2 // 3)
    assert made is not None
    assert (made.how, made.fits) == ("shortened", True)
    results = [message.content for message in made.messages if isinstance(message, ToolMessage)]
    assert results[-1] == LONG
    assert all("characters left out" in text and len(text) < 600 for text in results[:2])
    assert len(made.messages) == len(past.messages)


def test_long_arguments_are_cut_and_stay_json() -> None:
    past = Past().user("do it").round(("write_file", json.dumps({"path": "a.py", "content": LONG}), "ok"))
    past.round(("read_file", "{}", "ok"))
    made = shorten(past.messages, estimate(past.messages) // 2)
    assert made is not None
    first = made.messages[1]
    assert isinstance(first, AssistantMessage)
    arguments = json.loads(first.tool_calls[0].arguments)
    assert arguments["path"] == "a.py"
    assert len(arguments["content"]) < 600


def test_old_rounds_give_way_to_a_summary_behind_the_users_words() -> None:
    past = Past().user("one")
    for _ in range(50):
        past.round(("shell", "{}", "x" * 500), text="I try")
    past.user("two").round(("read_file", "{}", "the newest"))
    assert shorten(past.messages, 1500) is None
    made = condense(past.messages, 1500, "SUMMARY", how="summary")
    assert made.fits
    assert words(made.messages) == ["one", "two"]
    assert [type(message).__name__ for message in made.messages[:2]] == ["UserMessage", "UserMessage"]
    assert "SUMMARY" in made.messages[1].content
    assert made.messages[-1].content == "the newest"


def test_an_earlier_summary_is_kept_in_a_digest_for_what_it_tells_is_nowhere_else() -> None:
    past = Past().user("one")
    for _ in range(50):
        past.round(("shell", "{}", "x" * 500))
    once = condense(past.messages, 1500, f"It was {'very ' * 200}hard.", how="summary")
    again = Past(messages=list(once.messages))
    for _ in range(50):
        again.round(("shell", "{}", "x" * 500))
    old, _ = split(again.messages, 1500)
    assert "hard." in digest(old, 100_000)


def test_nothing_is_said_to_be_left_out_where_nothing_was() -> None:
    past = Past().user("word " * 5_000).round(("shell", "{}", LONG))
    made = condense(past.messages, 4_000, "s", how="digest")
    assert [type(message) for message in made.messages] == [UserMessage, AssistantMessage, ToolMessage]


def test_what_cannot_fit_says_so() -> None:
    past = Past().user("word " * 10_000).round(("shell", "{}", LONG))
    made = condense(past.messages, 100, "s", how="digest")
    assert not made.fits
    assert words(made.messages) == words(past.messages)


def test_a_digest_tells_each_step_and_drops_the_oldest() -> None:
    past = (
        Past()
        .round(("read_file", '{"path": "a.py"}', "1\tx = 1"), text="I look")
        .round(("shell", '{"command": "make"}', "Error [exit]: 2"))
    )
    whole = digest([tuple(past.messages[:2]), tuple(past.messages[2:])], 10_000)
    assert whole.splitlines() == [
        "- you: I look",
        '- read_file {"path": "a.py"} → 1 x = 1',
        '- shell {"command": "make"} → Error [exit]: 2',
    ]
    assert digest([tuple(past.messages[:2]), tuple(past.messages[2:])], 60).splitlines() == [
        "- […]",
        '- shell {"command": "make"} → Error [exit]: 2',
    ]


def test_a_rendering_is_bounded_whatever_stands_in_it() -> None:
    past = Past().user("one").round(*[("shell", "{}", LONG)] * 50, text="go")
    assert len(rendered([tuple(past.messages[:1]), tuple(past.messages[1:])], 5_000)) < 5_100


def test_tasks_and_files_in_hand_are_told_the_changed_ones_as_such() -> None:
    past = (
        Past()
        .round(("read_file", '{"path": "a.py"}', "x"), ("read_file", '{"path": "b.py"}', "x"))
        .round(("edit_file", '{"path": "a.py"}', "ok"), ("shell", "not json", "x"))
    )
    told = in_hand(past.messages, open_tasks=lambda: "1. [pending] tidy up")
    assert told == ("Open tasks:\n1. [pending] tidy up\n\nFiles in hand:\n- b.py\n- a.py (changed by you)")
    assert in_hand([], open_tasks=str) == ""
