"""A try at one hook event: which hooks would run, and the run of one."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_lsp.approvals import Approver
from agent_lsp.errors import ConfigurationError
from agent_lsp.hooks.runner import HookRun, Occasion, mismatch
from agent_lsp.hooks.settings import EVENTS, STOP, VALIDATION, ConfiguredHook
from agent_lsp.messages import JsonObject, thaw
from agent_lsp.session.assemble import endpoint_model, endpoint_settings
from agent_lsp.session.directories import config_directory, trust_store
from agent_lsp.session.inspect import list_hooks
from agent_lsp.session.programs import Programs
from agent_lsp.settings.load import load_settings
from agent_lsp.settings.trust import TrustEverything
from agent_lsp.tools.task import Status, Task
from agent_lsp.workspace import NoDocuments


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """One hook of the event; ``mismatch`` says why it would not run, or is None."""

    hook: ConfiguredHook
    mismatch: str | None


def dry_run(root: Path, event: str, tool: str, args: JsonObject | None) -> list[DryRun]:
    """What an event would run. Raises ConfigurationError for an event that does not exist."""
    if event not in (*EVENTS, STOP):
        raise ConfigurationError(f"There is no event {event}; known are {', '.join(EVENTS)}")
    occasion = _occasion(event, tool, args)
    hooks = [state.hook for state in list_hooks(root).hooks if state.hook.event == event]
    return [DryRun(hook=hook, mismatch=mismatch(hook, occasion)) for hook in hooks]


async def run_hook(
    root: Path, hook: ConfiguredHook, tool: str, args: JsonObject | None, approver: Approver, trusted: bool
) -> HookRun:
    """Run one hook as its event would, behind the same gate; ``root`` is absolute."""
    trust = TrustEverything() if trusted else trust_store()
    loaded = load_settings(root, user_directory=config_directory(), trust=trust)
    programs = Programs(
        root,
        "test",
        trust=trust,
        approver=approver,
        load=lambda: loaded,
        emit=lambda _event: None,
        documents=NoDocuments(),
    )
    programs.configure(loaded, os.environ, lambda: endpoint_model(endpoint_settings(loaded)), hooks=(hook,))
    await programs.runner.run_one(hook, _occasion(hook.event, tool, args))
    return programs.runner.runs[-1]


_SUBJECTS = {"TaskCreated": "task_create", "TaskCompleted": "task_update"}


def _occasion(event: str, tool: str, args: JsonObject | None) -> Occasion:
    """The event as it would be, with sample values for what only a run has."""
    return Occasion(
        event=event, subject=tool or _SUBJECTS.get(event, ""), args=args, payload=_payload(event, tool, args)
    )


def _payload(event: str, tool: str, args: JsonObject | None) -> dict[str, Any]:
    match event:
        case "PreToolUse":
            return {"tool": tool}
        case "PostToolUse":
            return {"tool": tool, "output": "a sample output", "is_error": False}
        case "UserPromptSubmit":
            return {"prompt": "a sample prompt"}
        case "Notification":
            return {"message": "a sample message", "is_error": False}
        case "SubagentStop":
            return {"agent": tool, "message": "a sample answer", "is_error": False}
        case "TaskCreated":
            return {"task": _task("pending", args)}
        case "TaskCompleted":
            states = {"status_from": "in_progress", "status_to": "completed"}
            return {"task": _task("completed", args), "previous_task": _task("in_progress"), **states}
        case "Stop":
            return {"stop_hook_active": False}
        case _:
            return {"attempt": 1, "limit": 0} if event == VALIDATION else {}


def _task(status: Status, args: JsonObject | None = None) -> object:
    """The task that is the event's arguments, else a sample."""
    return Task(id="1", subject="a sample task", status=status).to_json() if args is None else thaw(args)
