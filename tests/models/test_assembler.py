"""Tool calls out of deltas, in the styles of many servers."""

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import chain, count, pairwise
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_lsp.messages import ToolCall
from agent_lsp.models.assembler import ToolCallAssembler

Entry: TypeAlias = dict[str, Any]
Lists: TypeAlias = list[list[Entry]]


def assemble(lists: Lists, tools: Collection[str] = ()) -> tuple[ToolCall, ...]:
    assembler = ToolCallAssembler(tools)
    for entries in lists:
        assembler.feed(entries)
    return assembler.calls()


def without_ids(calls: tuple[ToolCall, ...]) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in calls]


def entry(name: str | None = None, arguments: object = None, **more: Any) -> Entry:
    return {**more, "function": {"name": name, "arguments": arguments}}


@pytest.mark.requirement("F50")
@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        pytest.param(
            [
                [entry("read", '{"a":', index=0, id="x"), entry("write", "", index=1, id="y")],
                [entry(None, "{}", index=1, id=None), entry(None, " 1}", index=0, id="")],
            ],
            (ToolCall(id="x", name="read", arguments='{"a": 1}'), ToolCall(id="y", name="write", arguments="{}")),
            id="interleaved by index",
        ),
        pytest.param(
            [
                [entry("read", '{"a":', index=0, id="x")],
                [entry(None, "1}", index=0, id="x")],
                [entry("read", "", index=0, id="y")],
                [entry(None, "{}", index=0, id="y")],
            ],
            (ToolCall(id="x", name="read", arguments='{"a":1}'), ToolCall(id="y", name="read", arguments="{}")),
            id="index always 0",
        ),
        pytest.param(
            [
                [entry("read", "{", id="x")],
                [entry(None, "}")],
                [entry("write", "{", id="y")],
                [entry("", "}", id="")],
            ],
            (ToolCall(id="x", name="read", arguments="{}"), ToolCall(id="y", name="write", arguments="{}")),
            id="index absent, id on the first delta",
        ),
        pytest.param(
            [
                [entry("read", "{", id="x"), entry("write", "[", id="y")],
                [entry(None, "]", id="y"), entry(None, "}", id="x")],
            ],
            (ToolCall(id="x", name="read", arguments="{}"), ToolCall(id="y", name="write", arguments="[]")),
            id="index absent, interleaved by id",
        ),
        pytest.param(
            [
                [entry("read", "{", index=0, id="x")],
                [entry(None, '"a": 1', index=0, id="z")],
                [entry(None, "}", id="w")],
            ],
            (ToolCall(id="x", name="read", arguments='{"a": 1}'),),
            id="another id on every delta of one call",
        ),
        pytest.param(
            [[entry("read", "{", index=0, id="x")], [entry("read", "}", index=0, id="x")]],
            (ToolCall(id="x", name="read", arguments="{}"),),
            id="name repeated",
        ),
        pytest.param(
            [[entry("re", index=0, id="x")], [entry("ad", index=0)], [entry("_f", ""), entry(None, "{}", index=0)]],
            (ToolCall(id="x", name="read_f", arguments="{}"),),
            id="name split",
        ),
        pytest.param(
            [[entry(None, '{"a"', index=0, id="x")], [entry("read", ": 1}", index=0)]],
            (ToolCall(id="x", name="read", arguments='{"a": 1}'),),
            id="arguments before the name",
        ),
        pytest.param(
            [[entry("read", None, index=0)], [entry(None, "{}", index=0, id="x")]],
            (ToolCall(id="x", name="read", arguments="{}"),),
            id="id after the name",
        ),
        pytest.param(
            [[entry("read", "{}", index=3, id="x")], [entry("write", "{}", index=1, id="y")]],
            (ToolCall(id="x", name="read", arguments="{}"), ToolCall(id="y", name="write", arguments="{}")),
            id="indexes out of order, from nowhere",
        ),
        pytest.param(
            [[entry("read", "", index=0, id="x")], [entry("write", None, index=1, id="y")], [{"index": 2, "id": "z"}]],
            (ToolCall(id="x", name="read", arguments="{}"), ToolCall(id="y", name="write", arguments="{}")),
            id="no arguments are empty ones, an entry with nothing is none",
        ),
        pytest.param(
            [
                [entry("read", "{", index=0, id="x")],
                [entry("write", "[", index=0, id="y")],
                [entry(None, "}", index=0, id="x")],
                [entry(None, "]", index=0, id="y")],
            ],
            (ToolCall(id="x", name="read", arguments="{}"), ToolCall(id="y", name="write", arguments="[]")),
            id="index always 0, interleaved by id",
        ),
        pytest.param(
            [[entry("read", {"a": ["é", None]}, index=0, id="x")]],
            (ToolCall(id="x", name="read", arguments='{"a": ["é", null]}'),),
            id="arguments as an object",
        ),
        pytest.param(
            [[entry("read", '{"a": 1}', index=0, id="x")], [entry(None, '{"a": 2}', index=0)]],
            (ToolCall(id="x", name="read", arguments='{"a": 1}{"a": 2}'),),
            id="two objects in one string stay an error",
        ),
        pytest.param(
            [[entry("read", '{"a": ', index=0, id="x")]],
            (ToolCall(id="x", name="read", arguments='{"a": '),),
            id="cut arguments stay cut",
        ),
        pytest.param(
            [[{"index": "0", "id": 7, "function": None}, {"function": {"name": 5, "arguments": None}}, {}]],
            (),
            id="types that nobody expects",
        ),
    ],
)
def test_assembler_reads_each_style_of_deltas(lists: Lists, expected: tuple[ToolCall, ...]) -> None:
    assert assemble(lists) == expected


@pytest.mark.requirement("F50")
@pytest.mark.parametrize(
    "lists",
    [
        pytest.param([[entry("a", "{}", index=0), entry("a", "[]", index=1)]], id="with indexes"),
        pytest.param([[entry("a", "{}"), entry("a", "[]")]], id="in one list"),
        pytest.param([[entry("a", "{}")], [entry("a", "[]")]], id="in a list each"),
        pytest.param([[entry("a", "{}", index=0, id="")], [entry("a", "[]", index=0, id="")]], id="with index 0"),
        pytest.param([[entry("a"), entry("a", "[]")]], id="in one list, one without arguments"),
        pytest.param([[entry("a", "{}", index=0, id=None)], [entry("a", "[]", index=0, id=None)]], id="with null ids"),
    ],
)
def test_assembler_makes_ids_where_the_server_sends_none(lists: Lists) -> None:
    calls = assemble(lists)
    assert without_ids(calls) == [("a", "{}"), ("a", "[]")]
    assert [call.provider_id for call in calls] == [None, None]
    assert len({call.id for call in calls if call.id}) == 2


@pytest.mark.requirement("F50")
@pytest.mark.parametrize(
    "lists",
    [
        pytest.param([[entry("a", "{}", index=0, id="x"), entry("a", "[]", index=1, id="x")]], id="with indexes"),
        pytest.param([[entry("a", "{}", id="x")], [entry("a", "[]", id="x")]], id="without"),
        pytest.param([[entry("a", "{}", index=0, id="x")], [entry("a", "[]", index=0, id="x")]], id="with index 0"),
    ],
)
def test_assembler_tells_calls_with_one_id_apart(lists: Lists) -> None:
    first, second = assemble(lists)
    assert first == ToolCall(id="x", name="a", arguments="{}")
    assert second == ToolCall(id=second.id, name="a", arguments="[]", provider_id="x")
    assert second.id not in ("", "x")


# Any calls, in the style of any server, split anywhere.


@dataclass(frozen=True)
class Call:
    id: str
    name: tuple[str, ...]
    arguments: tuple[str, ...]

    @property
    def whole_name(self) -> str:
        return "".join(self.name)

    @property
    def whole_arguments(self) -> str:
        return "".join(self.arguments)


@st.composite
def pieces(draw: st.DrawFn, text: str) -> tuple[str, ...]:
    cuts = draw(st.lists(st.integers(min_value=0, max_value=len(text)), max_size=4))
    marks = [0, *sorted(cuts), len(text)]
    return tuple(text[start:end] for start, end in pairwise(marks) if start < end)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


NAMES = st.text("abcdefgh_0123", min_size=1, max_size=12)


@st.composite
def call_lists(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES) -> list[Call]:
    arguments = st.dictionaries(st.text(), JSON, max_size=4).map(json.dumps)
    numbers = count(1)
    return [
        Call(f"id{next(numbers)}", draw(pieces(draw(names))), draw(pieces(draw(arguments))))
        for _ in range(draw(st.integers(1, 4)))
    ]


def split_names(index: int | None, call: Call, later_id: Callable[[str], str | None]) -> Iterator[Entry]:
    """OpenAI's own way: id and name first, then pieces."""
    place = {} if index is None else {"index": index}
    yield entry(call.name[0], "", id=call.id, **place)
    for piece in call.name[1:]:
        yield entry(piece, None, id=later_id(call.id), **place)
    for piece in call.arguments:
        yield entry(None, piece, id=later_id(call.id), **place)


def repeated_names(index: int, call: Call) -> Iterator[Entry]:
    for piece in call.arguments:
        yield entry(call.whole_name, piece, id=call.id, index=index)


def in_turn(streams: list[Iterator[Entry]]) -> Lists:
    return [[item] for item in chain.from_iterable(streams)]


def side_by_side(streams: list[Iterator[Entry]]) -> Lists:
    rows: Lists = []
    while row := [item for stream in streams if (item := next(stream, None)) is not None]:
        rows.append(row)
    return rows


def whole(index: int | None, call: Call, arguments: object, **more: Any) -> Entry:
    place = {} if index is None else {"index": index}
    return entry(call.whole_name, arguments, **place, **more)


STYLES: dict[str, Callable[[list[Call]], Lists]] = {
    "id once": lambda calls: in_turn([split_names(i, call, lambda _: None) for i, call in enumerate(calls)]),
    "id empty later": lambda calls: in_turn([split_names(i, call, lambda _: "") for i, call in enumerate(calls)]),
    "id repeated": lambda calls: in_turn([split_names(i, call, str) for i, call in enumerate(calls)]),
    "interleaved": lambda calls: side_by_side([split_names(i, call, lambda _: None) for i, call in enumerate(calls)]),
    "index always 0": lambda calls: in_turn([split_names(0, call, lambda _: None) for call in calls]),
    "index always 0, interleaved": lambda calls: side_by_side([split_names(0, call, str) for call in calls]),
    "index absent": lambda calls: in_turn([split_names(None, call, lambda _: "") for call in calls]),
    "index absent, interleaved": lambda calls: side_by_side([split_names(None, call, str) for call in calls]),
    "name repeated": lambda calls: in_turn([repeated_names(i, call) for i, call in enumerate(calls)]),
    "whole calls": lambda calls: [[whole(None, call, call.whole_arguments, id=call.id)] for call in calls],
    "whole calls in one list": lambda calls: [[whole(None, call, call.whole_arguments, id=call.id) for call in calls]],
    "objects": lambda calls: [[whole(0, call, json.loads(call.whole_arguments), id=call.id)] for call in calls],
}


@pytest.mark.requirement("F50")
@pytest.mark.parametrize("style", STYLES)
@settings(deadline=None)
@given(calls=call_lists())
def test_assembler_gives_back_any_calls_in_any_style(style: str, calls: list[Call]) -> None:
    assembled = assemble(STYLES[style](calls))
    assert [(call.id, call.name, json.loads(call.arguments)) for call in assembled] == [
        (call.id, call.whole_name, json.loads(call.whole_arguments)) for call in calls
    ]


IDLESS: dict[str, Callable[[list[Call]], Lists]] = {
    "with indexes": lambda calls: [[whole(i, call, call.whole_arguments)] for i, call in enumerate(calls)],
    "with index 0": lambda calls: [[whole(0, call, call.whole_arguments, id="")] for call in calls],
    "without indexes": lambda calls: [[whole(None, call, call.whole_arguments)] for call in calls],
    "in one list": lambda calls: [[whole(None, call, call.whole_arguments) for call in calls]],
    "one id for all": lambda calls: [[whole(i, call, call.whole_arguments, id="x")] for i, call in enumerate(calls)],
}


@pytest.mark.requirement("F50")
@pytest.mark.parametrize("style", IDLESS)
@settings(deadline=None)
@given(calls=call_lists())
def test_assembler_gives_any_calls_ids_of_their_own(style: str, calls: list[Call]) -> None:
    assembled = assemble(IDLESS[style](calls))
    assert without_ids(assembled) == [(call.whole_name, call.whole_arguments) for call in calls]
    assert len({call.id for call in assembled}) == len(calls)


@pytest.mark.requirement("F50")
@settings(deadline=None)
@given(
    st.lists(
        st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "index": JSON,
                    "id": JSON,
                    "function": JSON | st.fixed_dictionaries({"name": JSON, "arguments": JSON}),
                },
            ),
            max_size=3,
        )
    )
)
def test_assembler_takes_any_nonsense_and_keeps_ids_unique(lists: Lists) -> None:
    calls = assemble(lists)
    assert len({call.id for call in calls}) == len(calls)


@pytest.mark.requirement("F50")
def test_assembler_takes_another_name_for_another_call_where_nothing_else_tells() -> None:
    assert without_ids(assemble([[entry("a", '{"cut', index=0)], [entry("b", "{}", index=0)]])) == [
        ("a", '{"cut'),
        ("b", "{}"),
    ]
