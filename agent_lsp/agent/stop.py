"""The two lifecycle positions outside of tool calls: UserPromptSubmit and Stop. Their faults end the run (A58)."""

from agent_lsp.agent.events import Emit, HookActed, HookReached
from agent_lsp.errors import AgentLspError, HookContractError, PromptRejected
from agent_lsp.hooks.contract import HookContext, HookResult
from agent_lsp.hooks.registry import HookRegistry


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
        emit(
            HookActed(
                phase=context.event.value,
                tool=None,
                call_id=None,
                action=action.action,
                fired_by=action.hook,
                reason=action.reason,
            )
        )
    return outcome.result
