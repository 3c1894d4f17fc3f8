"""Asks a model the two questions of the doctor: call a tool, and say something about its result."""

import json
from contextlib import aclosing
from dataclasses import dataclass, replace

from agent_lsp.messages import ChatMessage, ToolMessage, ToolSchema, UserMessage
from agent_lsp.models.base import ModelRequest, ReasoningChunk, Reply, RetryWait, TextChunk
from agent_lsp.models.openai_chat import OpenAIChatModel
from agent_lsp.models.quirks import QUIRKS
from agent_lsp.models.settings import Backoff

_SYSTEM = "You are being tested. Do exactly what is asked, briefly."
_WORD = "ready"
_TOOL = ToolSchema(
    name="report",
    description="Report a word.",
    parameters={
        "type": "object",
        "properties": {"word": {"type": "string", "description": "the word"}},
        "required": ["word"],
        "additionalProperties": False,
    },
)
_QUESTION = UserMessage(
    content=f'Use the tool report once, with the word "{_WORD}". Then count from one to ten in words.'
)
QUICK = Backoff(base=0.2, cap=10.0, retries=2, unreachable_retries=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What came of it; ``pieces`` is in how many pieces the longer answer came."""

    called: bool
    by_schema: bool
    answered: bool
    pieces: int
    notices: tuple[str, ...] = ()


async def probe(model: OpenAIChatModel) -> Probe:
    """Ask, with tools, and if that brings no call, by schema, which is then remembered. Raises ModelError."""
    found = await _ask_twice(model)
    if found.called or model.quirks.get("tools_by_schema") is not None:
        return found
    by_schema = OpenAIChatModel(replace(model.settings, quirks={**model.quirks, "tools_by_schema": True}))
    try:
        other = await _ask_twice(by_schema)
    finally:
        await by_schema.aclose()
    if not other.called:
        return found
    model.add_quirk(next(quirk for quirk in QUIRKS if quirk.name == "tools_by_schema"))
    return replace(other, notices=(*found.notices, *other.notices))


async def _ask_twice(model: OpenAIChatModel) -> Probe:
    reply, pieces, notices = await _ask(model, _QUESTION)
    calls = reply.message.tool_calls
    called = len(calls) > 0 and calls[0].name == _TOOL.name and _is_right(calls[0].arguments)
    if called:
        results = (ToolMessage(tool_call_id=call.id, content="reported") for call in calls)
        reply, pieces, more = await _ask(model, _QUESTION, reply.message, *results)
        notices += more
    return Probe(
        called=called,
        by_schema=bool(model.quirks.get("tools_by_schema")),
        answered=bool(reply.message.content.strip()),
        pieces=pieces,
        notices=notices,
    )


def _is_right(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments).get("word"), str)
    except (ValueError, AttributeError):
        return False


async def _ask(model: OpenAIChatModel, *messages: ChatMessage) -> tuple[Reply, int, tuple[str, ...]]:
    pieces, notices = 0, tuple[str, ...]()
    request = ModelRequest(system=_SYSTEM, messages=messages, tools=(_TOOL,))
    async with aclosing(model.stream(request)) as stream:
        async for event in stream:
            match event:
                case TextChunk() | ReasoningChunk():
                    pieces += 1
                case RetryWait():
                    notices += (event.reason,)
                case Reply():
                    return event, pieces, notices
    raise AssertionError("a stream ends with a reply")
