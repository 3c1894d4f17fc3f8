"""The hooks that come with the product (C14 to C16, C20); tools hold none of this code (C18)."""

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from agent_lsp.errors import ConfigurationError
from agent_lsp.hooks.contract import HookContext, HookEvent, HookResult
from agent_lsp.hooks.dangerous import danger_in
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.messages import ToolResult, thaw
from agent_lsp.tools.base import PreparedCall
from agent_lsp.workspace import HARMLESS, Access

Installer: TypeAlias = Callable[[HookRegistry, Path], None]

DEFAULT_HOOKS = ("block-dangerous-bash",)


def install_builtin(registry: HookRegistry, names: Iterable[str], workspace_root: Path) -> None:
    """Install built-in hooks by name, in the given order. Raises ConfigurationError for an unknown name."""
    for name in names:
        installer = BUILTIN_HOOKS.get(name)
        if installer is None:
            known = ", ".join(BUILTIN_HOOKS)
            raise ConfigurationError(f"There is no built-in hook {name!r}; known are {known}")
        installer(registry, workspace_root)


def _command(prepared: PreparedCall | None) -> str | None:
    """The shell command of a call that runs one."""
    if prepared is None or prepared.definition.access is not Access.EXECUTE:
        return None
    command = prepared.arguments.get("command")
    return command if isinstance(command, str) else None


def dangerous_reason(prepared: PreparedCall | None) -> str | None:
    """Why ``block-dangerous-bash`` refuses a call, or None; the guard's form of the hook."""
    command = _command(prepared)
    reason = danger_in(command) if command is not None else None
    return None if reason is None else f"dangerous command: {reason}"


def _block_dangerous_bash(context: HookContext) -> HookResult:
    reason = dangerous_reason(context.prepared)
    if reason is None:
        return HookResult()
    metadata = {"fired_by": "block-dangerous-bash", "reason": reason}
    return HookResult(blocking_error=ToolResult.error("hook_blocked", f"blocked by hook: {reason}", metadata))


def _install_block_dangerous_bash(registry: HookRegistry, _root: Path) -> None:
    registry.register(HookEvent.PRE_TOOL_USE, _block_dangerous_bash, name="block-dangerous-bash")
    registry.register_guard("block-dangerous-bash", dangerous_reason)


def _ls_add_la(context: HookContext) -> HookResult:
    """A bare ``ls`` becomes ``ls -la``; anything else is left alone (C15)."""
    prepared, command = context.prepared, _command(context.prepared)
    if prepared is None or command is None or command.strip() != "ls":
        return HookResult()
    return HookResult(updated_input=replace(prepared, arguments={**prepared.arguments, "command": "ls -la"}))


def _install_ls_add_la(registry: HookRegistry, _root: Path) -> None:
    registry.register(HookEvent.PRE_TOOL_USE, _ls_add_la, name="ls-add-la")


def audit_log(path: Path) -> Callable[[HookContext], HookResult]:
    """An observer that appends one JSON line for each executed call; a log that cannot be written is no fault (C16)."""

    def observe(context: HookContext) -> HookResult:
        prepared, result = context.prepared, context.result
        if prepared is None or result is None:
            return HookResult()
        entry = {"tool": prepared.name, "arguments": thaw(prepared.arguments), "is_error": result.is_error}
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(_open_to_append(path), "a", encoding="utf-8") as log:
                log.write(json.dumps(entry) + "\n")
        return HookResult()

    return observe


def _open_to_append(path: Path) -> int:
    """Open a file unless it is a symbolic link, which the workspace may have put there."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)


def _install_audit_log(registry: HookRegistry, root: Path) -> None:
    observer = audit_log(root / "log" / "hooks.log")
    registry.register(HookEvent.POST_TOOL_USE, observer, name="audit-log", observer=True)


def plan_guard(prepared: PreparedCall) -> str | None:
    """Plan mode as a guard: only reads pass (C20)."""
    if prepared.definition.access in HARMLESS:
        return None
    return f"plan mode is read-only and {prepared.name} is not a read"


BUILTIN_HOOKS: Mapping[str, Installer] = {
    "block-dangerous-bash": _install_block_dangerous_bash,
    "ls-add-la": _install_ls_add_la,
    "audit-log": _install_audit_log,
}
