"""What a model is to the agent: one streamed answer to one request.

Invariant: a stream yields any number of chunks and waits, then exactly one Reply, last. Everything odd about a
server has been put right before it gets here.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from agent_lsp.messages import AssistantMessage, ChatMessage, ToolSchema, Usage

FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """``messages`` is the live history, paired; it must not be kept or changed. ``system`` is the standing prompt."""

    system: str
    messages: Sequence[ChatMessage]
    tools: tuple[ToolSchema, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChunk:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningChunk:
    """A piece of the model's reasoning, for display."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryWait:
    """The request failed in a way that passes; it is sent again after ``delay`` seconds (F54).

    Chunks seen before a RetryWait belong to the failed attempt and are void.
    """

    attempt: int
    delay: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The whole answer."""

    message: AssistantMessage
    finish_reason: FinishReason
    usage: Usage = field(default_factory=Usage)


ModelEvent: TypeAlias = TextChunk | ReasoningChunk | RetryWait | Reply


class Model(Protocol):
    """Something that answers a request; implementations hold their own connection."""

    @property
    def name(self) -> str:
        """The model's name, for people."""
        ...

    @property
    def input_limit(self) -> int | None:
        """How many tokens a request may have; None where that is not known."""
        ...

    def connect(self) -> object:
        """Get ready ahead of the first request; blocks, sends nothing, and may be left out."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream one answer. Raises ModelError where the endpoint fails for good; closing it ends the request."""
        ...
