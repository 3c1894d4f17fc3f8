"""A try at one hook event: which hooks would run, and the run of one."""

import os
from dataclasses import dataclass
from pathlib import Path

from agent_lsp.approvals import Approver
from agent_lsp.errors import ConfigurationError
from agent_lsp.hooks.gate import TrustGate
from agent_lsp.hooks.runner import HookRun, HookRunner, Occasion, Surroundings, mismatch
from agent_lsp.hooks.settings import EVENTS, STOP, ConfiguredHook
from agent_lsp.hooks.trust import hook_item
from agent_lsp.messages import JsonObject
from agent_lsp.models.openai_chat import OpenAIChatModel
from agent_lsp.processes import child_environment
from agent_lsp.session.assemble import endpoint_settings
from agent_lsp.session.directories import config_directory, trust_store
from agent_lsp.session.inspect import list_hooks
from agent_lsp.settings.load import load_settings
from agent_lsp.settings.trust import TrustEverything


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """One hook of the event; ``mismatch`` says why it would not run, or is None."""

    hook: ConfiguredHook
    mismatch: str | None


def dry_run(root: Path, event: str, tool: str, args: JsonObject) -> list[DryRun]:
    """What an event would run. Raises ConfigurationError for an event that does not exist."""
    if event not in (*EVENTS, STOP):
        raise ConfigurationError(f"There is no event {event}; known are {', '.join(EVENTS)}")
    occasion = _occasion(event, tool, args)
    hooks = [state.hook for state in list_hooks(root).hooks if state.hook.event == event]
    return [DryRun(hook=hook, mismatch=mismatch(hook, occasion)) for hook in hooks]


async def run_hook(
    root: Path, hook: ConfiguredHook, tool: str, args: JsonObject, approver: Approver, trusted: bool
) -> HookRun:
    """Run one hook as its event would, behind the same gate; ``root`` is absolute."""
    trust = TrustEverything() if trusted else trust_store()
    loaded = load_settings(root, user_directory=config_directory(), trust=trust)
    environment = child_environment(os.environ, [loaded.settings.model.api_key_env])
    runner = HookRunner(
        gate=TrustGate(trust=trust, approver=approver),
        waiting=lambda: [hook_item(hook, root)],
        report=lambda _run: None,
    )
    surroundings = Surroundings(
        root=root,
        session_id="test",
        environment=environment,
        model=lambda: OpenAIChatModel(endpoint_settings(loaded)),
        private_hosts=loaded.settings.hooks_http_allow,
    )
    runner.configure((hook,), surroundings)
    await runner.run_one(hook, _occasion(hook.event, tool, args))
    return runner.runs[-1]


def _occasion(event: str, tool: str, args: JsonObject) -> Occasion:
    return Occasion(event=event, subject=tool, args=args, payload={"tool": tool})
