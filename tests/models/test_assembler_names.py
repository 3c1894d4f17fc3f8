"""Names of tools tell where a call ends, if nothing else does."""

import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_lsp.messages import ToolSchema
from agent_lsp.models.base import ModelRequest, Reply
from tests.models.test_assembler import STYLES, Call, Entry, Lists, assemble, call_lists, entry, in_turn, without_ids
from tests.models.test_openai_chat import model_at
from tests.support.openai_server import OpenAIServer, chunk

TOOLS = ("list_files", "read", "read_file", "search", "x", "y", "xx")


@pytest.mark.requirement("F50")
@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        pytest.param(
            [[entry("list_files")], [entry("read_file", "{}")]],
            [("list_files", "{}"), ("read_file", "{}")],
            id="nothing but names",
        ),
        pytest.param(
            [[entry("x", id="d")], [entry("y", id="d")]], [("x", "{}"), ("y", "{}")], id="index absent, one id for two"
        ),
        pytest.param(
            [[entry("x", index=0)], [entry("y", "", index=0)], [entry(None, "[]", index=0)]],
            [("x", "{}"), ("y", "[]")],
            id="index always 0, no ids",
        ),
        pytest.param(
            [[entry("x", "", index=0, id="d")], [entry("x", "", index=0, id="d")], [entry("x", index=0, id="d")]],
            [("x", "{}")],
            id="name repeated without arguments",
        ),
        pytest.param(
            [[entry("x", "", index=0)], [entry("x", "", index=1)]], [("x", "{}"), ("x", "{}")], id="the index tells"
        ),
        pytest.param([[entry("x", id="a")], [entry("x", id="b")]], [("x", "{}"), ("x", "{}")], id="the id tells"),
        pytest.param(
            [[entry("x", "", index=0, id="d"), entry("x", "[]", index=0, id="d")]],
            [("x", "{}"), ("x", "[]")],
            id="the position tells",
        ),
        pytest.param(
            [[entry("x", "{", index=0, id="d"), entry("x", "}", index=0, id="d")]],
            [("x", "{}")],
            id="deltas of one call in one list",
        ),
        pytest.param(
            [[entry("re", "", index=0), entry("ad", "", index=0), entry(None, "{}", index=0)]],
            [("read", "{}")],
            id="pieces of one name in one list",
        ),
        pytest.param(
            [[entry("x", "{}")], [entry("y", "")], [entry(None, "[]")]],
            [("x", "{}"), ("y", "[]")],
            id="arguments behind a name of their own",
        ),
        pytest.param(
            [[entry("gone")], [entry("read", "{}")]], [("gone", "{}"), ("read", "{}")], id="a tool that is none, first"
        ),
        pytest.param(
            [[entry("go", index=0)], [entry("ne", "", index=0)]], [("gone", "{}")], id="a tool that is none, split"
        ),
        pytest.param(
            [[entry("read", "", index=0)], [entry("_fi", index=0)], [entry("le", "{}", index=0)]],
            [("read_file", "{}")],
            id="a tool whose name begins with another's",
        ),
    ],
)
def test_assembler_knows_names_by_the_tools_of_the_request(lists: Lists, expected: list[tuple[str, str]]) -> None:
    assert without_ids(assemble(lists, TOOLS)) == expected


def names_first(place: Entry, call: Call) -> Iterator[Entry]:
    """The name on every delta, also on those without arguments."""
    for piece in ("", *call.arguments, ""):
        yield entry(call.whole_name, piece, **place)


KNOWING: dict[str, Callable[[list[Call]], Lists]] = {
    **STYLES,
    "name on every delta": lambda calls: in_turn([names_first({"index": 0, "id": call.id}, call) for call in calls]),
    "the same without index": lambda calls: in_turn([names_first({"id": call.id}, call) for call in calls]),
}


@pytest.mark.requirement("F50")
@pytest.mark.parametrize("style", KNOWING)
@settings(deadline=None)
@given(calls=call_lists(st.sampled_from(["list_files", "read", "read_file", "search"])))
def test_assembler_gives_back_any_calls_of_known_tools(style: str, calls: list[Call]) -> None:
    assembled = assemble(KNOWING[style](calls), TOOLS)
    assert [(call.id, call.name, json.loads(call.arguments)) for call in assembled] == [
        (call.id, call.whole_name, json.loads(call.whole_arguments)) for call in calls
    ]


@pytest.mark.requirement("F50")
async def test_model_passes_on_the_names_of_the_tools() -> None:
    tools = tuple(ToolSchema(name=name, description="", parameters={}) for name in TOOLS)
    request = ModelRequest(system="", messages=[], tools=tools)
    with OpenAIServer() as server:
        deltas = [chunk({"tool_calls": [entry(name, "", index=0)]}) for name in ("list_files", "read_file")]
        server.reply_chunks(*deltas, chunk(finish_reason="tool_calls"))
        async with model_at(server.base_url) as model:
            [reply] = [event async for event in model.stream(request)]
    assert isinstance(reply, Reply)
    assert without_ids(reply.message.tool_calls) == [("list_files", "{}"), ("read_file", "{}")]
