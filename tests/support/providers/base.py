"""A provider: what it refuses and how it answers. The base is the plain wire; each provider says where it differs."""

import json
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from tests.support.openai_server import (
    DONE,
    Answer,
    Json,
    OpenAIServer,
    RecordedRequest,
    chunk,
    event,
    tool_call,
    usage_chunk,
)

Call = tuple[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the model shall say next, whatever the provider makes of it on the wire."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""


class Provider:
    """``deviations`` are for the documentation; ``quirks`` are what an agent finds out in a turn with tools.

    ``quirks_of_others`` are found besides where another model has made the history. ``limit`` is the size of the
    context that its refusal tells, None where a long request is cut without a word.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    deviations: ClassVar[tuple[str, ...]]
    quirks: ClassVar[dict[str, bool | str]] = {}
    quirks_of_others: ClassVar[dict[str, bool | str]] = {}
    limit: ClassVar[int | None] = 8192
    asks_for_key: ClassVar[bool] = True
    knows_models: ClassVar[bool] = True

    def refusal(self, body: Json) -> Answer | None:
        """Why it does not take a request; None if it does."""
        return None

    def says(self, turn: Turn) -> Answer:
        """A turn as a stream."""
        return stream(
            chunk({"role": "assistant", "content": ""}),
            *self.reasoning(turn.reasoning),
            *(chunk({"content": piece}) for piece in halves(turn.text)),
            *self.call_chunks(turn.calls),
            chunk(finish_reason=self.finish(turn)),
            usage_chunk(10, 5),
        )

    def finish(self, turn: Turn) -> str:
        return "tool_calls" if turn.calls else "stop"

    def reasoning(self, text: str) -> list[Json]:
        return [chunk({"reasoning": piece}) for piece in halves(text)]

    def call_chunks(self, calls: tuple[Call, ...]) -> list[Json]:
        """Calls as OpenAI streams them: the head, then the arguments in pieces."""
        chunks = []
        for index, (name, arguments) in enumerate(calls):
            chunks.append(chunk({"tool_calls": [tool_call(index, self.call_id(index), name, "")]}))
            pieces = ({"index": index, "function": {"arguments": piece}} for piece in halves(json.dumps(arguments)))
            chunks += [chunk({"tool_calls": [piece]}) for piece in pieces]
        return chunks

    def call_id(self, index: int) -> str:
        return f"call_{'abcdefgh'[index] * 8}"

    # Refusals of other kinds

    def overflow(self) -> Answer:
        raise NotImplementedError

    def bad_key(self) -> Answer:
        raise NotImplementedError

    def unknown_model(self) -> Answer:
        raise NotImplementedError

    def busy(self) -> Answer:
        """A refusal that passes; every one of them asks for a wait of 20 ms, in its own way or not at all."""
        raise NotImplementedError


class ProviderServer(OpenAIServer):
    """A provider over HTTP: refuses as it does, else says the next turn."""

    def __init__(self, provider: Provider, *turns: Turn | Answer) -> None:
        super().__init__()
        self.provider = provider
        self.refused: list[Answer] = []
        self._turns = deque(turns)

    def take(self, request: RecordedRequest) -> Answer:
        refusal = self.provider.refusal(request.body)
        if refusal is not None:
            self.requests.append(request)
            self.refused.append(refusal)
            return refusal
        if not self._turns:
            return super().take(request)
        self.requests.append(request)
        turn = self._turns.popleft()
        return turn if isinstance(turn, Answer) else self.provider.says(turn)

    def assert_consumed(self) -> None:
        super().assert_consumed()
        assert not self._turns


def stream(*payloads: Json, done: bytes = DONE, between: bytes = b"") -> Answer:
    """Chunks as a stream, with bytes ``between`` them."""
    return Answer(pieces=(*(between + event(payload) for payload in payloads), done))


def refused(status: int, body: Any, **headers: str) -> Answer:
    """An error status with a JSON body."""
    pieces = (json.dumps(body).encode(),)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(pieces=pieces, status=status, headers=named, content_type="application/json")


def halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def roles(body: Json) -> list[str]:
    return [message["role"] for message in body["messages"]]


def alternates(body: Json) -> bool:
    """Whether user and assistant take turns, calls with their results aside."""
    spoken = [
        message["role"]
        for message in body["messages"]
        if message["role"] in ("user", "assistant") and not message.get("tool_calls")
    ]
    after_tool = any(pair == ("tool", "user") for pair in pairwise(roles(body)))
    return not after_tool and all(a != b for a, b in pairwise(spoken))


def late_system(body: Json) -> bool:
    return "system" in roles(body)[1:]
