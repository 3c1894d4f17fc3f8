"""The user's own programs around a session, hooks and validators, behind the one gate of trust."""

from collections.abc import Callable, Mapping
from pathlib import Path

from agent_lsp.agent.events import Emit
from agent_lsp.approvals import Approver
from agent_lsp.hooks.gate import TrustGate
from agent_lsp.hooks.runner import HookRunner, Surroundings
from agent_lsp.hooks.settings import ConfiguredHook
from agent_lsp.hooks.trust import Trust
from agent_lsp.models.base import Model
from agent_lsp.processes import child_environment
from agent_lsp.session.directories import state_directory
from agent_lsp.session.hooks import ran
from agent_lsp.session.validation import Validation
from agent_lsp.settings.load import LoadedSettings
from agent_lsp.workspace import Documents


class Programs:
    """A runner of hooks and a runner of validators, for one workspace; ``configure`` comes before the first use.

    ``environment`` is that of child processes, without the model's key.
    """

    environment: dict[str, str]

    def __init__(
        self,
        root: Path,
        session_id: str,
        *,
        trust: Trust,
        approver: Approver,
        load: Callable[[], LoadedSettings],
        emit: Emit,
        documents: Documents,
    ) -> None:
        gate = TrustGate(trust=trust, approver=approver)
        self.runner = HookRunner(gate=gate, waiting=lambda: load().trust_items, report=lambda run: emit(ran(run)))
        self.validation = Validation(
            self.runner,
            root=root,
            logs=state_directory() / "logs" / session_id,
            gate=gate,
            waiting=lambda: load().trust_items,
            emit=emit,
            documents=documents,
        )
        self._root = root
        self._session_id = session_id

    def configure(
        self,
        loaded: LoadedSettings,
        environ: Mapping[str, str],
        model: Callable[[], Model],
        *,
        hooks: tuple[ConfiguredHook, ...],
    ) -> None:
        """Take other settings."""
        self.environment = child_environment(environ, [loaded.settings.model.api_key_env])
        self.validation.configure(loaded, self.environment)
        self.runner.configure(
            hooks,
            Surroundings(
                root=self._root,
                session_id=self._session_id,
                environment=self.environment,
                model=model,
                private_hosts=loaded.settings.hooks_http_allow,
            ),
        )
