"""What a workspace has configured, told without opening a session; for listing it must stay cheap to import."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_lsp.hooks.settings import ConfiguredHook as ConfiguredHook
from agent_lsp.hooks.trust import hook_item
from agent_lsp.session.directories import config_directory, trust_store
from agent_lsp.settings.layers import Problem, configured_hooks, read_layers


@dataclass(frozen=True, slots=True, kw_only=True)
class HookState:
    """A configured hook and whether it would be run."""

    hook: ConfiguredHook
    trusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredHooksReport:
    """The hooks of a workspace, and what is wrong with those that are left out."""

    hooks: tuple[HookState, ...]
    problems: tuple[Problem, ...]


def list_hooks(root: Path, editor: Sequence[Mapping[str, Any]] = ()) -> ConfiguredHooksReport:
    """All hooks of all layers, in the order in which they run."""
    root = root.resolve()
    layers = read_layers(root, user_directory=config_directory(), editor=editor, environ={})
    hooks, problems = configured_hooks(layers)
    trust = trust_store()
    states = (HookState(hook=hook, trusted=trust.covers(hook_item(hook, root).digest)) for hook in hooks)
    return ConfiguredHooksReport(hooks=tuple(states), problems=(*layers.problems, *problems))
