"""The sessions of one server, and a prompt's way from an editor into one of them.

Imported with the first prompt, not with the server: what it needs costs more than answering ``initialize``.
"""

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread
from pygls.exceptions import JsonRpcInvalidParams

from agent_lsp.agent.events import (
    AgentEvent,
    ConfiguredHookRan,
    FileChanged,
    HookActed,
    SubagentEvent,
    TurnFinished,
    TurnStarted,
    ValidationFinished,
    ValidationReport,
    ValidationStarted,
    ValidatorFinished,
    event_json,
)
from agent_lsp.errors import ConfigurationError
from agent_lsp.lsp.approvals import EditorApprover
from agent_lsp.lsp.screen import EditorScreen
from agent_lsp.lsp.transcript import TranscriptFile
from agent_lsp.lsp.wire import PromptParams, hook_json, read, run_json, with_context
from agent_lsp.session.assemble import SessionOptions, open_session, parse_mode
from agent_lsp.session.configured import workspace_settings
from agent_lsp.session.directories import state_directory
from agent_lsp.session.inspect import list_hooks
from agent_lsp.session.session import PermissionMode, Session, Subscriber
from agent_lsp.session.stored import StoredSessions, stored_sessions
from agent_lsp.session.trust import TrustItem, workspace_trust
from agent_lsp.workspace import Documents, Place

_log = logging.getLogger(__name__)


class Client(Protocol):
    """What a turn tells the editor while it runs."""

    def send_event(self, params: Mapping[str, object]) -> None:
        """Notify ``agent/event``."""
        ...

    def warn(self, message: str) -> None:
        """Show a warning."""
        ...

    async def keep_open(self, session: Session) -> None:
        """Hold a session open from now on; returns when it is."""
        ...

    def file_changed(self, path: Path) -> None:
        """The agent wrote a file."""
        ...

    def blocked(self, path: Path, message: str, place: Place | None) -> None:
        """A hook, which is set at a place, kept the agent from a file."""
        ...

    def validating(self) -> None:
        """Validators run now."""
        ...

    def validated(self, session: Session, report: ValidationReport) -> None:
        """A round of validators is over."""
        ...


@dataclass(slots=True, kw_only=True)
class Turn:
    """One prompt on its way through a session."""

    session: Session
    prompt: str
    token: int | str | None
    mode: PermissionMode | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    async def run(self, subscriber: Subscriber) -> TurnFinished:
        return await self.session.run(self.prompt, turn_id=self.id, mode=self.mode, subscriber=subscriber)

    def cancel(self) -> None:
        self.session.cancel(self.id)


class Conversations:
    """Opens sessions on demand; without an id a prompt goes to the latest."""

    def __init__(
        self,
        *,
        root: Path,
        folders: Sequence[Path],
        client: Client,
        screen: EditorScreen,
        approver: EditorApprover,
        documents: Documents,
        settings: Sequence[Mapping[str, Any]],
        events: bool,
    ) -> None:
        self.sessions: dict[str, Session] = {}
        self.mode: str | None = None
        self._opening = anyio.Lock()
        self._outputs: dict[str, list[str]] = {}
        self._listed: tuple[TrustItem, ...] = ()
        self._root = root
        self._folders = folders
        self._retired: set[str] = set()
        self._client = client
        self.approver = approver
        self.screen = screen
        self._documents = documents
        self._settings = settings
        self._events = events

    async def turn(self, arguments: object) -> Turn:
        """Read the parameters of a prompt and find its session. Raises JsonRpcInvalidParams or ConfigurationError."""
        params = read(PromptParams, arguments)
        mode = None if params.mode is None else parse_mode(params.mode)
        session = await self.chosen(params.session_id)
        return Turn(session=session, prompt=with_context(params), token=params.work_done_token, mode=mode)

    async def chosen(self, id_: str | None) -> Session:
        """The session with an id; without one the latest, opened if there is none."""
        async with self._opening:
            if id_ is not None:
                return self.sessions.get(id_) or await self._resume(id_)
            return self.latest or await self._open()

    async def begin(self) -> Session:
        """A new session, which is the latest from now on."""
        async with self._opening:
            return await self._open()

    async def resume(self, id_: str | None) -> Session:
        """Go on with a session of this server, or with a stored one; without an id, with the one written last.

        It is the latest from now on. Raises ConfigurationError.
        """
        async with self._opening:
            session = self.sessions.get(id_ or "") or await self._resume(id_)
            self.sessions[session.id] = self.sessions.pop(session.id)
            self._retired.discard(session.id)
            return session

    async def _resume(self, id_: str | None) -> Session:
        found = await anyio.to_thread.run_sync(self.stored.find, id_)
        return self.sessions.get(found) or await self._open(found)

    @property
    def stored(self) -> StoredSessions:
        """What is stored of this workspace."""
        return stored_sessions(self._root)

    @property
    def latest(self) -> Session | None:
        current = (session for id_, session in reversed(self.sessions.items()) if id_ not in self._retired)
        return next(current, None)

    def move(self, root: Path) -> None:
        """The workspace has another root: what is begun from now on without an id is begun there."""
        if root != self._root:
            self._root = root
            self._retired.update(self.sessions)

    def session(self, id_: str) -> Session:
        session = self.sessions.get(id_)
        if session is None:
            raise ConfigurationError(f"There is no session {id_} in this server")
        return session

    async def _open(self, resume: str | None = None) -> Session:
        """Start or resume a session, with a transcript file and, where the client wants it, an event stream."""
        session = open_session(
            SessionOptions(
                root=self._root,
                resume=resume,
                folders=self._folders,
                approver=self.approver,
                documents=self._documents,
                editor_settings=self._settings,
                mode=self.mode,
            )
        )
        session.subscribe(
            TranscriptFile(self.transcript(session), grew=self.screen.grew, redact=session.history.redact)
        )
        session.subscribe(partial(self._follow, session, self._root))
        if self._events:
            session.subscribe(_Numbered(session, self._client))
        await self._client.keep_open(session)
        self.sessions[session.id] = session
        return session

    def transcript(self, session: Session) -> Path:
        """Where the session's Markdown transcript lies: in the user's state directory."""
        return state_directory() / "transcripts" / f"{session.id}.md"

    def set_mode(self, mode: str) -> None:
        """Change the permission mode of every session and of those to come. Raises ConfigurationError."""
        parsed = parse_mode(mode)
        for session in self.sessions.values():
            session.set_mode(parsed)
        self.mode = mode

    def current_mode(self) -> str:
        """The mode in force: that of the latest session, else the one that the next session would have."""
        if self.latest is not None:
            return self.latest.mode
        return self.mode or workspace_settings(self._root, self._settings).settings.permissions.mode

    def cancel(self, id_: str | None) -> bool:
        """Cancel the turns of one session, or of all."""
        chosen = self.sessions.values() if id_ is None else [self.session(id_)]
        return sum(session.cancel() for session in chosen) > 0  # a sum, because every one of them is cancelled

    def _follow(self, session: Session, root: Path, event: AgentEvent) -> None:
        """Tell the human what a session's events ask for (S4)."""
        match event:
            case TurnStarted():
                permissions = session.settings.permissions
                self.approver.timeout = permissions.approval_timeout
                self.approver.guard = permissions.answer_guard_ms / 1000
            case HookActed(action="deny", tool=str(tool)):
                message = f"PreToolUse blocked {tool}: {event.reason}"
                self._client.warn(message)
                place = next((hook.place for hook in session.hooks.runner.hooks if hook.name == event.fired_by), None)
                for path in event.paths:
                    self._client.blocked(root / path, message, place)
            case ConfiguredHookRan() if event.message:
                self._client.warn(f"{event.name}: {event.message}")
            case ConfiguredHookRan(decision="failed" | "skipped"):
                _log.warning("hook %s (%s) %s: %s", event.name, event.event, event.decision, event.reason)
            case ValidationStarted():
                self._client.validating()
                self._outputs[session.id] = []
            case ValidatorFinished() if event.output:
                self._outputs[session.id].append(f"{event.name}: {event.status}\n\n{event.output}\n")
            case ValidationFinished(report=report):
                self._client.validated(session, report)
            case FileChanged(path=path):
                self._client.file_changed(root / path)
            case SubagentEvent():
                self._follow(session, root, event.event)

    def validation_output(self, session: Session) -> str:
        """What the validators of the last round printed."""
        return "\n".join(self._outputs.get(session.id, ()))

    def hooks(self) -> dict[str, Any]:
        """``agent.hooks``; reads the settings, so not for the loop's thread."""
        report = list_hooks(self._root, self._settings)
        runners = [session.hooks.runner for session in self.sessions.values()]
        unmatched = {hook: why for runner in runners for hook, why in runner.unmatched.items()}
        runs = sorted((run for runner in runners for run in runner.runs), key=lambda run: run.started)
        return {
            "hooks": [hook_json(state, unmatched.get(state.hook)) for state in report.hooks],
            "problems": [str(problem) for problem in report.problems],
            "runs": [run_json(run) for run in runs],
        }

    def trust(self, decision: str | None) -> dict[str, Any]:
        """``agent.trust``; reads the settings, so not for the loop's thread. Raises JsonRpcInvalidParams."""
        workspace = workspace_trust(self._root, self._settings)
        match decision:
            case "grant" if self._listed != workspace.items:
                raise JsonRpcInvalidParams(
                    "Invalid params: what would be executed was not shown yet, or has changed since; list it first "
                    "(agent.trust without a decision)"
                )
            case "grant":
                workspace.grant()
            case "revoke":
                workspace.revoke()
            case None:
                pass
            case _:
                raise JsonRpcInvalidParams("Invalid params: decision is grant or revoke")
        self._listed = workspace.items
        waiting = workspace.waiting
        return {
            "items": [
                {"text": item.text, "place": str(item.place), "trusted": item not in waiting}
                for item in workspace.items
            ],
            "trusted": not waiting,
        }


class _Numbered:
    """Sends each event to the client with its place in the session's stream."""

    def __init__(self, session: Session, client: Client) -> None:
        self._session = session
        self._client = client
        self._sequence = 0

    def __call__(self, event: AgentEvent) -> None:
        self._sequence += 1
        self._client.send_event(
            {
                "sessionId": self._session.id,
                "turnId": self._session.turn_id,
                "seq": self._sequence,
                "event": event_json(event),
            }
        )
