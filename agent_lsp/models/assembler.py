"""Tool calls out of streamed deltas, from servers that agree on little (F50).

Invariant: every call comes out once, in the order in which the calls began, under an id that no other call of the
message has. Argument text is passed on as it came: whether it is JSON is for ``tools.registry`` to judge.
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_lsp.messages import JsonObject, JsonValue, ToolCall


def new_call_id() -> str:
    """An id for a call whose server sent none, or one that is taken."""
    return f"call_{uuid.uuid4().hex}"


@dataclass(slots=True, kw_only=True)
class _OpenCall:
    """A call that may still grow; argument text is kept in pieces, so that long ones stay linear."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def is_followed_by(self, delta: "_Delta") -> bool:
        """Whether a delta addressed to this call really begins the next one.

        Only a delta that brings a name can begin a call. It does so with an id of its own (servers whose index is
        always 0), or, where ids do not tell, if this call's arguments are there already and the delta brings
        arguments for another tool, or more of them after a whole JSON value.
        """
        if not (self.name and delta.name):
            return False
        if self.id and delta.id and self.id != delta.id:
            return True
        if not (self.pieces and delta.arguments.strip()):
            return False
        return self.name != delta.name or (self.pieces[-1].rstrip().endswith("}") and _is_json(self.arguments))

    def grow(self, delta: "_Delta") -> None:
        """Add a delta. A name that comes along with arguments and is the one we have is repeated, not continued."""
        repeated = delta.name == self.name and (self.pieces or delta.arguments)
        self.id = self.id or delta.id
        self.name += "" if repeated else delta.name
        if delta.arguments:
            self.pieces.append(delta.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delta:
    """One entry of ``delta.tool_calls``, with what is absent, null or of a wrong type read as empty."""

    index: int | None
    id: str
    name: str
    arguments: str

    @classmethod
    def read(cls, entry: JsonObject) -> "_Delta":
        index, call_id, function = entry.get("index"), entry.get("id"), entry.get("function")
        if not isinstance(function, dict):
            function = {}
        name = function.get("name")
        return cls(
            index=index if isinstance(index, int) else None,
            id=call_id if isinstance(call_id, str) else "",
            name=name if isinstance(name, str) else "",
            arguments=_argument_text(function.get("arguments")),
        )


class ToolCallAssembler:
    """Collects the deltas of one message."""

    def __init__(self) -> None:
        self._calls: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}
        self._by_id: dict[str, _OpenCall] = {}

    def feed(self, entries: Sequence[JsonObject]) -> None:
        """Take the ``tool_calls`` list of one delta."""
        for position, entry in enumerate(entries):
            delta = _Delta.read(entry)
            call = self._addressed(delta, alone=position == 0)
            if call is None or call.is_followed_by(delta):
                call = _OpenCall()
                self._calls.append(call)
            if delta.index is not None:
                self._by_index[delta.index] = call
            if delta.id:
                self._by_id[delta.id] = call
            call.grow(delta)

    def _addressed(self, delta: _Delta, *, alone: bool) -> _OpenCall | None:
        """The call that a delta continues: by index, else by id, else the last one.

        Without an index, a name begins a new call if it comes with an unknown id or behind another entry of its list.
        """
        if delta.index is not None:
            return self._by_index.get(delta.index)
        if delta.id in self._by_id:
            return self._by_id[delta.id]
        if not self._calls or (delta.name and (delta.id or not alone)):
            return None
        return self._calls[-1]

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls so far; entries that never got a name or arguments are dropped."""
        taken: set[str] = set()
        finished: list[ToolCall] = []
        for call in self._calls:
            if call.name or call.pieces:
                arguments = call.arguments
                call_id = call.id if call.id and call.id not in taken else new_call_id()
                taken.add(call_id)
                finished.append(
                    ToolCall(
                        id=call_id,
                        name=call.name,
                        arguments=arguments if arguments.strip() else "{}",
                        provider_id=call.id if call.id and call.id != call_id else None,
                    )
                )
        return tuple(finished)


def _argument_text(value: JsonValue) -> str:
    """Argument text as sent; servers that send the parsed value get it encoded."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
