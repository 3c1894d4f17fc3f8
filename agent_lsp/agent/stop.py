"""The two lifecycle positions outside of tool calls: UserPromptSubmit and Stop. Their faults end the run (A58)."""

from agent_lsp.agent.events import Emit, HookActed, HookReached
from agent_lsp.errors import AgentLspError, HookContractError, PromptRejected
from agent_lsp.hooks.contract import HookContext, HookResult
from agent_lsp.hooks.registry import HookAction, HookRegistry
from agent_lsp.tools.base import PreparedCall


async def run_lifecycle_hooks(hooks: HookRegistry | None, context: HookContext, emit: Emit) -> HookResult:
    """Run the position's hooks and say so. Raises HookContractError or PromptRejected, AgentLspError for all else."""
    if hooks is None:
        return HookResult()
    emit(HookReached(event=context.event.value))
    try:
        outcome = await hooks.run(context)
    except (HookContractError, PromptRejected):
        raise
    except Exception as error:
        raise AgentLspError(f"{context.event.value} hook failed: {type(error).__name__}: {error}") from error
    for action in outcome.actions:
        emit(acted(context.event.value, action))
    return outcome.result


def acted(
    phase: str, action: HookAction, prepared: PreparedCall | None = None, *, paths: tuple[str, ...] = ()
) -> HookActed:
    """What one hook did, as an event."""
    return HookActed(
        phase=phase,
        tool=None if prepared is None else prepared.name,
        call_id=None if prepared is None else prepared.call_id,
        action=action.action,
        fired_by=action.hook,
        reason=action.reason,
        paths=paths,
    )
