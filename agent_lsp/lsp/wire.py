"""What commands answer about hooks, as JSON for editors."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_lsp.session.hooks import HookRun
    from agent_lsp.session.inspect import ConfiguredHook, HookState


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
