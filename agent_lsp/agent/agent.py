"""What the engine is made of: every part that a run needs, named once."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from agent_lsp.agent.events import Emit, PermissionDecided
from agent_lsp.agent.instructions import Instructions
from agent_lsp.approvals import Action, Approver
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.models.base import Model
from agent_lsp.permissions.policy import Policy
from agent_lsp.tools.registry import ToolRegistry
from agent_lsp.workspace import Documents, NoDocuments, Workspace


class ChangeRecorder(Protocol):
    """Keeps what it takes to undo what handlers change."""

    def recording(self, action: Action) -> AbstractAsyncContextManager[None]:
        """The block in which a handler runs; raises nothing of its own."""
        ...


class NoRecorder:
    """The ChangeRecorder where nothing is kept."""

    def recording(self, action: Action) -> AbstractAsyncContextManager[None]:
        return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Everything that a run needs; built in ``session/assemble.py``.

    ``hooks`` is None in profiles without that capability. ``audit`` hears every permission verdict and may fail
    the call by raising. ``max_turns`` bounds the model requests of one run. ``instructions`` are the project's own,
    ``open_tasks`` lists what is still to be done.
    """

    model: Model
    system: str
    tools: ToolRegistry
    policy: Policy
    approver: Approver
    audit: Callable[[PermissionDecided], None]
    hooks: HookRegistry | None
    workspace: Workspace
    emit: Emit
    documents: Documents = field(default_factory=NoDocuments)
    recorder: ChangeRecorder = field(default_factory=NoRecorder)
    environment: Mapping[str, str] = field(default_factory=dict)
    max_turns: int = 20
    instructions: Instructions | None = None
    open_tasks: Callable[[], str] = lambda: ""
