"""The lines of a stored session: what they are, and what they come to when they are read again.

Invariant: a history is rebuilt through ``Transcript.append`` alone, so that what is read is as valid as what was
written. Reading ends at the first line that does not fit; what stands before it counts.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agent_lsp.errors import TranscriptError
from agent_lsp.messages import (
    AssistantMessage,
    ChatMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    Transcript,
    Usage,
    UserMessage,
)
from agent_lsp.session.file_state import Change, FileState

Record: TypeAlias = dict[str, Any]
Migration: TypeAlias = Callable[[Record], Record]

FORMAT = 1
MIGRATIONS: Mapping[int, Migration] = {}
"""What makes a record of the next format of one of this; the first record of a file says which format it has."""


def encoded(record: Mapping[str, Any]) -> bytes:
    """A record as its line. In ASCII: a half of a line is never a half of a character, and surrogates survive."""
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def message_record(message: ChatMessage) -> Record:
    """A message as a record."""
    match message:
        case UserMessage():
            return {"type": "user", "content": message.content, **({"injected": True} if message.injected else {})}
        case SystemMessage():
            return {"type": "system", "content": message.content}
        case ToolMessage():
            return {"type": "tool", "call": message.tool_call_id, "content": message.content}
        case AssistantMessage():
            record: Record = {"type": "assistant", "content": message.content}
            if message.reasoning:
                record["reasoning"] = message.reasoning
            if message.tool_calls:
                record["calls"] = [_call_record(call) for call in message.tool_calls]
            return record


def _call_record(call: ToolCall) -> Record:
    record = {"id": call.id, "name": call.name, "arguments": call.arguments}
    if call.provider_id is not None:
        record["provider_id"] = call.provider_id
    return {**record, "extra": call.extra} if call.extra else record


def view_record(view: Iterable[ChatMessage]) -> Record:
    """What the model is shown from here on in the place of everything before."""
    return {"type": "view", "messages": [message_record(message) for message in view]}


def message_of(record: Record) -> ChatMessage:
    """The message of a record. Raises for one that holds none."""
    content = _text(record["content"])
    match record["type"]:
        case "user":
            return UserMessage(content=content, injected=record.get("injected") is True)
        case "system":
            return SystemMessage(content=content)
        case "tool":
            return ToolMessage(tool_call_id=_text(record["call"]), content=content)
        case "assistant":
            calls = tuple(map(_call_of, record.get("calls", ())))
            return AssistantMessage(content=content, tool_calls=calls, reasoning=_text(record.get("reasoning", "")))
        case kind:
            raise ValueError(f"{kind} is no message")


def _call_of(record: Record) -> ToolCall:
    return ToolCall(
        id=_text(record["id"]),
        name=_text(record["name"]),
        arguments=_text(record["arguments"]),
        provider_id=record.get("provider_id"),
        extra=_text(record.get("extra", "")),
    )


@dataclass(slots=True, kw_only=True)
class StoredTurn:
    """One prompt and what came of it; times in seconds since the epoch. ``ended`` is None for one that was cut off."""

    id: str
    prompt: str
    began: float
    first_message: int
    ended: float | None = None
    stop_reason: str = ""
    text: str = ""
    error: str | None = None
    usage: Usage = field(default_factory=Usage)
    changes: dict[str, Change] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What of the changes is not covered."""
    undone: bool = False


def title_of(turns: Iterable[StoredTurn]) -> str:
    """What a session is called: the first line of its first prompt."""
    return next((line.strip() for turn in turns for line in turn.prompt.splitlines() if line.strip()), "")


class Replay:
    """What a session's lines come to; ``size`` is how many of its bytes are good, ``problem`` says what ended them."""

    def __init__(self) -> None:
        self.id = ""
        self.root = ""
        self.created = 0.0
        self.format = 0
        self.transcript = Transcript()
        self.turns: list[StoredTurn] = []
        self.tasks: list[Record] = []
        self.begun_calls: set[str] = set()
        """The calls of the last answer whose handlers had begun."""
        self.size = 0
        self.problem = ""

    @property
    def title(self) -> str:
        """The first line of the first prompt."""
        return title_of(self.turns)

    @property
    def updated(self) -> float:
        last = self.turns[-1] if self.turns else None
        return self.created if last is None else last.ended or last.began

    def turn(self, id_: str) -> StoredTurn | None:
        return next((turn for turn in reversed(self.turns) if turn.id == id_), None)

    def take(self, record: Record) -> None:
        """Take the next record. Raises for one that does not fit; one of an unknown kind is left out."""
        take = _TAKE.get(record["type"])
        if take is not None:
            take(self, record)

    def close_calls(self) -> list[ChatMessage]:
        """Answer the calls that were cut off, without running any again (F61); gives the answers."""
        before = len(self.transcript)
        self.transcript.close_open_calls(lambda id_: UNKNOWN_OUTCOME if id_ in self.begun_calls else NOT_RUN)
        return list(self.transcript[before:])


UNKNOWN_OUTCOME = ToolResult.error(
    "unknown_outcome",
    "The program was ended while this call ran. Whether, and how far, it took effect is not known, and it was not run "
    "again: look at what is there before you do",
)
NOT_RUN = ToolResult.error("not_run", "The program was ended before this call was run; it had no effect")


def replay(data: bytes, *, format_: int = FORMAT, migrations: Mapping[int, Migration] = MIGRATIONS) -> Replay:
    """Read a session's lines. A last line that is not complete is what a kill leaves and no problem."""
    found = Replay()
    lines = data.decode("ascii", "replace").split("\n")
    lines.pop()
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if number == 1:
                _check_head(record, format_)
                found.format = record["format"]
            for step in range(found.format, format_):
                record = migrations[step](record)
            found.take(record)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, TranscriptError) as error:
            found.problem = f"line {number} cannot be used ({type(error).__name__}: {error})"
            break
        found.size += len(line) + 1
    return found


class NewerFormat(Exception):
    """A session that a later version of this program has written."""


def _check_head(record: Record, format_: int) -> None:
    if record["type"] != "session" or not isinstance(record["format"], int) or record["format"] < 1:
        raise ValueError("not a session")
    if record["format"] > format_:
        raise NewerFormat(f"its format is {record['format']}, and this version of agent-lsp knows up to {format_}")


def _take_head(found: Replay, record: Record) -> None:
    found.id, found.root, found.created = _text(record["id"]), _text(record["root"]), float(record["created"])


def _take_message(found: Replay, record: Record) -> None:
    found.transcript.append(message_of(record))
    if record["type"] == "assistant":
        found.begun_calls.clear()


def _take_view(found: Replay, record: Record) -> None:
    found.transcript.shorten(map(message_of, record["messages"]))


def _take_turn(found: Replay, record: Record) -> None:
    turn = StoredTurn(
        id=_text(record["id"]),
        prompt=_text(record["prompt"]),
        began=float(record["at"]),
        first_message=len(found.transcript),
    )
    found.turns.append(turn)


def _take_started(found: Replay, record: Record) -> None:
    found.begun_calls.add(_text(record["call"]))


def _take_change(found: Replay, record: Record) -> None:
    turn = found.turn(record["turn"])
    if turn is not None:
        change = turn.changes.get(record["path"])
        before = FileState(**record["before"]) if change is None else change.before
        after = None if record["after"] is None else FileState(**record["after"])
        turn.changes[_text(record["path"])] = Change(before=before, after=after, mixed=record.get("mixed") is True)


def _take_note(found: Replay, record: Record) -> None:
    turn = found.turn(record["turn"])
    if turn is not None and record["text"] not in turn.notes:
        turn.notes.append(_text(record["text"]))


def _take_end(found: Replay, record: Record) -> None:
    turn = found.turn(record["id"])
    if turn is not None:
        turn.ended, turn.stop_reason = float(record["at"]), _text(record["reason"])
        turn.text, turn.error = _text(record.get("text", "")), record.get("error")
        turn.usage = Usage(**record.get("usage", {}))


def _take_undone(found: Replay, record: Record) -> None:
    turn = found.turn(record["turn"])
    if turn is not None:
        turn.undone = record["whole"] is True


def _take_tasks(found: Replay, record: Record) -> None:
    found.tasks = list(record["tasks"])


_TAKE: Mapping[str, Callable[[Replay, Record], None]] = {
    "session": _take_head,
    **dict.fromkeys(("user", "system", "tool", "assistant"), _take_message),
    "view": _take_view,
    "turn": _take_turn,
    "started": _take_started,
    "change": _take_change,
    "note": _take_note,
    "end": _take_end,
    "undone": _take_undone,
    "tasks": _take_tasks,
}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, not {type(value).__name__}")
    return value
