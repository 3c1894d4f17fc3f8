"""What the registered handlers do: translate between the protocol and the sessions.

Holds the one state of the server beyond documents and jobs: its options and its conversations.
"""

import importlib
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcMethodNotFound,
    JsonRpcRequestCancelled,
)

from agent_lsp.lsp.code_actions import code_actions
from agent_lsp.lsp.code_lens import code_lenses
from agent_lsp.lsp.diagnostics import (
    VALIDATION,
    ApprovalDiagnostics,
    Block,
    BlockDiagnostics,
    DiagnosticBoard,
    SettingsDiagnostics,
    ValidationDiagnostics,
    is_settings_file,
)
from agent_lsp.lsp.documents import path_of, real_path
from agent_lsp.lsp.options import ClientOptions, EditorSettings
from agent_lsp.lsp.problems import SeenProblems
from agent_lsp.lsp.progress import work_done_progress
from agent_lsp.lsp.server import AgentServer
from agent_lsp.lsp.validation import ValidationFront
from agent_lsp.workspace import Place

if TYPE_CHECKING:
    from agent_lsp.agent.events import AgentEvent, TurnFinished, ValidationReport
    from agent_lsp.approvals import ApprovalReply
    from agent_lsp.lsp.approvals import PendingApproval
    from agent_lsp.lsp.jobs import Job
    from agent_lsp.lsp.prompts import Conversations, Turn
    from agent_lsp.session.session import Session

_log = logging.getLogger(__name__)

_DRAIN_SECONDS = 1.0  # for hooks that observe, of the two seconds in which a server ends
_SHOWN = 400  # characters of the final answer in a message; the transcript has the rest


class Front:
    """The handlers' side of the server.

    ``conversations`` appear with the first request that needs them; ``arriving`` are prompts on their way to a session.
    """

    def __init__(self, server: AgentServer) -> None:
        self._server = server
        self.settings = EditorSettings(server)
        self._options = ClientOptions()
        self._seen_problems = SeenProblems(server.documents)
        self.root = Path.cwd()
        self.folders: list[Path] = []
        self._preparing: Job[None] | None = None
        self.arriving: set[anyio.CancelScope] = set()
        self._shown: set[str] = set()
        self._board = DiagnosticBoard(server)
        self._diagnostics = SettingsDiagnostics(server, self._board)
        self._approvals = ApprovalDiagnostics(self._board)
        self.blocks = BlockDiagnostics(self._board)
        self.validation = ValidationFront(server, self, ValidationDiagnostics(self._board))
        self.conversations: Conversations | None = None

    # The workspace

    def configure(self, params: types.InitializeParams) -> None:
        """Take the editor's options (S4) and the workspace folder."""
        options = params.initialization_options
        if isinstance(options, Mapping):
            self._options = ClientOptions.read(options)
            self._server.offers_code_lens = self._options.code_lens
            self.settings.begin(options.get("settings"))
        folders = [folder.uri for folder in params.workspace_folders or ()]
        self._take_folders(folders or [uri for uri in (params.root_uri,) if uri])

    def change_folders(self, event: types.WorkspaceFoldersChangeEvent) -> None:
        """Folders were added to the workspace or removed. The first is the root; without any it stays what it was."""
        removed = {path_of(folder.uri) for folder in event.removed}
        kept = [folder for folder in self.folders if folder not in removed]
        self._take_folders([*(folder.as_uri() for folder in kept), *(folder.uri for folder in event.added)])

    def _take_folders(self, uris: Sequence[str]) -> None:
        """Replace the folders in the list that the sessions hold: they read it with their next prompt."""
        self.folders[:] = dict.fromkeys(path for uri in uris if (path := path_of(uri)) is not None)
        if self.folders:
            self.root = self.folders[0]
        if self.conversations is not None:
            self.conversations.move(self.root)
            self.check_settings()

    def document_changed(self, uri: str) -> None:
        """A document was edited, not only read anew: what validators found in it may not be true any more."""
        path = self._server.documents.path(uri)
        if path is not None and self.validation.is_about(path) and self._server.documents.is_unsaved(uri):
            self.validation.outdate(path)

    # Prompts

    def prepare(self) -> "Job[None]":
        """Import what prompts need, off the loop, and ask for the editor's settings; once (P4)."""
        if self._preparing is None:
            self._preparing = self._server.start_job(self._prepare, "prepare")
        return self._preparing

    async def _prepare(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self.settings.pull)
            await anyio.to_thread.run_sync(importlib.import_module, "agent_lsp.lsp.prompts")
        if get_capability(self._server.client_capabilities, "workspace.did_change_watched_files.dynamic_registration"):
            self._diagnostics.watch()
        self.check_settings()

    def check_settings(self) -> None:
        """Show the mistakes in the settings files as they are now."""
        check = partial(self._diagnostics.refresh, self.root, self.settings.layers)
        self._server.start_job(check, "check settings")

    def document_opened(self, uri: str) -> None:
        """A document was opened."""
        if (path := self._server.documents.path(uri)) is not None:
            self._board.opened(path)
        self.document_saved(uri)

    def document_saved(self, uri: str) -> None:
        """A document is as its file is."""
        if is_settings_file(self._server.documents.path(uri)):
            self.check_settings()

    async def talk(self) -> "Conversations":
        """The conversations, made with the first prompt because what they import is heavy."""
        await self.prepare().settle()
        if self.conversations is None:
            from agent_lsp.lsp.approvals import EditorApprover
            from agent_lsp.lsp.edits import EditedDocuments
            from agent_lsp.lsp.prompts import Conversations
            from agent_lsp.lsp.screen import EditorScreen

            screen = EditorScreen(self._server)
            documents = EditedDocuments(
                self._server,
                by_request=self._options.documents,
                tells_problems=self._options.diagnostics,
                seen=self._seen_problems,
                ask=screen.ask,
            )
            self.conversations = Conversations(
                root=self.root,
                folders=self.folders,
                client=self,
                screen=screen,
                approver=EditorApprover(
                    screen, changed=self._show_waiting, put=self._request_approval if self._options.approvals else None
                ),
                documents=documents,
                settings=self.settings.layers,
                events=self._options.events,
            )
        return self.conversations

    def close(self) -> None:
        """The server ends: nothing of ours may stay in the editor."""
        self._board.clear()

    def _show_waiting(self) -> None:
        self._approvals.show(self._waiting())

    def _waiting(self) -> "Sequence[PendingApproval]":
        return () if self.conversations is None else self.conversations.approver.pending

    async def _request_approval(self, entry: "PendingApproval") -> "ApprovalReply | None":
        """``agent/requestApproval``; what is no clear answer is none. Raises NotImplementedError."""
        from agent_lsp.lsp.wire import AnswerParams, approval_request, read

        params = approval_request(entry, self._server.documents)
        try:
            answer = await self._server.protocol.send_request_async("agent/requestApproval", params)
            reply = None if answer is None else read(AnswerParams, answer).reply()
            if reply is not None:
                entry.check(reply)
        except JsonRpcMethodNotFound as error:
            raise NotImplementedError from error
        except (JsonRpcException, ValueError) as error:
            _log.warning("the client's answer to an approval is none: %s", error)
            return None
        return reply

    def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """``textDocument/codeAction``"""
        self._seen_problems.note(params)
        path = self._server.documents.path(params.text_document.uri)
        return code_actions(self._server, params, path, waiting=self._waiting(), blocks=self.blocks.at(path))

    def code_lenses(self, uri: str) -> list[types.CodeLens]:
        """``textDocument/codeLens``"""
        text, path = self._server.documents.text(uri), self._server.documents.path(uri)
        if text is None or path is None:
            return []
        return code_lenses(uri, text, self._board.of(VALIDATION).get(path, ()))

    async def content(self, params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        """``workspace/textDocumentContent``: a text that was shown."""
        return types.TextDocumentContentResult(text=await (await self.talk()).screen.content(params.uri))

    async def _turn(self, arguments: object) -> "Turn":
        """The turn that a request asks for; a cancel meanwhile finds it here."""
        with anyio.CancelScope() as scope:
            self.arriving.add(scope)
            try:
                return await (await self.talk()).turn(arguments)
            finally:
                self.arriving.discard(scope)
        raise JsonRpcRequestCancelled("The prompt was cancelled before it began")

    async def prompt(self, params: object) -> dict[str, Any]:
        """``agent/prompt``: the result when the turn has ended."""
        turn = await self._turn(params)
        from agent_lsp.lsp.wire import result_json

        return result_json(turn.session.id, turn.id, await self._run(turn))

    async def run(self, arguments: object) -> dict[str, str]:
        """``agent.run``: the turn goes on in the background, and ends with a message."""
        turn = await self._turn(arguments)

        async def work() -> None:
            finished = await self._run(turn)
            self._announce(finished)
            if finished.stop_reason == "validation_failed" and finished.validation is not None:
                await self.validation.offer_help(turn.session, finished.validation)

        self._server.start_job(work, f"turn {turn.id}")
        return {"sessionId": turn.session.id, "turnId": turn.id}

    async def _run(self, turn: "Turn") -> "TurnFinished":
        from agent_lsp.agent.events import TurnStarted
        from agent_lsp.lsp.wire import progress_reporter

        talk = await self.talk()
        title = f"Agent: {turn.prompt.splitlines()[0][:60]}"
        async with work_done_progress(self._server, title, turn.cancel, turn.token) as progress:
            follow = progress_reporter(progress)

            def show(event: "AgentEvent") -> None:
                follow(event)
                if isinstance(event, TurnStarted):
                    self.blocks.dismiss_all()
                    self._tell_problems(turn.session)
                    self.check_settings()
                    self._show_transcript(talk, turn.session)

            finished = await turn.run(show)
            progress.finish(finished.stop_reason)
        return finished

    def _tell_problems(self, session: "Session") -> None:
        """Show each mistake in settings once."""
        for problem in session.problems:
            if problem not in self._shown:
                self._shown.add(problem)
                self.warn(f"Settings: {problem}")

    def _show_transcript(self, talk: "Conversations", session: "Session") -> None:
        """Open a session's transcript with its first turn, for editors that show nothing of the events themselves."""
        path = talk.transcript(session)
        can_show = bool(get_capability(self._server.client_capabilities, "window.show_document.support"))
        if session.id not in self._shown and not self._options.events and can_show and path.exists():
            self._shown.add(session.id)
            self._server.start_job(partial(talk.screen.show_live, path), "show transcript")

    def _announce(self, finished: "TurnFinished") -> None:
        """Say how a background turn ended; the whole answer is in the log and the transcript."""
        text = finished.error or finished.text or finished.stop_reason
        kind = types.MessageType.Error if finished.error else types.MessageType.Info
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} […]"
        self._server.window_show_message(types.ShowMessageParams(type=kind, message=f"Agent: {shown}"))
        self._server.window_log_message(types.LogMessageParams(type=kind, message=text))

    # The Client of the conversations

    async def keep_open(self, session: "Session") -> None:
        """Hold a session open until the server ends."""
        started = anyio.Event()
        hold_open = partial(session.hold_open, started.set, drain=_DRAIN_SECONDS)
        self._server.start_job(hold_open, f"session {session.id}")
        await started.wait()

    def send_event(self, params: Mapping[str, object]) -> None:
        self._server.protocol.notify("agent/event", dict(params))

    def warn(self, message: str) -> None:
        self._server.window_show_message(types.ShowMessageParams(type=types.MessageType.Warning, message=message))

    def blocked(self, path: Path, message: str, place: Place | None) -> None:
        self.blocks.add(real_path(path), Block(message=message, place=place))

    def file_changed(self, path: Path) -> None:
        self.validation.outdate(real_path(path))

    def validating(self) -> None:
        self.validation.state = "running"

    def validated(self, session: "Session", report: "ValidationReport") -> None:
        self.validation.show(report)
        can_refresh = get_capability(self._server.client_capabilities, "workspace.code_lens.refresh_support")
        if self._server.offers_code_lens and can_refresh:
            self._server.workspace_code_lens_refresh(None)
