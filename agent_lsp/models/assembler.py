"""Tool calls out of streamed deltas, from servers that agree on little (F50).

Invariant: every call comes out once, in the order in which the calls began, under an id that no other call of the
message has. Argument text is passed on as it came: whether it is JSON is for ``tools.registry`` to judge. The names of
the tools only help to tell a name in pieces from a name that is repeated and from the next call's.
"""

import json
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from agent_lsp.messages import JsonObject, JsonValue, ToolCall


def new_call_id() -> str:
    """An id for a call whose server sent none, or one that is taken."""
    return f"call_{uuid.uuid4().hex}"


@dataclass(slots=True, kw_only=True, eq=False)
class _OpenCall:
    """A call that may still grow; argument text is kept in pieces, so that long ones stay linear."""

    id: str = ""
    name: str = ""
    extra: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def is_followed_by(self, delta: "_Delta", tools: Collection[str], *, again: bool) -> bool:
        """Whether a delta addressed to this call, perhaps ``again`` in one list, really begins the next one.

        Only a delta that brings a name can begin a call. It does so with an id of its own (servers whose index is
        always 0), or, where ids do not tell, if the name is another tool's, or if it is the same one again in a list,
        or once more with arguments after a whole JSON value.
        """
        if not (self.name and delta.name):
            return False
        if self.id and delta.id and self.id != delta.id:
            return True
        if self.name != delta.name:
            return bool(self.pieces) or self._is_whole_before(delta.name, tools)
        if not self.pieces:
            return again
        return bool(delta.arguments.strip()) and self.pieces[-1].rstrip().endswith("}") and _is_json(self.arguments)

    def _is_whole_before(self, name: str, tools: Collection[str]) -> bool:
        """Whether the name so far and the next one stand for two tools rather than for pieces of one name."""
        known = (self.name in tools, name in tools)
        return all(known) or (any(known) and not any(tool.startswith(self.name + name) for tool in tools))

    def grow(self, delta: "_Delta", tools: Collection[str]) -> None:
        """Add a delta. The name that we have is repeated, not continued, if it is whole or comes with arguments."""
        repeated = delta.name == self.name and (self.pieces or delta.arguments or self.name in tools)
        self.id = self.id or delta.id
        self.extra = delta.extra or self.extra
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
    extra: str

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
            extra=_argument_text(entry.get("extra_content") or None),
        )


class ToolCallAssembler:
    """Collects the deltas of one message. ``tools`` are the names that the request offered."""

    def __init__(self, tools: Collection[str] = ()) -> None:
        self._tools = tools
        self._calls: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}
        self._by_id: dict[str, _OpenCall] = {}

    def feed(self, entries: Sequence[JsonObject]) -> None:
        """Take the ``tool_calls`` list of one delta."""
        fed: list[_OpenCall] = []
        for entry in entries:
            delta = _Delta.read(entry)
            call = self._addressed(delta, alone=not fed)
            if call is None or call.is_followed_by(delta, self._tools, again=call in fed):
                call = _OpenCall()
                self._calls.append(call)
            fed.append(call)
            if delta.index is not None:
                self._by_index[delta.index] = call
            if delta.id:
                self._by_id[delta.id] = call
            call.grow(delta, self._tools)

    def _addressed(self, delta: _Delta, *, alone: bool) -> _OpenCall | None:
        """The call that a delta continues: by index, unless that call has another id than a known one; by id; the last.

        Without an index, a name begins a new call if it comes with an unknown id or behind another entry of its list.
        """
        by_id = self._by_id.get(delta.id)
        if delta.index is not None:
            indexed = self._by_index.get(delta.index)
            return by_id if by_id and indexed and indexed.id not in ("", delta.id) else indexed
        if by_id:
            return by_id
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
                        extra=call.extra,
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
