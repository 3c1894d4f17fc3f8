"""Configured hooks as a settings file has them, and a runner of them behind a gate that trusts everything."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from agent_lsp.hooks.gate import TrustGate
from agent_lsp.hooks.runner import HookRunner, Surroundings
from agent_lsp.hooks.settings import ConfiguredHook, parse_hooks
from agent_lsp.hooks.trust import Trust, hook_item
from agent_lsp.models.scripted import ScriptedModel, Step
from agent_lsp.settings.trust import TrustEverything
from agent_lsp.workspace import Place
from tests.support.harness import RecordingApprover

SOURCE = "settings.json"
Entry = Mapping[str, Any]


def parsed(section: object) -> tuple[list[ConfiguredHook], dict[str, str]]:
    """The hooks of a section, and the mistakes in it by their key."""
    mistakes: dict[str, str] = {}
    hooks = parse_hooks(section, lambda _key: Place(source=SOURCE), mistakes.__setitem__)
    return hooks, mistakes


def configured(event: str, entry: Entry) -> ConfiguredHook:
    """One hook from its entry, which has no mistake."""
    (hook,), mistakes = parsed({event: [entry]})
    assert mistakes == {}
    return hook


def command(text: str | list[str], event: str = "PreToolUse", **more: Any) -> ConfiguredHook:
    """A command hook; a key that is a Python word is given with an underscore behind it: ``if_``."""
    entry = {key.rstrip("_"): value for key, value in more.items()}
    return configured(event, {"type": "command", "command": text, **entry})


def established(entry: Entry, event: str = "PreToolUse", matcher: str = "") -> ConfiguredHook:
    """One hook in the established shape."""
    return configured(event, {"matcher": matcher, "hooks": [entry]})


def make_runner(
    root: Path,
    environment: Mapping[str, str],
    *hooks: ConfiguredHook,
    trust: Trust | None = None,
    approver: RecordingApprover | None = None,
    script: Collection[Step] = (),
    private_hosts: Collection[str] = (),
) -> HookRunner:
    """A runner of these hooks; ``script`` is what the model of prompt hooks says."""
    model = ScriptedModel(script)
    runner = HookRunner(
        gate=TrustGate(trust=trust or TrustEverything(), approver=approver or RecordingApprover()),
        waiting=lambda: [hook_item(hook, root) for hook in runner.hooks],
        report=lambda _run: None,
    )
    surroundings = Surroundings(
        root=root, session_id="session 1", environment=environment, model=lambda: model, private_hosts=private_hosts
    )
    runner.configure(hooks, surroundings)
    return runner
