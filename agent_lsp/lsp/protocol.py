"""The life of the server and the methods that it handles itself: start, end, documents, commands, progress.

Invariants: ``initialize`` is answered whatever the client announces; ``shutdown`` ends the running work before it is
answered; each open document is mirrored once, in ``server.documents``. A feature registered for one of these methods
is called after the method itself. ``tests/lsp/test_pygls_contract.py`` fails where a new pygls would change the ground.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cattrs import Converter
from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcInvalidParams

from agent_lsp.lsp.documents import file_name
from agent_lsp.lsp.lenient import reasons, structure_leniently
from agent_lsp.lsp.rpc import RpcProtocol, Stage

if TYPE_CHECKING:
    from agent_lsp.lsp.server import AgentServer

SHUTDOWN_LIMIT = 1.5
"""Seconds that running work gets to end in, once it is cancelled."""

SCHEME = "agent-lsp"
"""Of the URIs under which clients ask us for texts."""

_REQUIRED: Mapping[str, Any] = MappingProxyType({"processId": None, "capabilities": {}})


class AgentProtocol(RpcProtocol):
    """The protocol of ``AgentServer``."""

    def __init__(self, server: "AgentServer", converter: Converter) -> None:
        self.progress_cancels: dict[types.ProgressToken, Callable[[], None]] = {}
        super().__init__(server, converter)

    def _register_builtin_features(self) -> None:
        builtin: dict[str, Callable[..., Any]] = {
            types.INITIALIZE: self._initialize,
            types.SHUTDOWN: self._shut_down,
            types.EXIT: self._exit,
            types.SET_TRACE: self.lsp_set_trace,
            types.TEXT_DOCUMENT_DID_OPEN: self._did_open,
            types.TEXT_DOCUMENT_DID_CHANGE: self._did_change,
            types.TEXT_DOCUMENT_DID_SAVE: self._did_save,
            types.TEXT_DOCUMENT_DID_CLOSE: self._did_close,
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: self._did_change_folders,
            types.WORKSPACE_EXECUTE_COMMAND: self._execute_command,
            types.WINDOW_WORK_DONE_PROGRESS_CANCEL: self._cancel_progress,
        }
        for method, handler in builtin.items():
            self.fm.add_builtin_feature(method, handler)

    def _registered(self, method: str, params: Any) -> Any:
        handler = self.fm.features.get(method)
        return None if handler is None else handler(params)

    async def _initialize(self, params: Any) -> types.InitializeResult:
        self.stage = Stage.INITIALIZING
        try:
            result: types.InitializeResult = await self._finish(self.lsp_initialize(self._read_initialize(params)))
        except BaseException:
            self.stage = Stage.NEW
            raise
        if get_capability(self._server.client_capabilities, "workspace.text_document_content"):
            offered = result.capabilities.workspace or types.WorkspaceOptions()
            offered.text_document_content = types.TextDocumentContentOptions(schemes=[SCHEME])  # pygls does not
            result.capabilities.workspace = offered
        if not self._server.offers_code_lens:
            result.capabilities.code_lens_provider = None
        self.stage = Stage.RUNNING
        self._server.begin(result.capabilities)
        return result

    def _read_initialize(self, params: Any) -> types.InitializeParams:
        if not isinstance(params, dict):
            raise JsonRpcInvalidParams("Invalid params: initialize takes an object")
        try:
            known = structure_leniently(self._converter, params, types.InitializeParams, _REQUIRED)
        except Exception as error:
            raise JsonRpcInvalidParams(f"Invalid params: {reasons(error)}") from error
        if known.root_uri is not None and file_name(known.root_uri) is None:  # pygls fails at some of these
            known.root_uri = None
        return known

    async def _shut_down(self, params: None) -> None:
        self.stage = Stage.SHUT_DOWN
        await self._server.jobs.end(SHUTDOWN_LIMIT)
        await self._finish(self._registered(types.SHUTDOWN, params))

    def _exit(self, _params: None) -> None:
        self._server.stop(0 if self.stage is Stage.SHUT_DOWN else 1)

    def _did_change_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> Any:
        """Without pygls' own list, which fails at a folder that it does not know."""
        return self._registered(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, params)

    def _did_open(self, params: types.DidOpenTextDocumentParams) -> Any:
        self._server.documents.open(params.text_document)
        return self._registered(types.TEXT_DOCUMENT_DID_OPEN, params)

    def _did_change(self, params: types.DidChangeTextDocumentParams) -> Any:
        self._server.documents.change(params.text_document, params.content_changes)
        return self._registered(types.TEXT_DOCUMENT_DID_CHANGE, params)

    def _did_save(self, params: types.DidSaveTextDocumentParams) -> Any:
        self._server.documents.save(params.text_document.uri)
        return self._registered(types.TEXT_DOCUMENT_DID_SAVE, params)

    def _did_close(self, params: types.DidCloseTextDocumentParams) -> Any:
        self._server.documents.close(params.text_document.uri)
        return self._registered(types.TEXT_DOCUMENT_DID_CLOSE, params)

    def _execute_command(self, params: Any) -> Any:
        """Call the command with its arguments as plain JSON; one that waits is a job, and so can be cancelled."""
        match params:
            case {"command": str(name), "arguments": list(arguments)}:
                pass
            case {"command": str(name)} if params.get("arguments") is None:
                arguments = []
            case _:
                raise JsonRpcInvalidParams("Invalid params: a command is a string, its arguments an array")
        command = self.fm.commands.get(name)
        if command is None:
            raise JsonRpcInvalidParams(f"Invalid params: there is no command {name!r}")
        return command(*arguments)

    def _cancel_progress(self, params: types.WorkDoneProgressCancelParams) -> Any:
        if not isinstance(params.token, int | str):  # the converter lets any value pass for a choice of simple types
            raise JsonRpcInvalidParams("Invalid params: a token is an integer or a string")
        if (cancel := self.progress_cancels.get(params.token)) is not None:
            cancel()
        return self._registered(types.WINDOW_WORK_DONE_PROGRESS_CANCEL, params)
