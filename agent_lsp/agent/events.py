"""The one event stream (R18): a closed union of frozen values, in the order in which things happen.

The stderr log, the editor, the transcript and the JSON output are subscribers; nothing reads them back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Literal, TypeAlias

from agent_lsp.messages import JsonObject, JsonValue, ToolResult, Usage

StopReason: TypeAlias = Literal[
    "completed", "stopped_by_hook", "rejected", "validation_failed", "limit", "cancelled", "failed"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """A prompt was accepted."""

    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A streamed piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """A streamed piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetry:
    """The model request failed in a way that passes; what was streamed of it is void. ``delay`` is in seconds."""

    attempt: int
    delay: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantReplied:
    """The model's answer is complete."""

    content: str
    tool_calls: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


CompactionReason: TypeAlias = Literal["near_limit", "overflow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCompacted:
    """The model is shown a shorter history from now on; the session's record stays whole.

    ``how``: old results were ``shortened``, or old rounds became a ``summary`` by the model, or, where it failed, a
    ``digest``. Tokens are estimates; ``usage`` is that of the summary's own request.
    """

    reason: CompactionReason
    how: Literal["shortened", "summary", "digest"]
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookReached:
    """The run is at a hook position; ``outcome`` is ``ok`` or ``error`` after a tool (A66)."""

    event: str
    tool: str | None = None
    outcome: Literal["ok", "error"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HookActed:
    """A hook or guard changed the course of a call; never silent (C7, C8). ``paths`` are what the call is about."""

    phase: str
    tool: str | None
    call_id: str | None
    action: str
    fired_by: str
    reason: str = ""
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFailed:
    """A hook broke its contract or raised; ``handler_ran`` says whether the tool's effect has happened (A57)."""

    phase: str
    tool: str
    call_id: str
    error: str
    handler_ran: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredHookRan:
    """A configured hook was run, or was not and why. ``duration`` is in seconds; ``message`` is for the human."""

    name: str
    event: str
    subject: str
    decision: str
    reason: str = ""
    duration: float = 0.0
    exit_code: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionDecided:
    """The policy's verdict on the final arguments (A67)."""

    tool: str
    call_id: str
    behavior: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """A human is being asked."""

    id: str
    tool: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalResolved:
    """The human answered."""

    id: str
    allowed: bool
    scope: str
    feedback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """A handler starts, on these arguments."""

    tool: str
    call_id: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """A piece of live output from a running handler."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanged:
    """A handler changed a file, whatever a hook makes of its result; ``path`` is as the workspace shows it."""

    call_id: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRan:
    """A handler ran a program, which may have changed anything, whatever came of it."""

    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    """A call is answered; ``phase`` is the stage that answered it (A57)."""

    tool: str
    call_id: str
    result: ToolResult
    phase: str
    handler_ran: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveAwaited:
    """Validators read files on disk, so they wait until the human has saved these or goes on without."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationStarted:
    """The agent has stopped and the project's validators run; ``attempt`` counts from 1 in one prompt."""

    attempt: int
    limit: int
    validators: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatorStarted:
    """One validator is running now, with this command in this directory of the workspace."""

    name: str
    command: str
    directory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatorFinished:
    """One validator is done; ``duration`` is in seconds, ``log`` the path of its whole output."""

    name: str
    status: str
    duration: float = 0.0
    output: str = ""
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingSeen:
    """One thing that a validator found, as editors and scripts get it; lines and columns count from 1."""

    path: str
    line: int
    column: int
    message: str
    code: str
    tool: str
    severity: str
    already_failing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """What a round of validators came to.

    ``status`` is green, red, refused (not trusted), or none (there was nothing to run). ``failing`` names the
    validators that are red, ``already_failing`` those that were so before the agent's changes.
    """

    status: Literal["green", "red", "refused", "none"]
    failing: tuple[str, ...] = ()
    already_failing: tuple[str, ...] = ()
    findings: tuple[FindingSeen, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationFinished:
    """A round is over."""

    attempt: int
    limit: int
    report: ValidationReport


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished:
    """The prompt has ended. ``text`` is the final answer; ``error`` is what the human should hear otherwise.

    ``changes`` are the files that were changed: by tools, and, where the session is kept, by programs too, ignored
    directories aside. ``usage`` is that of the prompt, sub-agents' included, ``session_usage`` that of all prompts so
    far. ``validation`` is the last round's report, where there was one.
    """

    stop_reason: StopReason
    text: str = ""
    changes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    session_usage: Usage = field(default_factory=Usage)
    error: str | None = None
    validation: ValidationReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentEvent:
    """An event of the sub-agent ``agent``, which the call ``call_id`` started."""

    agent: str
    call_id: str
    event: "AgentEvent"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentFinished:
    """A sub-agent's loop has exited, in whatever way; ``text`` is its answer or what went wrong."""

    agent: str
    call_id: str
    text: str
    is_error: bool
    usage: Usage = field(default_factory=Usage)


AgentEvent: TypeAlias = (
    TurnStarted
    | TextDelta
    | ReasoningDelta
    | ModelRetry
    | AssistantReplied
    | HistoryCompacted
    | HookReached
    | HookActed
    | HookFailed
    | ConfiguredHookRan
    | PermissionDecided
    | ApprovalRequested
    | ApprovalResolved
    | ToolStarted
    | ToolOutput
    | FileChanged
    | CommandRan
    | ToolFinished
    | SubagentEvent
    | SubagentFinished
    | SaveAwaited
    | ValidationStarted
    | ValidatorStarted
    | ValidatorFinished
    | ValidationFinished
    | TurnFinished
)

Emit: TypeAlias = Callable[[AgentEvent], None]


def event_name(event: AgentEvent) -> str:
    """The event's name on the wire: ``ToolStarted`` → ``tool_started``."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in type(event).__name__).lstrip("_")


def event_json(event: AgentEvent) -> dict[str, JsonValue]:
    """An event as a JSON object with its name under ``type``."""
    body = {f.name: to_json(getattr(event, f.name)) for f in fields(event)}
    if isinstance(event, SubagentEvent):
        body["event"] = event_json(event.event)
    return {"type": event_name(event), **body}


def to_json(value: object) -> JsonValue:
    """Any value that events carry, as plain JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"not a JSON value: {type(value).__name__}")
