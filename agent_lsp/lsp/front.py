"""What the registered handlers do: translate between the protocol and the sessions.

Holds the one state of the server beyond documents and jobs: its options and its conversations.
"""

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from agent_lsp.lsp.documents import path_of
from agent_lsp.lsp.progress import work_done_progress
from agent_lsp.lsp.server import AgentServer

if TYPE_CHECKING:
    from agent_lsp.agent.events import AgentEvent, TurnFinished
    from agent_lsp.lsp.prompts import Conversations, Turn

_log = logging.getLogger(__name__)

_SECTION = "agentLsp"
_ASK_LIMIT = 5.0  # seconds that an editor gets to answer what needs no human
_SHOWN = 400  # characters of the final answer in a message; the transcript has the rest


class Front:
    """The handlers' side of the server."""

    def __init__(self, server: AgentServer) -> None:
        self._server = server
        self._settings: dict[str, Any] = {}
        self._events = False
        self._root = Path.cwd()
        self._conversations: Conversations | None = None

    # Settings

    def configure(self, params: types.InitializeParams) -> None:
        """Take the editor's options (S4) and the workspace folder."""
        options = params.initialization_options
        if isinstance(options, Mapping):
            self._events = options.get("events") is True
            self._take_settings(options.get("settings"))
        folders = [folder.uri for folder in params.workspace_folders or ()]
        roots = [path for uri in (*folders, params.root_uri) if uri and (path := path_of(uri)) is not None]
        if roots:
            self._root = roots[0]

    async def pull_settings(self) -> None:
        """Ask the editor for its section, if it can be asked."""
        if not get_capability(self._server.client_capabilities, "workspace.configuration"):
            return
        params = types.ConfigurationParams(items=[types.ConfigurationItem(section=_SECTION)])
        try:
            with anyio.move_on_after(_ASK_LIMIT):
                answers = await self._server.workspace_configuration_async(params)
                self._take_settings(next(iter(answers), None))
        except JsonRpcException as error:
            _log.warning("the editor's settings cannot be read: %s", error)

    async def change_settings(self, settings: object) -> None:
        """The editor's settings changed; some send them along, the others are asked."""
        if isinstance(settings, Mapping) and isinstance(settings.get(_SECTION), Mapping):
            self._take_settings(settings[_SECTION])
        else:
            await self.pull_settings()

    def _take_settings(self, settings: object) -> None:
        """Keep the settings object itself: sessions that exist read it with their next prompt."""
        if isinstance(settings, Mapping):
            self._settings.clear()
            self._settings.update(settings)

    # Prompts

    async def _talk(self) -> "Conversations":
        """The conversations, made with the first prompt because what they import is heavy."""
        if self._conversations is None:
            await anyio.to_thread.run_sync(__import__, "agent_lsp.lsp.prompts")
            from agent_lsp.lsp.approvals import EditorApprover
            from agent_lsp.lsp.prompts import Conversations
            from agent_lsp.lsp.screen import EditorScreen

            screen = EditorScreen(self._server)
            self._conversations = Conversations(
                root=self._root,
                client=self,
                screen=screen,
                approver=EditorApprover(screen),
                documents=self._server.documents,
                settings=self._settings,
                events=self._events,
            )
        return self._conversations

    async def _turn(self, arguments: object) -> "Turn":
        conversations = await self._talk()
        turn = conversations.turn(arguments)
        for problem in turn.session.problems:
            _log.warning("settings: %s", problem)
        return turn

    async def prompt(self, params: object) -> dict[str, Any]:
        """``agent/prompt``: the result when the turn has ended."""
        from agent_lsp.lsp.prompts import result_json

        turn = await self._turn(params)
        return result_json(turn, await self._run(turn))

    async def run(self, arguments: object) -> dict[str, str]:
        """``agent.run``: the turn goes on in the background, and ends with a message."""
        turn = await self._turn(arguments)

        async def work() -> None:
            self._announce(await self._run(turn))

        self._server.start_job(work, f"turn {turn.id}")
        return {"sessionId": turn.session.id, "turnId": turn.id}

    async def _run(self, turn: "Turn") -> "TurnFinished":
        from agent_lsp.agent.events import TurnStarted
        from agent_lsp.lsp.prompts import progress_line, transcript_path

        talk = await self._talk()
        title = f"Agent: {turn.prompt.splitlines()[0][:60]}"
        open_transcript = not turn.session.transcript and not self._events and self._can_show_documents()

        def cancel() -> None:
            turn.session.cancel()

        async with work_done_progress(self._server, title, cancel, turn.token) as progress:

            def show(event: "AgentEvent") -> None:
                line = progress_line(event)
                if line is not None:
                    progress.report(line)
                if open_transcript and isinstance(event, TurnStarted):  # its own subscriber has made the file by now
                    path = transcript_path(turn.session)
                    self._server.start_job(partial(talk.screen.show_file, path), "show transcript")

            unsubscribe = turn.session.subscribe(show)
            try:
                finished = await turn.run()
            finally:
                unsubscribe()
            progress.finish(finished.stop_reason)
        return finished

    def _can_show_documents(self) -> bool:
        return bool(get_capability(self._server.client_capabilities, "window.show_document.support"))

    def _announce(self, finished: "TurnFinished") -> None:
        """Say how a background turn ended; the whole answer is in the log and the transcript."""
        text = finished.error or finished.text or finished.stop_reason
        kind = types.MessageType.Error if finished.error else types.MessageType.Info
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} […]"
        self._server.window_show_message(types.ShowMessageParams(type=kind, message=f"Agent: {shown}"))
        self._server.window_log_message(types.LogMessageParams(type=kind, message=text))

    # The Client of the conversations

    def send_event(self, params: Mapping[str, object]) -> None:
        self._server.protocol.notify("agent/event", dict(params))

    def warn(self, message: str) -> None:
        self._server.window_show_message(types.ShowMessageParams(type=types.MessageType.Warning, message=message))

    # Commands

    def cancel(self, arguments: object) -> dict[str, bool]:
        """``agent.cancel``"""
        session_id = _optional_text(arguments, "sessionId")
        talk = self._conversations
        return {"cancelled": talk is not None and talk.cancel(session_id)}

    async def mode(self, arguments: object) -> dict[str, str]:
        """``agent.mode``"""
        wanted = _optional_text(arguments, "mode")
        talk = await self._talk()
        if wanted is not None:
            talk.set_mode(wanted)
        return {"mode": talk.current_mode()}

    def status(self) -> dict[str, Any]:
        """``agent.status``: one snapshot; imports nothing, so that it can be asked at any time."""
        talk = self._conversations
        sessions = [] if talk is None else list(talk.sessions.values())
        return {
            "root": str(self._root),
            "mode": "default" if talk is None else talk.current_mode(),
            "sessions": [
                {
                    "sessionId": session.id,
                    "turnId": session.turn_id,
                    "running": session.running,
                    "model": session.model_name,
                    "messages": len(session.transcript),
                }
                for session in sessions
            ],
            "pendingApprovals": 0 if talk is None else len(talk.approver.pending),
            "problems": [problem for session in sessions[-1:] for problem in session.problems],
        }

    def list_approvals(self) -> list[dict[str, Any]]:
        """``agent.approvals.list``"""
        waiting = () if self._conversations is None else self._conversations.approver.pending
        return [
            {
                "id": request.id,
                "tool": request.action.tool,
                "target": request.target,
                "reason": request.reason,
                "rule": request.rule,
                "diff": None if request.change is None else request.change.diff(),
            }
            for request in waiting
        ]

    async def answer_approval(self, arguments: object) -> dict[str, bool]:
        """``agent.approvals.answer``; without an id, the oldest."""
        talk = await self._talk()
        from agent_lsp.lsp.prompts import AnswerParams, read

        params = read(AnswerParams, arguments)
        return {"answered": talk.approver.answer(params.id, params.reply())}


def _optional_text(arguments: object, key: str) -> str | None:
    value = arguments.get(key) if isinstance(arguments, Mapping) else arguments
    if value is not None and not isinstance(value, str):
        raise JsonRpcInvalidParams(f"Invalid params: {key} must be a string")
    return value
