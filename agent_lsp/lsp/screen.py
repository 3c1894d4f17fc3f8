"""What an editor that knows standard LSP can put before the human."""

import logging
import os
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcMethodNotFound

from agent_lsp.lsp.protocol import SCHEME
from agent_lsp.lsp.server import AgentServer

_log = logging.getLogger(__name__)

_SHOW_SECONDS = 5.0  # for the editor to open a file
_REFRESH_SECONDS = 0.2  # in which what a live document grew by is collected
_TEXTS_KEPT = 100  # of those that an editor may still want to see again


class EditorScreen:
    """The Screen of an editor that knows standard LSP."""

    def __init__(self, server: AgentServer) -> None:
        self._server = server
        self._can_ask = True
        self._asking = anyio.Lock()
        self._offers: set[anyio.CancelScope] = set()
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._live: dict[str, Path] = {}
        self._outdated: set[str] = set()
        self._asks_for_texts = bool(get_capability(server.client_capabilities, "workspace.text_document_content"))

    async def ask(self, message: str, actions: Sequence[str], *, otherwise: str = "") -> str | None:
        """Put a question that work waits for, one at a time (S4); every offer gives way to it.

        An editor that does not know the request is told instead, and not asked again.
        """
        for scope in self._offers:
            scope.cancel()
        async with self._asking:
            return await self._ask(message, actions, otherwise)

    async def offer(self, message: str, actions: Sequence[str]) -> str | None:
        """Put a question that nothing waits for, and that may stay without an answer for ever."""
        with anyio.CancelScope() as scope:
            self._offers.add(scope)
            try:
                async with self._asking:
                    return await self._ask(message, actions, "")
            finally:
                self._offers.discard(scope)
        return None

    async def _ask(self, message: str, actions: Sequence[str], otherwise: str) -> str | None:
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
        """Show a text: a document that the editor asks us for where it can (LSP 3.18), else a private file."""
        if self._asks_for_texts:
            uri = _uri(name)
            self._texts[uri] = text
            while len(self._texts) > _TEXTS_KEPT:
                self._texts.popitem(last=False)
            return await self._show(uri)
        try:
            file = await anyio.to_thread.run_sync(self._write, name, text)
        except OSError as error:
            _log.warning("a change cannot be shown: %s", error)
            return False
        return await self.show_file(file)

    async def show_live(self, file: Path) -> bool:
        """Show a file that grows: a document that the editor is told to ask for again with ``grew``, where it can."""
        if not self._asks_for_texts:
            return await self.show_file(file)
        self._live[_uri(file.name)] = file
        return await self._show(_uri(file.name))

    def grew(self, file: Path) -> None:
        """Let the editor ask for a live document again, once for all that it grew by meanwhile."""
        uri = _uri(file.name)
        if uri not in self._live or uri in self._outdated:
            return
        self._outdated.add(uri)
        self._server.start_job(partial(self._refresh, uri), "refresh")

    async def _refresh(self, uri: str) -> None:
        await anyio.sleep(_REFRESH_SECONDS)
        self._outdated.discard(uri)
        params = types.TextDocumentContentRefreshParams(uri=uri)
        try:
            with anyio.move_on_after(_SHOW_SECONDS):
                await self._server.workspace_text_document_content_refresh_async(params)
        except JsonRpcException as error:
            _log.info("the editor does not read documents anew: %s", error)

    async def content(self, uri: str) -> str:
        """The text of a document of ours. Raises JsonRpcInvalidParams for one that is not, or no longer, known."""
        known = _uri(unquote(uri.removeprefix(f"{SCHEME}:").lstrip("/")))
        if (file := self._live.get(known)) is not None:
            return await anyio.to_thread.run_sync(partial(file.read_text, encoding="utf-8", errors="replace"))
        if (text := self._texts.get(known)) is not None:
            return text
        raise JsonRpcInvalidParams(f"Invalid params: there is no document {uri}")

    def _write(self, name: str, text: str) -> Path:
        """Write into a private directory, made again where a cleaner of temporary files has taken it."""
        if self._directory is None or not Path(self._directory.name).is_dir():
            self._directory = tempfile.TemporaryDirectory(prefix="agent-lsp-", ignore_cleanup_errors=True)
        file = Path(self._directory.name) / name
        _write_private(file, text)
        return file

    async def show_file(self, file: Path) -> bool:
        """Open a file beside the user's work, where the editor can."""
        return await self._show(file.as_uri())

    async def show_place(self, uri: str, position: types.Position) -> bool:
        """Take the user to a place."""
        return await self._show(uri, types.Range(position, position))

    async def _show(self, uri: str, selection: types.Range | None = None) -> bool:
        params = types.ShowDocumentParams(uri=uri, take_focus=selection is not None, selection=selection)
        try:
            with anyio.move_on_after(_SHOW_SECONDS):
                shown = await self._server.window_show_document_async(params)
                return shown is not None and shown.success
        except JsonRpcException as error:
            _log.info("the editor does not show documents: %s", error)
        return False


def _uri(name: str) -> str:
    return f"{SCHEME}:/{quote(name)}"


def _write_private(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(text)
