"""What editors send and get as JSON: parameters that are read strictly, results, and lines for people."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pygls.exceptions import JsonRpcInvalidParams

from agent_lsp.agent.events import (
    AgentEvent,
    ApprovalRequested,
    HistoryCompacted,
    HookReached,
    ModelRetry,
    SaveAwaited,
    SubagentEvent,
    TextDelta,
    ToolStarted,
    TurnFinished,
    ValidationStarted,
    ValidatorStarted,
    to_json,
)
from agent_lsp.approvals import ApprovalReply, Hunk, Scope
from agent_lsp.errors import AgentLspError
from agent_lsp.lsp.approvals import PendingApproval, Side
from agent_lsp.lsp.documents import EditorDocuments, path_of
from agent_lsp.lsp.progress import Progress
from agent_lsp.session.session import Subscriber

if TYPE_CHECKING:
    from agent_lsp.session.hooks import HookRun
    from agent_lsp.session.inspect import ConfiguredHook, HookState


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class ContextItem(_Wire):
    """A document, or a range of it, that the prompt is about; positions are the client's."""

    uri: str
    range: dict[str, Any] | None = None


class PromptParams(_Wire):
    """The argument of ``agent.run`` and the parameters of ``agent/prompt``."""

    prompt: str = Field(min_length=1)
    context: tuple[ContextItem, ...] = ()
    session_id: str | None = Field(default=None, alias="sessionId")
    mode: str | None = None
    work_done_token: int | str | None = Field(default=None, alias="workDoneToken")


class AnswerParams(_Wire):
    """The argument of ``agent.approvals.answer``."""

    decision: Literal["allow", "deny"]
    id: str | None = None
    scope: Scope = Scope.ONCE
    feedback: str = ""
    hunks: tuple[int, ...] | None = Field(default=None, min_length=1)

    def reply(self) -> ApprovalReply:
        return ApprovalReply(
            allowed=self.decision == "allow", scope=self.scope, feedback=self.feedback, hunks=self.hunks
        )


def approval_json(entry: PendingApproval, documents: EditorDocuments) -> dict[str, Any]:
    """An approval that waits, as ``agent.approvals.list`` tells it; ranges are of lines, from 0, the end excluded.

    ``replaced`` is the part of ``before`` that does not stay; ``decided`` are the parts with an answer already.
    """
    request, change = entry.request, entry.request.change
    return {
        "id": request.id,
        "tool": request.action.tool,
        "target": request.target,
        "reason": request.reason,
        "rule": request.rule,
        "uri": None if change is None else documents.uri(change.path.path),
        "diff": None if change is None else change.diff(),
        "hunks": [{name: [lines.start, lines.stop] for name, lines in _ranges(hunk).items()} for hunk in entry.hunks],
        "decided": {str(number): taken for number, taken in entry.decided.items()},
    }


def _ranges(hunk: Hunk) -> dict[str, range]:
    return {"before": hunk.before, "after": hunk.after, "replaced": hunk.replaced}


def approval_request(entry: PendingApproval, documents: EditorDocuments) -> dict[str, Any]:
    """The parameters of ``agent/requestApproval``: with the texts, for a client that shows the change itself."""
    change = entry.request.change
    texts = (None, None) if change is None else (change.before, change.after)
    return {**approval_json(entry, documents), "before": texts[0], "after": texts[1]}


class PartParams(_Wire):
    """The argument of ``agent.approvals.part``: one part of a change, counted from 0."""

    id: str
    hunk: int
    decision: Literal["allow", "deny"]


class ShowParams(_Wire):
    """The argument of ``agent.approvals.show``; without an id, the oldest."""

    id: str | None = None
    side: Side = "diff"


class PlaceParams(_Wire):
    """The argument of ``agent.hooks.open``: a place in a settings file, counted from 1."""

    source: str
    line: int = Field(default=1, ge=0)
    column: int = Field(default=1, ge=0)


W = TypeVar("W", bound=_Wire)


def read(kind: type[W], arguments: object) -> W:
    """Read what the client sent. Raises JsonRpcInvalidParams that names each field and reason."""
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}"
            for item in error.errors(include_url=False)
        )
        raise JsonRpcInvalidParams(f"Invalid params: {problems}") from error


def with_context(params: PromptParams) -> str:
    """The prompt, followed by the places that the user pointed at."""
    places = [line for item in params.context if (line := _place(item)) is not None]
    if not places:
        return params.prompt
    return "\n".join([params.prompt, "", "The user points at:", *(f"- {place}" for place in places)])


def _place(item: ContextItem) -> str | None:
    path = path_of(item.uri)
    if path is None:
        return None
    if item.range is None:
        return str(path)
    try:
        first, last = item.range["start"]["line"] + 1, item.range["end"]["line"] + 1
    except (KeyError, TypeError):
        return str(path)
    return f"{path}, lines {first} to {last}"


def result_json(session_id: str, turn_id: str, finished: TurnFinished) -> dict[str, Any]:
    """The result of ``agent/prompt`` (S4). Raises AgentLspError where the turn failed."""
    if finished.error is not None:
        raise AgentLspError(finished.error)
    return {
        "sessionId": session_id,
        "turnId": turn_id,
        "text": finished.text,
        "stopReason": finished.stop_reason,
        "usage": {"inputTokens": finished.usage.input_tokens, "outputTokens": finished.usage.output_tokens},
        "changes": list(finished.changes),
        "validation": to_json(finished.validation),
    }


def progress_line(event: AgentEvent) -> str | None:
    """What the progress says while this is the latest event; None leaves it as it is."""
    match event:
        case HookReached(event="UserPromptSubmit") | TextDelta():
            return "waiting for the model" if isinstance(event, HookReached) else "answering"
        case ModelRetry():
            return f"{event.reason}; trying again in {event.delay:.0f} s"
        case HistoryCompacted():
            return "made the conversation shorter for the model"
        case ToolStarted(tool=tool):
            return f"running {tool}"
        case SaveAwaited(files=files):
            return f"waiting until you save {', '.join(files)}"
        case ApprovalRequested():
            return f"waiting for your answer: {event.tool}: {event.target}"
        case SubagentEvent():
            line = progress_line(event.event)
            return None if line is None else f"{event.agent}: {line}"
        case _:
            return None


def progress_reporter(progress: Progress) -> Subscriber:
    """A subscriber that keeps a progress's line up to date; validators are counted and timed."""
    total, begun = 0, 0

    def report(event: AgentEvent) -> None:
        nonlocal total, begun
        if isinstance(event, ValidationStarted):
            total, begun = len(event.validators), 0
        elif isinstance(event, ValidatorStarted):
            begun += 1
            progress.report(_running(event.name, begun, total))
        elif (line := progress_line(event)) is not None:
            progress.report(line)

    return report


def _running(name: str, number: int, total: int) -> Callable[[], str]:
    started = time.monotonic()
    return lambda: f"running {name} ({number}/{total}), {time.monotonic() - started:.0f} s"


def hook_json(state: "HookState", unmatched: str | None) -> dict[str, Any]:
    """One configured hook; ``unmatched`` is why it was last left out of an event."""
    hook = state.hook
    return {
        **_named(hook),
        "type": hook.type,
        "text": hook.text,
        "matcher": hook.matcher.text,
        "if": None if hook.condition is None else hook.condition.text,
        "blocking": hook.blocking,
        "timeout": hook.timeout,
        "onFailure": hook.on_failure,
        "trusted": state.trusted,
        "lastMismatch": unmatched,
    }


def run_json(run: "HookRun") -> dict[str, Any]:
    """One entry of the hook log; ``started`` in seconds since the epoch, ``duration`` in seconds."""
    return {
        **_named(run.hook),
        "subject": run.subject,
        "decision": run.decision,
        "reason": run.reason,
        "started": run.started,
        "duration": run.duration,
        "exitCode": run.exit_code,
        "stderr": run.stderr,
        "effect": dict(run.effect),
    }


def _named(hook: "ConfiguredHook") -> dict[str, Any]:
    place = hook.place
    return {"event": hook.event, "name": hook.name, "source": place.source, "line": place.line, "column": place.column}
