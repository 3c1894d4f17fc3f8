"""What each turn changes in the workspace's files, kept so that it can be undone to the last bit.

Invariants: what was there is kept before the first change of it in a turn, and what a change left right after it, so
that what the user does in between is not taken for the agent's; the user's own repository is only read.
"""

import logging
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.to_thread

from agent_lsp.approvals import Action
from agent_lsp.session.file_state import MAX_KEPT, MISSING, Change, FileState, Objects, state_at, state_of_document
from agent_lsp.session.read_only import is_read_only
from agent_lsp.session.records import Record, StoredTurn
from agent_lsp.session.snapshot import LIMITS, Contents, Limits, Signature, TooLarge, Tree, changed, scan
from agent_lsp.workspace import Access, Documents, Workspace

_log = logging.getLogger(__name__)

MAX_CHANGES = 50_000
"""Files that one command changed, above which nothing of it is kept."""

MAX_AFTER = 256 * 1024
"""Bytes of what a change left in a file, up to which it is kept for the diff of a refusal."""

_NAMED = 10
_TOO_LARGE = "what commands changed: the workspace has more files than can be looked at before each of them"


class Checkpoints:
    """The ChangeRecorder of a stored session; ``write`` takes its records."""

    def __init__(
        self,
        workspace: Workspace,
        documents: Documents,
        objects: Objects,
        write: Callable[[Record], None],
        limits: Limits = LIMITS,
    ) -> None:
        self._workspace = workspace
        self._documents = documents
        self._objects = objects
        self._write = write
        self._limits = limits
        self._contents = Contents(limits)
        self._turn: StoredTurn | None = None

    def begin(self, turn: StoredTurn) -> None:
        """What is changed from now on belongs to a turn."""
        self._turn = turn

    def close(self) -> None:
        """Nothing is changed any more."""
        self._turn = None
        self._contents.close()

    @asynccontextmanager
    async def recording(self, action: Action) -> AsyncIterator[None]:
        """Keep what it takes to undo what happens in the block."""
        turn = self._turn
        if turn is None:
            yield
        elif action.access is Access.WRITE:
            async with self._recording_paths(turn, [path.path for path in action.paths]):
                yield
        elif action.access is Access.EXECUTE and not is_read_only(action.command):
            async with self._recording_all(turn):
                yield
        else:
            yield

    # What names its files

    @asynccontextmanager
    async def _recording_paths(self, turn: StoredTurn, named: list[Path]) -> AsyncIterator[None]:
        paths = [each for path in named for each in _with_new_parents(path)]
        kept = [path for path in paths if await self._keep(turn, path, after=False)]
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                for path in kept:
                    await self._keep(turn, path, after=True)

    async def _keep(self, turn: StoredTurn, path: Path, *, after: bool) -> bool:
        """Note the state of one path before or after a change; what cannot be kept is noted as not covered."""
        try:
            state = await self._state(path, MAX_AFTER if after else MAX_KEPT)
        except OSError as error:
            self._note(turn, f"{path}: what was there could not be kept ({error.strerror or error})")
            return False
        known = turn.changes.get(str(path))
        if known is None:
            change = Change(before=state, after=state if after else None)
        elif after:
            change = replace(known, after=state)
        else:
            change = replace(known, after=None, mixed=known.mixed or _differs(known.after, state))
        self._change(turn, str(path), change)
        return True

    async def _state(self, path: Path, largest: int) -> FileState:
        document = await self._documents.get(path)
        if document is not None and document.unsaved:
            return await anyio.to_thread.run_sync(state_of_document, document, path, self._objects)
        return await anyio.to_thread.run_sync(partial(state_at, path, self._objects, largest=largest))

    async def refresh(self, path: Path) -> None:
        """A program of ours, such as a formatter, changed a file after the agent did: that counts as the agent's."""
        turn = self._turn
        if turn is not None and str(path) in turn.changes:
            await self._keep(turn, path, after=True)

    # What may change anything

    @asynccontextmanager
    async def _recording_all(self, turn: StoredTurn) -> AsyncIterator[None]:
        before: Tree | None = None
        interfered: set[str] = set()
        saves = dict(self._documents.saves())
        try:
            before, interfered = await anyio.to_thread.run_sync(self._look_before, turn)
        except OSError as error:
            self._note(turn, f"what a command changed is not known ({error.strerror or error})")
        except TooLarge:
            self._note(turn, _TOO_LARGE)
        try:
            yield
        finally:
            if before is not None:
                saved = {str(path) for path, count in self._documents.saves().items() if count != saves.get(path)}
                with anyio.CancelScope(shield=True):
                    interfered |= saved  # the user saved them while the command ran
                    await anyio.to_thread.run_sync(self._compare, turn, before, interfered)

    def _look_before(self, turn: StoredTurn) -> tuple[Tree, set[str]]:
        """The files as they are, with what is needed of their contents; and what of the turn others have changed."""
        tree = scan(self._workspace.roots, anyio.from_thread.check_cancelled, limits=self._limits)
        self._contents.keep(tree, anyio.from_thread.check_cancelled)
        interfered = set()
        for path, change in turn.changes.items():
            with suppress(OSError):
                if _differs(change.after, state_at(Path(path))):
                    interfered.add(path)
        return tree, interfered

    def _compare(self, turn: StoredTurn, before: Tree, interfered: set[str]) -> None:
        """Find what was changed, and keep it."""
        try:
            after = scan(self._workspace.roots, lambda: None, like=before, limits=self._limits)
            paths = changed(before.entries, after.entries)
            if len(paths) > MAX_CHANGES:
                self._note(turn, f"a command changed {len(paths):,} files, which is too many to keep")
                return
            self._keep_all(turn, before, paths, interfered)
        except OSError as error:
            self._note(turn, f"what a command changed could not be kept ({error.strerror or error})")
            return
        except TooLarge:
            self._note(turn, _TOO_LARGE)
            return
        if after.skipped:
            self._note(turn, self._not_looked_into(after.skipped))

    def _keep_all(self, turn: StoredTurn, before: Tree, paths: list[str], interfered: set[str]) -> None:
        files = [path for path in paths if stat.S_ISREG(before.entries.get(path, (0,))[0])]
        kept = {path: self._objects.put(content) for path, content in self._contents.of(before, files)}
        kept |= {path: self._objects.put(before.links[path]) for path in paths if path in before.links}
        for path in paths:
            try:
                now = state_at(Path(path), self._objects, largest=MAX_AFTER)
            except OSError as error:
                self._note(turn, f"{path}: what a command left there cannot be read ({error.strerror or error})")
                continue
            known = turn.changes.get(path)
            old = _old_state(before, path, kept.get(path, ""), now) if known is None else known.before
            if known is None and old == now:
                continue
            mixed = path in interfered or (known is not None and known.mixed)
            self._change(turn, path, Change(before=old, after=now, mixed=mixed))

    def _not_looked_into(self, skipped: list[str]) -> str:
        names = sorted(self._workspace.display(Path(path)) for path in skipped)
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        return f"what commands changed in ignored directories and caches: {', '.join(names[:_NAMED])}{more}"

    # Writing it down

    def _change(self, turn: StoredTurn, path: str, change: Change) -> None:
        turn.changes[path] = change
        self._write(
            {
                "type": "change",
                "turn": turn.id,
                "path": path,
                "before": asdict(change.before),
                "after": None if change.after is None else asdict(change.after),
                **({"mixed": True} if change.mixed else {}),
            }
        )

    def _note(self, turn: StoredTurn, text: str) -> None:
        if text not in turn.notes:
            turn.notes.append(text)
            self._write({"type": "note", "turn": turn.id, "text": text})


def _differs(known: FileState | None, now: FileState) -> bool:
    """Whether somebody changed a file since we knew its state."""
    return known is None or (known.kind, known.digest) != (now.kind, now.digest)


def _old_state(before: Tree, path: str, digest: str, now: FileState) -> FileState:
    """What was at a path by a snapshot, with its content where that is kept under a digest."""
    signature: Signature | None = before.entries.get(path)
    if signature is None:
        return MISSING
    mode, size, modified, _, inode = signature
    bits = stat.S_IMODE(mode)
    if stat.S_ISDIR(mode):
        return FileState(kind="directory", mode=bits)
    if stat.S_ISLNK(mode):
        return FileState(kind="link", digest=digest, size=size)
    if not stat.S_ISREG(mode):
        return FileState(kind="other", mode=bits)
    if not digest and now.kind == "file" and _is_untouched(path, size, modified, inode):
        digest = now.digest
    return FileState(kind="file", mode=bits, digest=digest, size=size)


def _is_untouched(path: str, size: int, modified: int, inode: int) -> bool:
    """Whether only a file's mode, or its links, can have changed."""
    try:
        status = Path(path).lstat()
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns, status.st_ino) == (size, modified, inode)


def _with_new_parents(path: Path) -> Iterator[Path]:
    """A path, behind the directories on the way to it that are not there yet."""
    missing = []
    for parent in path.parents:
        if parent.is_dir():
            break
        missing.append(parent)
    yield from reversed(missing)
    yield path
