"""Edits of what the editor holds: made by the editor as one undo step, and checked against what it has then.

Invariant: an edit counts as made when the editor shows its outcome, not when it says so (some say ``applied: true``
and drop it). Text that the editor holds is never changed past it.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException, JsonRpcMethodNotFound

from agent_lsp.approvals import LineMatcher
from agent_lsp.errors import ToolError
from agent_lsp.lsp.documents import code_units, document_of, same_text, with_line_ends_of
from agent_lsp.lsp.problems import SeenProblems, read_problems
from agent_lsp.lsp.server import AgentServer
from agent_lsp.workspace import Document, FileProblems, ResolvedPath, Written, lines_with_ends

_log = logging.getLogger(__name__)

APPLY_SECONDS = 5.0
"""For an editor to make an edit, whatever it answers."""

SETTLE_SECONDS = 2.0
"""For its text to arrive once it says that the edit is made; editors collect changes before they send them."""

READ_SECONDS = 5.0
SAVE_SECONDS = 600.0
GO_ON = "Go on without saving"


class EditedDocuments:
    """The ``Documents`` of the language server.

    ``by_request`` says that the client takes ``agent/readDocument`` and ``agent/writeDocument``, ``tells_problems``
    that it takes ``agent/diagnostics``; of others ``seen`` holds what they sent. ``ask`` shows a message with actions.
    """

    def __init__(
        self,
        server: AgentServer,
        *,
        by_request: bool,
        tells_problems: bool,
        seen: SeenProblems,
        ask: Callable[[str, Sequence[str]], Awaitable[str | None]],
    ) -> None:
        self._server = server
        self._mirror = server.documents
        self._by_request = by_request
        self._tells_problems = tells_problems
        self._seen = seen
        self._ask_human = ask
        self._waved: set[tuple[Path, str]] = set()
        client = server.client_capabilities
        self._can_apply = bool(  # an edit without a version could meet other text than it was made for
            get_capability(client, "workspace.apply_edit")
            and get_capability(client, "workspace.workspace_edit.document_changes")
        )

    async def get(self, path: Path) -> Document | None:
        """The open document of a resolved path; a client that takes our requests is asked for what it did not send."""
        document = self._mirror.get(path)
        if document is None and self._by_request:
            match await self._request("agent/readDocument", {"uri": path.as_uri()}, READ_SECONDS):
                case {"text": str(text), "version": int(version)}:
                    return document_of(path, text, version)
        return document

    def unsaved(self) -> tuple[tuple[Path, Document], ...]:
        """The open documents with unsaved text, as far as the editor told."""
        return self._mirror.unsaved()

    async def write(self, path: ResolvedPath, document: Document, text: str) -> Written:
        """Make the text of an open document another one. Raises ToolError where the editor does not do it."""
        text = with_line_ends_of(document.text, text)
        encoding = self._mirror.position_encoding
        edits = await anyio.to_thread.run_sync(text_edits, document.text, text, encoding)
        now = self._mirror.get(path.path)
        if now is not None and now.version != document.version:
            return Written.STALE
        if not edits:
            return Written.HELD if document.unsaved else Written.SAVED
        if self._by_request:
            written = await self._write_by_request(path, document, edits)
        elif self._can_apply:
            written = await self._apply(path, document, text, edits)
        else:
            written = Written.CANNOT
        if written is Written.HELD:
            self._mirror.note_ours(path.path, text)
        return written

    def saves(self) -> Mapping[Path, int]:
        """How often the editor has saved each file so far."""
        return dict(self._mirror.saves)

    async def until_saved(self, paths: Collection[Path], waiting: Callable[[tuple[str, ...]], None]) -> tuple[str, ...]:
        """Wait until the human has saved what we changed, or goes on without; the names of what is not saved.

        A dismissal is to go on as well, and so is an editor that cannot ask. It is asked once for a text.
        """
        if news := self._unsaved(paths) - self._waved:
            names = _names(news)
            waiting(names)
            message = f"Programs read files on disk. Save {', '.join(names)} so that they see the agent's change."
            with anyio.move_on_after(SAVE_SECONDS):
                async with anyio.create_task_group() as group:

                    async def ask() -> None:
                        await self._ask_human(message, (GO_ON,))
                        group.cancel_scope.cancel()

                    group.start_soon(ask)
                    while self._unsaved(paths) - self._waved:
                        await self._mirror.next_change()
                    group.cancel_scope.cancel()
        left = self._unsaved(paths)
        self._waved |= left
        return _names(left)

    async def problems(self, path: Path | None) -> tuple[FileProblems, ...]:
        """What the editor's language servers report."""
        if not self._tells_problems:
            return self._seen.of(path)
        params = {} if path is None else {"uri": self._mirror.uri(path)}
        answer = await self._request("agent/diagnostics", params, READ_SECONDS)
        return tuple(each for each in read_problems(answer, self._mirror) if path in (None, each.path))

    def _unsaved(self, paths: Collection[Path]) -> set[tuple[Path, str]]:
        """Those of the files that hold unsaved text of ours, with that text."""
        return {(path, text) for path, text in self._mirror.unsaved_ours() if path in paths}

    # By our own requests

    async def _write_by_request(self, path: ResolvedPath, document: Document, edits: list[types.TextEdit]) -> Written:
        params = {
            "uri": self._mirror.uri(path.path),
            "version": document.version,
            "edits": edits,
            "save": True,
        }
        match await self._request("agent/writeDocument", params, APPLY_SECONDS):
            case {"applied": True}:
                with anyio.move_on_after(SETTLE_SECONDS):
                    while self._shows(path.path, document.text, exactly=True):
                        await self._mirror.next_change()
                    return Written.SAVED
                raise _refused(path, "it says that it did, and shows the old text")
            case {"applied": False, **rest}:
                now = await self.get(path.path)
                if now is None or now.text != document.text:
                    return Written.STALE
                raise _refused(path, str(rest.get("reason") or ""))
        raise _refused(path, "it gave no answer")

    async def _request(self, method: str, params: Mapping[str, Any], seconds: float) -> object:
        """The answer of a client of ours; None where there is none."""
        try:
            with anyio.move_on_after(seconds):
                answer: object = await self._server.protocol.send_request_async(method, dict(params))
                return answer
            _log.warning("the client did not answer %s within %g s", method, seconds)
        except JsonRpcException as error:
            _log.warning("the client refused %s: %s", method, error)
            if error.code == JsonRpcMethodNotFound.CODE:
                self._tells_problems = self._tells_problems and method != "agent/diagnostics"
                self._by_request = self._by_request and method == "agent/diagnostics"
        return None

    # By the protocol's request

    async def _apply(self, path: ResolvedPath, document: Document, text: str, edits: list[types.TextEdit]) -> Written:
        question: Future[types.ApplyWorkspaceEditResult] = self._server.workspace_apply_edit(
            types.ApplyWorkspaceEditParams(
                label=f"Agent: {path.display}", edit=self._workspace_edit(path, document, edits)
            )
        )
        made = answered = False
        try:
            made = await self._made(question, path.path, text, exactly=same_text(document, text))
            answered = question.done()
        finally:
            if not made:
                question.cancel()  # without effect on one that was answered
        now = self._mirror.get(path.path)
        if made:
            return Written.HELD if now is None or now.unsaved else Written.SAVED
        has_changed = now is None or now.text != document.text
        error = question.exception() if answered else None
        agreed = not answered or (error is None and question.result().applied)
        if agreed and has_changed:  # the user's typing may have come with it
            raise _unclear(path)
        if not answered:
            raise _refused(path, "it gave no answer")
        if isinstance(error, JsonRpcException) and error.code == JsonRpcMethodNotFound.CODE:
            self._can_apply = False
            return Written.CANNOT
        if has_changed:
            return Written.STALE
        raise _refused(path, str(error) if error is not None else question.result().failure_reason or "")

    async def _made(
        self, question: "Future[types.ApplyWorkspaceEditResult]", path: Path, text: str, *, exactly: bool
    ) -> bool:
        """Whether the editor comes to show a text; a refusal ends the wait, an assent shortens it."""
        answered = anyio.Event()
        question.add_done_callback(lambda _: answered.set())
        with anyio.move_on_after(APPLY_SECONDS):
            async with anyio.create_task_group() as group:

                async def heed_answer() -> None:
                    await answered.wait()
                    if question.exception() is None and question.result().applied:
                        await anyio.sleep(SETTLE_SECONDS)
                    group.cancel_scope.cancel()

                group.start_soon(heed_answer)
                while not self._shows(path, text, exactly=exactly):
                    await self._mirror.next_change()
                group.cancel_scope.cancel()
        return self._shows(path, text, exactly=exactly)

    def _shows(self, path: Path, text: str, *, exactly: bool) -> bool:
        """Whether the editor told that a document has a text."""
        document = self._mirror.get(path)
        return document is not None and (document.text == text if exactly else same_text(document, text))

    def _workspace_edit(
        self, path: ResolvedPath, document: Document, edits: list[types.TextEdit]
    ) -> types.WorkspaceEdit:
        uri = self._mirror.uri(path.path)
        identifier = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=document.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(text_document=identifier, edits=[*edits])])


def _names(files: Iterable[tuple[Path, str]]) -> tuple[str, ...]:
    return tuple(sorted(path.name for path, _text in files))


def _refused(path: ResolvedPath, why: str) -> ToolError:
    reason = f" ({why})" if why else ""
    return ToolError(
        "editor_refused",
        f"The editor did not make the change to {path.display}{reason}. Read the file again before another try",
    )


def _unclear(path: ResolvedPath) -> ToolError:
    return ToolError(
        "editor_unclear",
        f"{path.display} changed while the editor made the change, which may or may not be in it. Read the file again",
    )


def text_edits(old: str, new: str, encoding: str) -> list[types.TextEdit]:
    """The edits, in whole lines, that make one text of another; positions count units of the encoding."""
    lines, wanted = lines_with_ends(old), lines_with_ends(new)
    return [
        types.TextEdit(
            range=types.Range(_position(lines, start, encoding), _position(lines, end, encoding)),
            new_text="".join(wanted[new_start:new_end]),
        )
        for kind, start, end, new_start, new_end in LineMatcher(lines, wanted).get_opcodes()
        if kind != "equal"
    ]


def _position(lines: list[str], line: int, encoding: str) -> types.Position:
    """The start of a line; past the last one, the end of the text."""
    if line == len(lines) > 0 and not lines[-1].endswith(("\n", "\r")):
        return types.Position(line - 1, code_units(lines[-1], encoding))
    return types.Position(line, 0)
