"""What is said between user, model and tools: frozen values, and the Transcript that keeps them in order.

Invariant: in a Transcript every tool call has exactly one tool message, in call order, directly after the
assistant message that made the calls (A54). ``Transcript.append`` is the only way in and refuses any other order.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias, overload

from agent_lsp.errors import TranscriptError

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = Mapping[str, JsonValue]


def freeze(value: JsonValue) -> JsonValue:
    """Copy a JSON value deeply into mapping proxies and tuples, so that no holder of the original can change it."""
    if isinstance(value, Mapping):
        return freeze_object(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(freeze(item) for item in value)
    return value


def freeze_object(value: JsonObject) -> JsonObject:
    """Copy a JSON object deeply into an immutable mapping."""
    return MappingProxyType({key: freeze(item) for key, item in value.items()})


def thaw(value: JsonValue) -> JsonValue:
    """Copy a frozen JSON value back into plain dicts and lists, as ``json.dumps`` and pydantic want it."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [thaw(item) for item in value]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as the model wrote it: ``arguments`` is raw JSON text, not yet parsed.

    ``id`` is unique within its assistant message; ``provider_id`` is what the server sent, where that differs (F50).
    ``extra`` is what else it sent with the call and wants back with it, as JSON text: Gemini's signatures.
    """

    id: str
    name: str
    arguments: str
    provider_id: str | None = None
    extra: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemMessage:
    """Context from the harness or from hooks; never the user's words."""

    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What the user said, or, where ``injected``, what the harness says in the user's place (reminders)."""

    content: str
    injected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """One answer of the model: text, calls, and the reasoning text of servers that send it."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """The answer to one tool call."""

    tool_call_id: str
    content: str


ChatMessage: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool call came to. ``metadata`` is for events and fronts; the model reads ``content`` alone."""

    content: str
    is_error: bool = False
    code: str | None = None
    metadata: JsonObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", freeze_object(self.metadata))

    @classmethod
    def error(cls, code: str, message: str, metadata: JsonObject | None = None) -> "ToolResult":
        """An error in the one format that the model sees: ``Error [code]: message``."""
        return cls(content=f"Error [{code}]: {message}", is_error=True, code=code, metadata=metadata or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """How a tool is described to the model; ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as the server reported them; they add up over requests.

    ``cached_tokens`` are those of the input that the server did not have to read anew. ``cost`` is in the currency of
    the server's bill, or of the prices in settings; None where neither tells it.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost=sum(costs) if costs else None,
        )

    def __str__(self) -> str:
        cached = f" ({self.cached_tokens:,} of them cached)" if self.cached_tokens else ""
        cost = "" if self.cost is None else f", cost {self.cost:.4f}"
        return f"{self.input_tokens:,} tokens in{cached}, {self.output_tokens:,} out{cost}"


_REMINDER_TAG = re.compile(r"<(\s*/?\s*system-reminder)", re.IGNORECASE)


def system_reminder(text: str) -> str:
    """Wrap harness text in the tag that the model knows to be ours; tags inside are escaped."""
    return f"<system-reminder>\n{escape_reminders(text)}\n</system-reminder>"


def escape_reminders(text: str) -> str:
    """Disarm our own reminder tags in text that came from files, programs or the web (F44)."""
    return _REMINDER_TAG.sub(r"&lt;\1", text)


class Transcript(Sequence[ChatMessage]):
    """A session's history. Append-only; raises TranscriptError instead of taking a message out of order."""

    def __init__(self, messages: Iterable[ChatMessage] = ()) -> None:
        self._messages: list[ChatMessage] = []
        self._open: list[str] = []
        self._in_tool_phase = False
        self._view: Transcript | None = None
        self._watcher: Callable[[ChatMessage], None] | None = None
        self._view_watcher: Callable[[Sequence[ChatMessage]], None] | None = None
        self.extend(*messages)

    def watch(
        self, watcher: Callable[[ChatMessage], None], shortened: Callable[[Sequence[ChatMessage]], None] | None = None
    ) -> None:
        """Let somebody hear of each message from now on, once it is taken, and of each ``shortened`` view."""
        self._watcher = watcher
        self._view_watcher = shortened

    def append(self, message: ChatMessage) -> None:
        if isinstance(message, ToolMessage):
            self._answer(message.tool_call_id)
        else:
            self.require_paired()
            calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
            ids = [call.id for call in calls]
            if len(set(ids)) < len(ids):
                raise TranscriptError(f"duplicate tool call ids: {sorted({i for i in ids if ids.count(i) > 1})}")
            self._open = ids
            self._in_tool_phase = bool(ids)
        self._messages.append(message)
        if self._view is not None:
            self._view.append(message)
        if self._watcher is not None:
            self._watcher(message)

    def extend(self, *messages: ChatMessage) -> None:
        """Append several messages, in order."""
        for message in messages:
            self.append(message)

    @property
    def view(self) -> "Transcript":
        """What the model is shown: all of it, or what ``shorten`` put in the place of its beginning."""
        return self if self._view is None else self._view

    def shorten(self, messages: Iterable[ChatMessage]) -> None:
        """Show the model these in the place of everything so far; the record itself stays whole.

        Raises TranscriptError for messages that are no history, and while calls are open.
        """
        self.require_paired()
        view = Transcript(messages)
        view.require_paired()
        self._view = view
        if self._view_watcher is not None:
            self._view_watcher(view)

    def _answer(self, call_id: str) -> None:
        if not self._in_tool_phase:
            raise TranscriptError(f"orphan tool result id: {call_id}")
        if not self._open or self._open[0] != call_id:
            raise TranscriptError(f"unexpected tool result id: {call_id}")
        del self._open[0]

    def require_paired(self) -> None:
        """Raise unless every call so far has its result; constant time, run before every model request."""
        if self._open:
            raise TranscriptError(f"missing tool results for ids: {self._open}")

    def close_open_calls(self, result_for: Callable[[str], ToolResult]) -> None:
        """Answer each call that has no result yet, in order; ``result_for`` maps a call id to its result."""
        for call_id in tuple(self._open):
            self.append(ToolMessage(tool_call_id=call_id, content=result_for(call_id).content))

    @overload
    def __getitem__(self, index: int) -> ChatMessage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ChatMessage]: ...
    def __getitem__(self, index: int | slice) -> ChatMessage | Sequence[ChatMessage]:
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[ChatMessage]:
        return iter(self._messages)
