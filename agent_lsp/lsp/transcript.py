"""The live transcript: one private Markdown file for each session, appended to as events arrive."""

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

from agent_lsp.agent.events import (
    AgentEvent,
    AssistantReplied,
    ConfiguredHookRan,
    HistoryCompacted,
    HookActed,
    HookFailed,
    PermissionDecided,
    SubagentEvent,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from agent_lsp.messages import thaw
from agent_lsp.session.export import fenced

_log = logging.getLogger(__name__)

_SHOWN = 4_000  # characters of one tool result; the model has the rest


class TranscriptFile:
    """A subscriber that writes what people want to read back; the file appears with the first event.

    ``grew`` hears of the path when something was written; ``redact`` takes secrets out.
    """

    def __init__(self, path: Path, *, grew: Callable[[Path], None], redact: Callable[[str], str]) -> None:
        self.path = path
        self._redact = redact
        self._grew = grew
        self._broken = False

    def __call__(self, event: AgentEvent) -> None:
        text = _markdown(event)
        if text is None or self._broken:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{self._redact(text)}\n\n")
            self._grew(self.path)
        except OSError as error:  # said once; the session goes on without it
            self._broken = True
            _log.warning("the transcript cannot be written: %s", error)


def _markdown(event: AgentEvent) -> str | None:
    match event:
        case TurnStarted(prompt=prompt):
            return f"## Prompt\n\n{prompt}"
        case AssistantReplied(content=content) if content:
            return content
        case ToolStarted():
            return f"**{event.tool}**\n\n{fenced(json.dumps(thaw(event.arguments), ensure_ascii=False, indent=2))}"
        case ToolFinished(result=result):
            cut = "\n[cut]" if len(result.content) > _SHOWN else ""
            return f"{event.tool} → {'error' if result.is_error else 'ok'}\n\n{fenced(result.content[:_SHOWN] + cut)}"
        case PermissionDecided(behavior=behavior) if behavior != "allow":
            return f"*Permission: {behavior} {event.tool} - {event.reason}*"
        case HistoryCompacted():
            sizes = f"{event.tokens_before:,} → {event.tokens_after:,} tokens"
            return (
                f"*The conversation was made shorter for the model ({event.how}): {sizes}. This transcript is whole.*"
            )
        case HookActed():
            return f"*Hook {event.fired_by}: {event.action} {event.tool or ''} - {event.reason}*"
        case HookFailed():
            return f"*Hook failed in {event.phase}: {event.error}*"
        case ConfiguredHookRan(decision=decision) if decision != "passed":
            return f"*Hook {event.name} ({event.event}): {decision} - {event.reason}*"
        case SubagentEvent():
            text = _markdown(event.event)
            return None if text is None else "\n".join(f"> {line}".rstrip() for line in text.splitlines())
        case TurnFinished(stop_reason=reason, error=error) if reason != "completed":
            return f"*Ended: {reason}{f' - {error}' if error else ''}*"
        case _:
            return None
