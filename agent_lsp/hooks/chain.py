"""The simple form: named hooks on the two phases of a tool call, in plain dicts (section C of the specification).

``install_chain`` puts a chain into a HookRegistry, where its rewrites are prepared again like any other (A34).
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from agent_lsp.errors import HookContractError
from agent_lsp.hooks.contract import HookContext, HookEvent, HookResult
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.messages import JsonObject, ToolResult, thaw

ChainHook: TypeAlias = Callable[[dict[str, Any]], Any]
"""A Pre hook gets ``{tool, input}`` and answers None, ``{"deny": reason}`` or ``{"modify_input": new}``. A Post hook
gets ``{tool, input, output, is_error}`` and answers None or ``{"output": new text}``. Either may be async."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreOutcome:
    """What the Pre hooks came to; ``fired_by`` names the hook that denied."""

    allowed: bool
    input: JsonObject
    reason: str | None = None
    fired_by: str | None = None


class ToolHookChain:
    """Named hooks, run in the order in which they were added (C1 to C5)."""

    def __init__(self) -> None:
        self._hooks: dict[str, list[tuple[str, ChainHook]]] = {"pre": [], "post": []}

    def add(self, phase: Literal["pre", "post"], name: str, hook: ChainHook) -> None:
        """Add a hook behind those before it. Raises HookContractError for misuse."""
        if phase not in self._hooks:
            raise HookContractError("phase must be pre or post")
        if not callable(hook):
            raise HookContractError("hook callback must be callable")
        self._hooks[phase].append((name, hook))

    async def run_pre(self, call: Mapping[str, Any]) -> PreOutcome:
        """Run the Pre hooks on ``{tool, input}``; the first deny stops, with the input as it was by then (C3)."""
        current = call["input"]
        for name, hook in self._hooks["pre"]:
            match await _answer(hook, {"tool": call["tool"], "input": thaw(current)}):
                case None:
                    continue
                case {"deny": str(reason), **rest} if not rest:
                    return PreOutcome(allowed=False, input=current, reason=reason, fired_by=name)
                case {"modify_input": dict(new), **rest} if not rest:
                    current = new
                case other:
                    raise HookContractError(f"pre hook {name} must return nothing, deny or modify_input: {other!r}")
        return PreOutcome(allowed=True, input=current)

    async def run_post(self, call: Mapping[str, Any]) -> str:
        """Run the Post hooks on ``{tool, input, output, is_error}``; returns the output's last version (C12)."""
        output = str(call["output"])
        for name, hook in self._hooks["post"]:
            match await _answer(hook, {**call, "input": thaw(call["input"]), "output": output}):
                case None:
                    continue
                case {"output": str(new), **rest} if not rest:
                    output = new
                case other:
                    raise HookContractError(f"post hook {name} must return nothing or output: {other!r}")
        return output

    def has(self, phase: Literal["pre", "post"]) -> bool:
        return bool(self._hooks[phase])


async def _answer(hook: ChainHook, call: dict[str, Any]) -> object:
    answer = hook(call)
    return await answer if inspect.isawaitable(answer) else answer


def install_chain(chain: ToolHookChain, registry: HookRegistry) -> None:
    """Register the chain's phases that have hooks. A deny answers ``blocked by hook: <reason>`` (C7, R11)."""
    if chain.has("pre"):
        registry.register(HookEvent.PRE_TOOL_USE, _pre_callback(chain), name="chain")
    if chain.has("post"):
        registry.register(HookEvent.POST_TOOL_USE, _post_callback(chain), name="chain")


def _pre_callback(chain: ToolHookChain) -> Callable[[HookContext], Awaitable[HookResult]]:
    async def pre(context: HookContext) -> HookResult:
        prepared = context.prepared
        if prepared is None:
            return HookResult()
        outcome = await chain.run_pre({"tool": prepared.name, "input": prepared.arguments})
        if not outcome.allowed:
            metadata = {"fired_by": outcome.fired_by, "reason": outcome.reason}
            denial = ToolResult.error("hook_blocked", f"blocked by hook: {outcome.reason}", metadata)
            return HookResult(blocking_error=denial)
        if outcome.input is prepared.arguments:
            return HookResult()
        return HookResult(updated_input=replace(prepared, arguments=outcome.input))

    return pre


def _post_callback(chain: ToolHookChain) -> Callable[[HookContext], Awaitable[HookResult]]:
    async def post(context: HookContext) -> HookResult:
        prepared, result = context.prepared, context.result
        if prepared is None or result is None:
            return HookResult()
        call = {
            "tool": prepared.name,
            "input": prepared.arguments,
            "output": result.content,
            "is_error": result.is_error,
        }
        output = await chain.run_post(call)
        if output == result.content:
            return HookResult()
        return HookResult(updated_output=replace(result, content=output))

    return post
