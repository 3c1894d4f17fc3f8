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

_SHOW_SECONDS = 5.0  # for the editor to open a file


class EditorScreen:
    """The Screen of an editor that knows standard LSP."""

    def __init__(self, server: AgentServer) -> None:
        self._server = server
        self._can_ask = True
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    async def ask(self, message: str, actions: Sequence[str], *, otherwise: str = "") -> str | None:
        """Show a question. An editor that does not know the request is told instead, and not asked again."""
        if not self._can_ask:
            self._tell(f"{message} {otherwise}")
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
            if not self._can_ask:
                self._tell(f"{message} {otherwise}")
            return None
        return None if chosen is None else chosen.title

    def _tell(self, message: str) -> None:
        """Say what would have been asked."""
        params = types.ShowMessageParams(type=types.MessageType.Warning, message=message.rstrip())
        self._server.window_show_message(params)

    async def show_text(self, name: str, text: str) -> bool:
        """Show a text as a private file."""
        try:
            file = await anyio.to_thread.run_sync(self._write, f"{name}.diff", text)
        except OSError as error:
            _log.warning("a change cannot be shown: %s", error)
            return False
        return await self.show_file(file)

    def _write(self, name: str, text: str) -> Path:
        """Write into a private directory, made again where a cleaner of temporary files has taken it."""
        if self._directory is None or not Path(self._directory.name).is_dir():
            self._directory = tempfile.TemporaryDirectory(prefix="agent-lsp-", ignore_cleanup_errors=True)
        file = Path(self._directory.name) / name
        _write_private(file, text)
        return file

    async def show_file(self, file: Path) -> bool:
        """Open a file beside the user's work, where the editor can."""
        params = types.ShowDocumentParams(uri=file.as_uri(), take_focus=False)
        try:
            with anyio.move_on_after(_SHOW_SECONDS):
                shown = await self._server.window_show_document_async(params)
                return shown is not None and shown.success
        except JsonRpcException as error:
            _log.info("the editor does not show documents: %s", error)
        return False


def _write_private(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(text)
