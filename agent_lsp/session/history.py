"""The stored side of one session: its transcript, its turns, and the changes that each of them made.

Invariant: what enters the transcript is on its way to the disk before anything else happens; a turn that has ended is
there for good.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from agent_lsp.agent.agent import ChangeRecorder, NoRecorder
from agent_lsp.agent.events import AgentEvent, SubagentEvent, ToolFinished, ToolStarted, TurnFinished
from agent_lsp.errors import ConfigurationError
from agent_lsp.messages import ChatMessage, Usage, UserMessage, system_reminder
from agent_lsp.redaction import Redactor
from agent_lsp.session.checkpoints import Checkpoints
from agent_lsp.session.file_state import Objects
from agent_lsp.session.records import Replay, StoredTurn, message_record, title_of, view_record
from agent_lsp.session.store import SessionFile
from agent_lsp.tools.task import TaskList
from agent_lsp.workspace import Documents, Workspace

if TYPE_CHECKING:
    from agent_lsp.session.undo import UndoReport

_log = logging.getLogger(__name__)

SYNC_SECONDS = 5.0
"""For a disk to take what a turn has written, at most; the turn's end waits for it."""


class History:
    """What a session remembers, and keeps where it has a ``file``."""

    def __init__(self, file: SessionFile | None, found: Replay) -> None:
        self.transcript = found.transcript
        self.turns = found.turns
        self._found = found
        self.recorder: ChangeRecorder = NoRecorder()
        self._file = file
        self._turn: StoredTurn | None = None
        self.clean_up: Callable[[], None] = _nothing
        """What ``tidy`` does, in a thread."""
        if file is not None:
            self.transcript.watch(self._keep_message, self._keep_view)

    @property
    def problem(self) -> str:
        """What was wrong with the end of a session that was resumed; empty where nothing was."""
        return self._found.problem

    @property
    def title(self) -> str:
        """The first line of the first prompt."""
        return title_of(self.turns)

    def keep_changes(self, workspace: Workspace, documents: Documents) -> None:
        """Keep what turns change in files from now on."""
        if self._file is not None:
            self._workspace, self._documents = workspace, documents
            self._objects = Objects(self._file.objects)
            write = partial(self._file.append, as_it_is=True)
            self.recorder = self._checkpoints = Checkpoints(workspace, documents, self._objects, write)

    def hide(self, secrets: Iterable[str]) -> None:
        """Keep these out of what is stored, besides what looks like a secret."""
        if self._file is not None:
            self._file.redact = Redactor(secrets)

    def redact(self, text: str) -> str:
        """A text as it may be kept."""
        return text if self._file is None else self._file.redact(text)

    def keep_tasks(self, tasks: TaskList) -> None:
        """Give a list the tasks of an earlier time, and keep it from now on."""
        self._tasks = tasks
        with suppress(TypeError, KeyError, ValueError):  # a list of another version is none
            tasks.restore(self._found.tasks)

    def _keep_message(self, message: ChatMessage) -> None:
        if self._file is not None:
            self._file.append(message_record(message))

    def _keep_view(self, view: Sequence[ChatMessage]) -> None:
        if self._file is not None:
            self._file.append(view_record(view))

    @property
    def usage(self) -> Usage:
        """Of all turns that have ended."""
        return sum((turn.usage for turn in self.turns), Usage())

    def begin(self, turn_id: str, prompt: str) -> None:
        """A turn begins."""
        if self._file is None:
            return
        turn = StoredTurn(id=turn_id, prompt=prompt, began=time.time(), first_message=len(self.transcript))
        self.turns.append(turn)
        self._turn = turn
        self._file.append({"type": "turn", "id": turn.id, "prompt": prompt, "at": turn.began})
        self._checkpoints.begin(turn)

    def note(self, event: AgentEvent) -> None:
        """Hear the event stream: of a call that has begun, nobody may say later that it had no effect."""
        match event:
            case ToolStarted() if self._file is not None:
                self._file.append({"type": "started", "call": event.call_id})
            case ToolFinished(tool="task_create" | "task_update", handler_ran=True) if self._file is not None:
                self._file.append({"type": "tasks", "tasks": self._tasks.to_json()})
            case SubagentEvent(event=(ToolFinished() | SubagentEvent()) as inner):
                self.note(inner)

    def changed(self) -> tuple[str, ...]:
        """The files that the running turn has changed so far, as the workspace shows them, programs' part included."""
        if self._turn is None:
            return ()
        paths = (path for path, change in self._turn.changes.items() if change.is_of_file)
        return tuple(self._workspace.display(Path(path)) for path in paths)

    async def end(self, finished: TurnFinished) -> None:
        """The turn has ended; returns when the disk has it, or takes too long."""
        turn, self._turn = self._turn, None
        if turn is None or self._file is None:
            return
        self._checkpoints.end()
        turn.ended, turn.stop_reason = time.time(), finished.stop_reason
        turn.text, turn.error, turn.usage = finished.text, finished.error, finished.usage
        self._file.append(
            {
                "type": "end",
                "id": turn.id,
                "at": turn.ended,
                "reason": finished.stop_reason,
                "text": finished.text,
                "error": finished.error,
                "usage": asdict(finished.usage),
            }
        )
        await self._sync()

    async def _sync(self) -> None:
        with anyio.move_on_after(SYNC_SECONDS, shield=True):
            await anyio.to_thread.run_sync(self._sync_now, abandon_on_cancel=True)

    def _sync_now(self) -> None:
        if self._file is not None:
            self._objects.sync()
            self._file.sync()

    async def tidy(self) -> None:
        """Clean up, the first time that this is called; a cancel does not wait for it."""
        clean_up, self.clean_up = self.clean_up, _nothing
        if self._file is not None and clean_up is not _nothing:
            try:
                await anyio.to_thread.run_sync(clean_up, abandon_on_cancel=True)
            except OSError as error:
                _log.warning("old sessions cannot be deleted: %s", error)

    async def undo(self, turn_id: str | None) -> "UndoReport":
        """Undo the changes of a turn, without an id of the last one that changed anything and is not undone.

        Raises ConfigurationError where there is no such turn.
        """
        from agent_lsp.session.undo import undo_turn  # most sessions go without

        turn = self._to_undo(turn_id)
        if self._file is None or turn is None:
            raise ConfigurationError("There is nothing to undo in this session")
        report = await undo_turn(turn, self._objects, self._workspace, self._documents)
        turn.undone = not report.refused
        self._file.append({"type": "undone", "turn": turn.id, "at": time.time(), "whole": turn.undone})
        if report.restored:
            self.transcript.append(UserMessage(content=_told(report), injected=True))
        await self._sync()
        return report

    def _to_undo(self, turn_id: str | None) -> StoredTurn | None:
        if turn_id is not None:
            found = [turn for turn in self.turns if turn.id == turn_id]
            if not found:
                raise ConfigurationError(f"There is no turn {turn_id} in this session")
            return found[0]
        return next((turn for turn in reversed(self.turns) if turn.changes and not turn.undone), None)

    def close(self) -> None:
        """Let another process go on with the session."""
        if self._file is not None:
            self._checkpoints.close()
            self._objects.sync()
            self._file.close()

    async def refresh(self, path: Path) -> None:
        """A program of ours changed a file right after the agent did."""
        if self._file is not None:
            await self._checkpoints.refresh(path)


def _nothing() -> None:
    """There is nothing to clean up."""


def _told(report: "UndoReport") -> str:
    """What the model is to know of an undo."""
    parts = [_listed("The user has undone changes of yours. These are again what they were before", report.restored)]
    if report.refused:
        parts.append(_listed("These were not undone", report.refused))
    return system_reminder("\n".join(parts))


def _listed(head: str, paths: Sequence[object]) -> str:
    return f"{head}: {', '.join(str(getattr(path, 'display', path)) for path in paths)}"
