"""What an editor that knows standard LSP can put before the human."""

import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcMethodNotFound

from agent_lsp.lsp.server import AgentServer

_log = logging.getLogger(__name__)

_ASK_LIMIT = 5.0  # seconds that an editor gets to answer what needs no human


class EditorScreen:
    """The Screen of an editor that knows standard LSP."""

    def __init__(self, server: AgentServer) -> None:
        self._server = server
        self._can_ask = True
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    async def ask(self, message: str, actions: Sequence[str]) -> str | None:
        """Show a question. An editor that does not know the request is not asked again."""
        if not self._can_ask:
            return None
        params = types.ShowMessageRequestParams(
            type=types.MessageType.Warning,
            message=message,
            actions=[types.MessageActionItem(title=title) for title in actions],
        )
        try:
            chosen = await self._server.window_show_message_request_async(params)
        except JsonRpcException as error:
            self._can_ask = error.code != JsonRpcMethodNotFound.CODE
            return None
        return None if chosen is None else chosen.title

    async def show_text(self, name: str, text: str) -> bool:
        """Show a text as a private file."""
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="agent-lsp-")
        file = Path(self._directory.name) / f"{name}.diff"
        await anyio.to_thread.run_sync(_write_private, file, text)
        return await self.show_file(file)

    async def show_file(self, file: Path) -> bool:
        """Open a file beside the user's work, where the editor can."""
        params = types.ShowDocumentParams(uri=file.as_uri(), take_focus=False)
        try:
            with anyio.move_on_after(_ASK_LIMIT):
                shown = await self._server.window_show_document_async(params)
                return shown is not None and shown.success
        except JsonRpcException as error:
            _log.info("the editor does not show documents: %s", error)
        return False


def _write_private(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(text)
