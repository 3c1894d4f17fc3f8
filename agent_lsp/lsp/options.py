"""What a client takes beyond standard LSP, and the settings that its user made in the editor."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import anyio
from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException

from agent_lsp.lsp.server import AgentServer

_log = logging.getLogger(__name__)

_SECTION = "agentLsp"
_SETTINGS_SECONDS = 5.0  # for the editor to answer with its settings; the first prompt waits for them


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """The switches of ``initializationOptions`` (S4): what the client answers or wants to be sent."""

    events: bool = False
    documents: bool = False
    approvals: bool = False
    diagnostics: bool = False
    code_lens: bool = False

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Self:
        """Only true switches something on."""
        return cls(
            events=options.get("events") is True,
            documents=options.get("documents") is True,
            approvals=options.get("approvals") is True,
            diagnostics=options.get("diagnostics") is True,
            code_lens=options.get("codeLens") is True,
        )


class EditorSettings:
    """The editor's layers of settings; ``layers`` is one list that sessions hold and read with each prompt."""

    def __init__(self, server: AgentServer) -> None:
        self._server = server
        self.layers: list[Mapping[str, Any]] = [{}, {}]
        """Those of ``initializationOptions`` and those of the editor's section, the weaker first."""

    def begin(self, settings: object) -> None:
        """Take those of ``initializationOptions``."""
        self._take(0, settings)

    async def change(self, settings: object) -> None:
        """The editor's settings changed; some send them along, the others are asked."""
        if isinstance(settings, Mapping) and isinstance(settings.get(_SECTION), Mapping):
            self._take(1, settings[_SECTION])
        else:
            await self.pull()

    async def pull(self) -> None:
        """Ask the editor for its section, if it can be asked."""
        if not get_capability(self._server.client_capabilities, "workspace.configuration"):
            return
        params = types.ConfigurationParams(items=[types.ConfigurationItem(section=_SECTION)])
        try:
            with anyio.move_on_after(_SETTINGS_SECONDS):
                answers = await self._server.workspace_configuration_async(params)
                self._take(1, next(iter(answers), None))
        except JsonRpcException as error:
            _log.warning("the editor's settings cannot be read: %s", error)

    def _take(self, layer: int, settings: object) -> None:
        if isinstance(settings, Mapping):
            self.layers[layer] = settings
