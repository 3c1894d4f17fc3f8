"""What each turn changes in the workspace's files, kept so that it can be undone to the last bit.

Invariants: what was there is kept before the first change of it in a turn, and what a change left right after it, so
that what the user does in between is not taken for the agent's; the user's own repository is only read.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

import anyio
import anyio.to_thread

from agent_lsp.approvals import Action
from agent_lsp.session.file_state import Change, FileState, Objects, state_at, state_of_document
from agent_lsp.session.records import Record, StoredTurn
from agent_lsp.workspace import Access, Documents, Workspace

_log = logging.getLogger(__name__)


class Checkpoints:
    """The ChangeRecorder of a stored session; ``write`` takes its records."""

    def __init__(
        self, workspace: Workspace, documents: Documents, objects: Objects, write: Callable[[Record], None]
    ) -> None:
        self._workspace = workspace
        self._documents = documents
        self._objects = objects
        self._write = write
        self._turn: StoredTurn | None = None

    def begin(self, turn: StoredTurn) -> None:
        """What is changed from now on belongs to a turn."""
        self._turn = turn

    @asynccontextmanager
    async def recording(self, action: Action) -> AsyncIterator[None]:
        """Keep what it takes to undo what happens in the block."""
        turn = self._turn
        if turn is None or action.access is not Access.WRITE:
            yield
            return
        paths = [each for path in action.paths for each in _with_new_parents(path.path)]
        for path in paths:
            await self._keep(turn, path, after=False)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                for path in paths:
                    await self._keep(turn, path, after=True)

    async def _keep(self, turn: StoredTurn, path: Path, *, after: bool) -> None:
        """Note the state of one path before or after a change; what cannot be kept is noted as not covered."""
        try:
            state = await self._state(path)
        except OSError as error:
            self._note(turn, f"{path}: what was there could not be kept ({error.strerror or error})")
            return
        known = turn.changes.get(str(path))
        before = known.before if known is not None else state
        self._change(turn, path, Change(before=before, after=state if after else None))

    async def _state(self, path: Path) -> FileState:
        document = await self._documents.get(path)
        if document is not None and document.unsaved:
            return await anyio.to_thread.run_sync(state_of_document, document, path, self._objects)
        return await anyio.to_thread.run_sync(state_at, path, self._objects)

    def _change(self, turn: StoredTurn, path: Path, change: Change) -> None:
        turn.changes[str(path)] = change
        self._write(
            {
                "type": "change",
                "turn": turn.id,
                "path": str(path),
                "before": asdict(change.before),
                "after": None if change.after is None else asdict(change.after),
            }
        )

    def _note(self, turn: StoredTurn, text: str) -> None:
        if text not in turn.notes:
            turn.notes.append(text)
            self._write({"type": "note", "turn": turn.id, "text": text})


def _with_new_parents(path: Path) -> Iterator[Path]:
    """A path, behind the directories on the way to it that are not there yet."""
    missing = []
    for parent in path.parents:
        if parent.is_dir():
            break
        missing.append(parent)
    yield from reversed(missing)
    yield path
