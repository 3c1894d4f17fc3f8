"""A verdict on one action, with its evidence."""

from dataclasses import dataclass

from agent_lsp.approvals import PermissionBehavior


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A verdict with its evidence. ``fixed`` verdicts are beyond modes, rules and remembered answers."""

    behavior: PermissionBehavior
    source: str
    reason: str
    fixed: bool = False
