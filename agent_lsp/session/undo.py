"""Undoing a turn: each path as it was before, but never what somebody else has made of it since.

Invariants: a path is changed only while it is what the agent left; text that an editor holds is changed by the
editor; the rest is refused, with what was changed since. No repository is touched.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import anyio.to_thread

from agent_lsp.approvals import FileChange
from agent_lsp.errors import ToolError
from agent_lsp.session.file_state import Change, FileState, Objects, is_content_of, read_file, state_at
from agent_lsp.session.records import StoredTurn
from agent_lsp.tools.files import Folder, decode, open_folder
from agent_lsp.workspace import Document, Documents, ResolvedPath, Workspace, Written

MAX_DIFF = 20_000
"""Characters of the diff of a file that is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A path that is again what it was; ``held`` says that the editor has not saved it yet."""

    path: Path
    display: str
    what: Literal["changed", "created", "deleted"]
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A path that was left alone, and why; ``diff`` shows what was changed since, where that is text."""

    path: Path
    display: str
    reason: str
    diff: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoReport:
    """What came of it; ``not_covered`` is what the turn may have changed and nobody kept."""

    turn_id: str
    restored: tuple[Restored, ...] = ()
    refused: tuple[Refused, ...] = ()
    not_covered: tuple[str, ...] = ()


class _Refusal(Exception):
    def __init__(self, reason: str, diff: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.diff = diff


async def undo_turn(turn: StoredTurn, objects: Objects, workspace: Workspace, documents: Documents) -> UndoReport:
    """Put back what a turn has changed, path by path."""
    restored: list[Restored] = []
    refused: list[Refused] = []
    undo = _Undo(objects, documents)
    for path, change in _in_order(turn.changes.items()):
        resolved = ResolvedPath(path=path, display=workspace.display(path), inside=workspace.contains(path))
        try:
            held = await undo.put_back(resolved, change)
        except _Refusal as refusal:
            refused.append(Refused(path=path, display=resolved.display, reason=refusal.reason, diff=refusal.diff))
        except ToolError as error:
            refused.append(Refused(path=path, display=resolved.display, reason=error.message))
        except OSError as error:
            reason = f"it cannot be put back: {error.strerror or error}"
            refused.append(Refused(path=path, display=resolved.display, reason=reason))
        else:
            if held is not None:
                restored.append(Restored(path=path, display=resolved.display, what=_what(change), held=held))
    await anyio.to_thread.run_sync(undo.finish)
    cut_off = () if turn.ended is not None else (_CUT_OFF,)
    return UndoReport(
        turn_id=turn.id, restored=tuple(restored), refused=tuple(refused), not_covered=(*turn.notes, *cut_off)
    )


_CUT_OFF = "what a command changed that ran when the program was ended"


def _what(change: Change) -> Literal["changed", "created", "deleted"]:
    """What undoing did to the path."""
    if change.before.kind == "missing":
        return "deleted"
    return "created" if change.after is not None and change.after.kind == "missing" else "changed"


def _in_order(changes: Iterable[tuple[str, Change]]) -> list[tuple[Path, Change]]:
    """Directories that stay, so that they can be entered; what is to go, from the leaves; what is to come."""
    found = sorted(((Path(path), change) for path, change in changes), key=lambda each: len(each[0].parts))
    staying = [each for each in found if _is_directory(each[1].before) and _is_directory(each[1].after)]
    going = [each for each in reversed(found) if each[1].before.kind == "missing"]
    coming = [each for each in found if each not in staying and each[1].before.kind != "missing"]
    return staying + going + coming


def _is_directory(state: FileState | None) -> bool:
    return state is not None and state.kind == "directory"


class _Undo:
    def __init__(self, objects: Objects, documents: Documents) -> None:
        self._objects = objects
        self._documents = documents
        self._modes: dict[Path, int] = {}

    def finish(self) -> None:
        """Give directories their modes, which may keep even us from changing anything in them."""
        for path, mode in reversed(self._modes.items()):
            path.chmod(mode)

    async def put_back(self, path: ResolvedPath, change: Change) -> bool | None:
        """Whether the editor holds it unsaved now; None where there was nothing to do. Raises _Refusal or OSError."""
        before, after = change.before, change.after
        if not path.inside:
            raise _Refusal("it is outside of the workspace")
        now = await anyio.to_thread.run_sync(state_at, path.path)
        document = await self._documents.get(path.path)
        if document is not None and document.unsaved:
            return await self._put_back_unsaved(path, change, now, document)
        if self._same(path, now, before):
            return None
        if after is None:
            reason = "the program was ended while it was changed, so what the agent left there is not known"
            raise _Refusal(reason, await self._diff(path, before, None))
        if change.mixed:
            raise _Refusal("somebody else changed it between, or during, changes of the agent")
        if not self._same(path, now, after):
            raise _Refusal("it was changed since", await self._diff(path, after, None))
        is_other_text = before.kind == now.kind == "file" and now.digest != before.digest
        if document is not None and is_other_text and not self._has_text(before, document.text):
            return await self._put_into_editor(path, before, document, now)
        await anyio.to_thread.run_sync(self._put_on_disk, path.path, before, now)
        return False

    async def _put_back_unsaved(
        self, path: ResolvedPath, change: Change, now: FileState, document: Document
    ) -> bool | None:
        before, after = change.before, change.after
        shows_before = self._has_text(before, document.text)
        if shows_before and self._same(path, now, before):
            return None
        if shows_before and after is not None and self._same(path, now, after):  # it was changed below the editor
            await anyio.to_thread.run_sync(self._put_on_disk, path.path, before, now)
            return False
        if after is None or not after.held or not self._has_text(after, document.text):
            shown = after or before
            raise _Refusal("the editor holds unsaved changes of it", await self._diff(path, shown, document.text))
        if before.kind != "file":
            raise _Refusal("the editor holds it unsaved; close it there without saving")
        return await self._put_into_editor(path, before, document, now)

    # Looking

    def _same(self, path: ResolvedPath, now: FileState, wanted: FileState) -> bool:
        """Whether a path on disk is in a state; what was held by an editor is compared as text."""
        if wanted.held:
            return now.kind == "file" and self._has_text(wanted, _text_of(_bytes_at(path.path)))
        if wanted.kind in ("file", "directory") and now.mode != wanted.mode:
            return False
        return now.kind == wanted.kind and now.digest == wanted.digest

    def _has_text(self, state: FileState, text: str | None) -> bool:
        kept = self._text(state)
        return text is not None and kept is not None and _plain(kept) == _plain(text)

    def _text(self, state: FileState) -> str | None:
        content = self._objects.get(state.digest) if state.kind == "file" else None
        if content is not None and state.held:
            return content.decode("utf-8", "surrogatepass")
        return _text_of(content)

    async def _diff(self, path: ResolvedPath, left: FileState, text: str | None) -> str:
        """What was changed since the agent left it."""
        return await anyio.to_thread.run_sync(self._make_diff, path, left, text)

    def _make_diff(self, path: ResolvedPath, left: FileState, text: str | None) -> str:
        old = self._text(left)
        new = text if text is not None else _text_of(_bytes_at(path.path))
        if (old is None and left.kind == "file") or (new is None and os.path.lexists(path.path)):
            return ""
        diff = FileChange(path=path, before=old, after=new, before_digest="").diff()
        return diff if len(diff) <= MAX_DIFF else f"{diff[:MAX_DIFF]}\n[cut]\n"

    # Putting back

    def _content(self, before: FileState) -> bytes:
        content = self._objects.get(before.digest)
        if content is None:
            raise _Refusal("its content was not kept")
        return content

    async def _put_into_editor(self, path: ResolvedPath, before: FileState, document: Document, now: FileState) -> bool:
        text = self._text(before)
        if text is None:
            raise _Refusal("its content was not kept" if not before.digest else "what was there is no text")
        written = await self._documents.write(path, document, text)
        if written is Written.STALE:
            raise _Refusal("it was changed in the editor just now")
        if written is Written.CANNOT:
            if document.unsaved:
                raise _Refusal("the editor holds it unsaved and takes no edits")
            await anyio.to_thread.run_sync(self._put_on_disk, path.path, before, now)
        elif before.mode and before.mode != now.mode and now.kind == "file":
            await anyio.to_thread.run_sync(partial(path.path.chmod, before.mode))
        return written is Written.HELD

    def _put_on_disk(self, path: Path, before: FileState, now: FileState) -> None:
        if before.kind == "other":
            raise _Refusal("it was no file, link or directory, and cannot be made again")
        is_same = now.kind == before.kind and now.digest == before.digest
        content = self._content(before) if before.kind in ("file", "link") and not is_same else b""
        with open_folder(path.parent, create=before.kind != "missing") as folder:
            if state_at(path) != now:
                raise _Refusal("it was changed just now")
            if before.kind == "directory":
                self._modes[path] = before.mode
            if is_same:
                _chmod(folder, path.name, before.mode | (0o700 if before.kind == "directory" else 0))
            elif now.kind == before.kind == "file":
                _replace(folder, path.name, content, before.mode or now.mode, now)
            else:
                _remove(folder, path.name, now)
                _make(folder, path.name, before, content)


def _replace(folder: Folder, name: str, content: bytes, mode: int, now: FileState) -> None:
    if now.mode & 0o600 != 0o600:
        _chmod(folder, name, now.mode | 0o600)
    expected = folder.read(name)
    if not is_content_of(now, expected) or not folder.replace(name, content, expected):
        raise _Refusal("it was changed just now")
    _chmod(folder, name, mode)


def _chmod(folder: Folder, name: str, mode: int) -> None:
    os.chmod(folder.entry(name), mode, dir_fd=folder.descriptor)


def _remove(folder: Folder, name: str, now: FileState) -> None:
    if now.kind == "missing":
        return
    if now.kind != "directory":
        os.unlink(folder.entry(name), dir_fd=folder.descriptor)
        return
    try:
        os.rmdir(folder.entry(name), dir_fd=folder.descriptor)
    except OSError as error:
        raise _Refusal("there are other files in the directory") from error


def _make(folder: Folder, name: str, before: FileState, content: bytes) -> None:
    match before.kind:
        case "directory":
            os.mkdir(folder.entry(name), dir_fd=folder.descriptor)
            _chmod(folder, name, before.mode | 0o700)
        case "link":
            os.symlink(os.fsdecode(content), folder.entry(name), dir_fd=folder.descriptor)
        case "file":
            if not folder.replace(name, content, None):
                raise _Refusal("it was changed just now")
            if before.mode:
                _chmod(folder, name, before.mode)


def _bytes_at(path: Path) -> bytes | None:
    with suppress(OSError):
        return read_file(path)
    return None


def _text_of(content: bytes | None) -> str | None:
    if content is None:
        return None
    try:
        return decode(content).text
    except ValueError:
        return None


def _plain(text: str) -> str:
    """A text as far as editors keep it."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
