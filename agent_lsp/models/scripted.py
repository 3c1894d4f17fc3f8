"""A model that plays a script: for tests, for the demo, for whoever wants to see the agent without a network.

Invariant: it never makes anything up. A request beyond the script is an error, and so is a script left over.
"""

import json
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import anyio.lowlevel

from agent_lsp.messages import AssistantMessage, ChatMessage, JsonObject, ToolCall, ToolSchema, Usage, thaw
from agent_lsp.models.base import ModelEvent, ModelRequest, ReasoningChunk, Reply, TextChunk

Step: TypeAlias = "Reply | Exception | Callable[[ModelRequest], Step]"
"""What is played for one request: a reply, an exception to raise, or a function of the request that gives a step."""


def says(text: str, *, reasoning: str = "", usage: Usage | None = None) -> Reply:
    """A reply of text alone."""
    message = AssistantMessage(content=text, reasoning=reasoning)
    return Reply(message=message, finish_reason="stop", usage=usage or Usage())


def calls(*named: tuple[str, JsonObject], text: str = "", usage: Usage | None = None) -> Reply:
    """A reply that calls tools; the calls get the ids ``call_1``, ``call_2`` and so on."""
    tool_calls = tuple(
        ToolCall(id=f"call_{number}", name=name, arguments=json.dumps(thaw(arguments), ensure_ascii=False))
        for number, (name, arguments) in enumerate(named, start=1)
    )
    message = AssistantMessage(content=text, tool_calls=tool_calls)
    return Reply(message=message, finish_reason="tool_calls", usage=usage or Usage())


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """A request as it was when it was made; the history it came from has grown since."""

    system: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSchema, ...]


class ScriptedModel:
    """Plays one step a request, in order, and keeps the requests."""

    def __init__(self, script: Iterable[Step], *, name: str = "scripted", input_limit: int | None = None) -> None:
        self.name = name
        self.input_limit = input_limit
        self.requests: list[RecordedRequest] = []
        self._script = list(script)

    def connect(self) -> None:
        """There is nothing to connect to."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Play the next step. Raises AssertionError beyond the end of the script."""
        reply = self._next_reply(request)
        for piece in _pieces(reply.message.reasoning):
            await anyio.lowlevel.checkpoint()
            yield ReasoningChunk(text=piece)
        for piece in _pieces(reply.message.content):
            await anyio.lowlevel.checkpoint()
            yield TextChunk(text=piece)
        await anyio.lowlevel.checkpoint()
        yield reply

    def _next_reply(self, request: ModelRequest) -> Reply:
        number = len(self.requests)
        self.requests.append(
            RecordedRequest(system=request.system, messages=tuple(request.messages), tools=request.tools)
        )
        if number >= len(self._script):
            raise AssertionError(f"The script has {len(self._script)} steps and was asked for one more")
        step = self._script[number]
        while not isinstance(step, Reply):
            if isinstance(step, Exception):
                raise step
            step = step(request)
        return step

    def assert_consumed(self) -> None:
        """Raise AssertionError unless the whole script was played, and no more than it."""
        if len(self.requests) != len(self._script):
            raise AssertionError(f"The script has {len(self._script)} steps, {len(self.requests)} were asked for")


def _pieces(text: str) -> list[str]:
    """A few pieces of a text, as a server would stream it."""
    size = max(1, -(-len(text) // 3))
    return [text[start : start + size] for start in range(0, len(text), size)]
