"""One reply out of the bytes of one answer, without a network: bytes in, chunks out, a Reply at the end (F50 to F52).

Invariant: a Reply comes out only if the server said that it was through, by ``[DONE]`` or by a finish reason.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import replace

from agent_lsp.messages import AssistantMessage, JsonObject, JsonValue, Usage
from agent_lsp.models.assembler import ToolCallAssembler
from agent_lsp.models.base import FinishReason, ReasoningChunk, Reply, TextChunk
from agent_lsp.models.failures import failure_in
from agent_lsp.models.faults import TransientFault, judge
from agent_lsp.models.schema_tools import read_reply
from agent_lsp.models.settings import OpenAIChatSettings, Prices
from agent_lsp.models.sse import EventDecoder

_FINISH_REASONS: dict[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
}


class ReplyReader:
    """Reads one answer. ``done`` says that ``[DONE]`` was seen; nothing after it is read.

    ``document`` is for servers that answer with one JSON document where a stream was asked for. ``tools`` are the
    names that the request offered.
    """

    def __init__(self, settings: OpenAIChatSettings, *, tools: Collection[str] = (), document: bool = False) -> None:
        self.done = False
        self._settings = settings
        self._document: list[bytes] | None = [] if document else None
        self._decoder = EventDecoder()
        self._calls = ToolCallAssembler(tools)
        self._by_schema = bool(tools) and bool(settings.quirks.get("tools_by_schema"))
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._finish_reason = ""
        self._usage = Usage()

    @property
    def complete(self) -> bool:
        """Whether what was read is a whole answer, however the stream ended."""
        return self.done or bool(self._finish_reason)

    def feed(self, data: bytes) -> Iterator[TextChunk | ReasoningChunk]:
        """What these bytes show. Raises TransientFault or ModelError for an error inside the stream."""
        if self._document is not None:
            self._document.append(data)
            return
        for event in self._decoder.feed(data):
            yield from self._read_event(event)

    def end(self) -> Iterator[TextChunk | ReasoningChunk | Reply]:
        """What is left at the end of the bytes, and the Reply. Raises TransientFault if the answer is not whole."""
        if self._document is not None:
            yield from self._read_event(b"".join(self._document).decode(errors="replace"))
        for event in self._decoder.finish():
            yield from self._read_event(event)
        calls = self._calls.calls()
        if not (self._finish_reason or (self.done and (calls or self._text))):
            raise TransientFault("the answer ended in the middle")
        text = "".join(self._text)
        if self._by_schema and not calls:
            text, calls = read_reply(text)
            if text:
                yield TextChunk(text=text)
        message = AssistantMessage(content=text, tool_calls=calls, reasoning="".join(self._reasoning))
        finish_reason = _FINISH_REASONS.get(self._finish_reason, "tool_calls" if calls else "stop")
        yield Reply(message=message, finish_reason=finish_reason, usage=self._usage)

    def _read_event(self, data: str) -> Iterator[TextChunk | ReasoningChunk]:
        if self.done or data.strip() == "[DONE]":
            self.done = True
            return
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise TransientFault("the answer has an unreadable part") from error
        if isinstance(chunk, dict):
            yield from self._read_chunk(chunk)

    def _read_chunk(self, chunk: JsonObject) -> Iterator[TextChunk | ReasoningChunk]:
        failure = failure_in(chunk)
        if failure is not None:
            raise judge(failure, self._settings)
        choices = _objects(chunk.get("choices"))[:1]
        for holder in (chunk, chunk.get("x_groq"), *choices):
            if isinstance(holder, dict) and isinstance(usage := holder.get("usage"), dict):
                self._usage = _usage_of(usage, self._settings.prices)
        for choice in choices:
            if isinstance(reason := choice.get("finish_reason"), str):
                self._finish_reason = reason.lower() or self._finish_reason
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, dict):
                yield from self._read_delta(delta)

    def _read_delta(self, delta: JsonObject) -> Iterator[TextChunk | ReasoningChunk]:
        reasoning = _text_of(delta.get("reasoning_content")) or _text_of(delta.get("reasoning"))
        reasoning += _text_of(delta.get("content"), kinds=_REASONING_KINDS)
        if reasoning:
            self._reasoning.append(reasoning)
            yield ReasoningChunk(text=reasoning)
        text = _text_of(delta.get("content")) + _text_of(delta.get("refusal"))
        if text:
            self._text.append(text)
            if not self._by_schema:  # there it is JSON, and for people only when it is read
                yield TextChunk(text=text)
        self._calls.feed(_objects(delta.get("tool_calls")))
        if isinstance(function := delta.get("function_call"), dict):
            self._calls.feed([{"index": 0, "function": function}])


_TEXT_KINDS = ("text", "output_text", "refusal")
_REASONING_KINDS = ("thinking", "reasoning")


def _text_of(content: JsonValue, kinds: tuple[str, ...] = _TEXT_KINDS) -> str:
    """Text of a string or of a list of parts; of parts only those of the given kinds."""
    if isinstance(content, str):
        return content if kinds is _TEXT_KINDS else ""
    return "".join(_part_text(part) for part in _objects(content) if part.get("type") in kinds)


def _part_text(part: JsonObject) -> str:
    """A part holds its text under its own type, as a string or as parts again."""
    value = part.get(str(part["type"])) or part.get("text")
    return value if isinstance(value, str) else _text_of(value)


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _usage_of(usage: JsonObject, prices: Prices | None) -> Usage:
    """Counts and cost: as the server bills them, else by the prices that are set."""
    details, cost = usage.get("prompt_tokens_details"), usage.get("cost")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    counted = Usage(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(cached),
    )
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        return replace(counted, cost=float(cost))
    return counted if prices is None else replace(counted, cost=prices.of(counted))


def _count(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0
