"""What needs a look, shown where it stands: approvals that wait, blocks, settings mistakes, findings of validators.

Invariant: each owner's diagnostics are replaced as a whole, so that what was mended disappears, and owners do not wipe
out one another's. Files are told apart by their resolved paths; editors spell one file in several ways.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import anyio.to_thread
import attrs
from lsprotocol import types

from agent_lsp.lsp.documents import code_units, real_path
from agent_lsp.lsp.server import AgentServer
from agent_lsp.workspace import Place

if TYPE_CHECKING:
    from agent_lsp.agent.events import ValidationReport
    from agent_lsp.lsp.approvals import PendingApproval

SOURCE = "agent-lsp"
_END_OF_LINE = 2**31 - 1  # a client takes what is beyond a line for its end
VALIDATION, APPROVAL, BLOCK, SETTINGS = "validation", "approval", "hook-block", "settings"
"""The codes of our diagnostics, each of one owner."""
_MOST_PARTS = 100  # of one change; who has more to look at takes the diff
_OLD = "[before the last change] "
_WATCHED = "**/.agent-lsp/settings*.json"


Found: TypeAlias = dict[Path, list[types.Diagnostic]]
"""Diagnostics by the resolved path of their file."""


class DiagnosticBoard:
    """The one place that publishes. ``replace`` takes an owner's diagnostics of all files."""

    def __init__(self, server: AgentServer) -> None:
        self._server = server
        self._found: dict[str, Found] = {}
        self._spelled: dict[Path, str] = {}
        """The URIs under which something is published."""

    def replace(self, owner: str, found: Found) -> None:
        """Show these in the place of the owner's earlier ones."""
        before = self._found.get(owner, {})
        self._found[owner] = found
        for path in before.keys() | found.keys():
            if before.get(path) != found.get(path):
                self._publish(path)

    def of(self, owner: str) -> Found:
        return self._found.get(owner, {})

    def opened(self, path: Path) -> None:
        """A file was opened, perhaps under another URI than its diagnostics are shown at."""
        if self._spelled.get(path, self._server.documents.uri(path)) != self._server.documents.uri(path):
            self._publish(path)

    def clear(self) -> None:
        """Take everything away."""
        for owner in tuple(self._found):
            self.replace(owner, {})

    def _publish(self, path: Path) -> None:
        shown = [diagnostic for found in self._found.values() for diagnostic in found.get(path, [])]
        uri, before = self._server.documents.uri(path), self._spelled.pop(path, None)
        if before is not None and before != uri:
            self._send(before, [])
        self._send(uri, shown)
        if shown:
            self._spelled[path] = uri

    def _send(self, uri: str, shown: list[types.Diagnostic]) -> None:
        self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=shown))


class SettingsDiagnostics:
    """Reads the settings of a workspace and shows what is wrong with them."""

    def __init__(self, server: AgentServer, board: DiagnosticBoard) -> None:
        self._server = server
        self._board = board
        self._reading = anyio.Lock()

    def watch(self) -> None:
        """Ask the client to tell of changes that are made outside of it; one that cannot is no fault."""
        watcher = types.FileSystemWatcher(glob_pattern=_WATCHED)
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers=[watcher])
        registration = types.Registration(
            id="agent-lsp-settings", method=types.WORKSPACE_DID_CHANGE_WATCHED_FILES, register_options=options
        )
        self._server.client_register_capability(types.RegistrationParams(registrations=[registration]))

    async def refresh(self, root: Path, editor: Sequence[Mapping[str, Any]]) -> None:
        """Read again and show."""
        async with self._reading:
            encoding = self._server.documents.position_encoding
            found = await anyio.to_thread.run_sync(_settings_problems, root, editor, encoding)
            self._board.replace(SETTINGS, found)


class ValidationDiagnostics:
    """The findings of the last round of validators; those of a file that has changed since are marked as old."""

    def __init__(self, board: DiagnosticBoard) -> None:
        self._board = board

    def show(self, root: Path, report: "ValidationReport") -> None:
        """Replace all findings."""
        found: Found = defaultdict(list)
        for finding in report.findings:
            severity = types.DiagnosticSeverity.Error
            if finding.severity == "warning" or finding.already_failing:
                severity = types.DiagnosticSeverity.Warning
            line, column = max(finding.line - 1, 0), max(finding.column - 1, 0)
            end = types.Position(line, column + 1 if finding.column else _END_OF_LINE)
            known = " (already failing before the agent's changes)" if finding.already_failing else ""
            found[real_path(root / finding.path)].append(
                types.Diagnostic(
                    range=types.Range(types.Position(line, column), end),
                    message=f"{': '.join(filter(None, (finding.code, finding.message)))}{known}",
                    severity=severity,
                    source=SOURCE,
                    code=VALIDATION,
                )
            )
        self._board.replace(VALIDATION, dict(found))

    def has_fresh(self, path: Path) -> bool:
        """Whether a file has findings that are not marked as old."""
        return bool(self._fresh(path))

    def _fresh(self, path: Path) -> list[types.Diagnostic]:
        return [each for each in self._board.of(VALIDATION).get(path, []) if not each.message.startswith(_OLD)]

    def age(self, path: Path) -> None:
        """Mark a file's findings as older than its text."""
        found, current = self._board.of(VALIDATION), self._fresh(path)
        if not current:
            return
        aged = [
            attrs.evolve(each, message=f"{_OLD}{each.message}", severity=types.DiagnosticSeverity.Information)
            for each in current
        ]
        self._board.replace(VALIDATION, {**found, path: aged})


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A hook kept a call from a file; ``place`` is where that hook is set, if that is in a file."""

    message: str
    place: Place | None


class BlockDiagnostics:
    """Files that a hook kept the agent from, until the human dismisses that or the next prompt begins."""

    def __init__(self, board: DiagnosticBoard) -> None:
        self._board = board
        self._blocks: dict[Path, tuple[Block, ...]] = {}

    def at(self, path: Path | None) -> tuple[Block, ...]:
        """The blocks of a file."""
        return () if path is None else self._blocks.get(path, ())

    def add(self, path: Path, block: Block) -> None:
        """Show one more."""
        self._blocks[path] = (*self.at(path), block)
        self._show()

    def dismiss(self, path: Path) -> None:
        """Take those of a file away."""
        if self._blocks.pop(path, None) is not None:
            self._show()

    def dismiss_all(self) -> None:
        """Take all away."""
        self._blocks.clear()
        self._show()

    def _show(self) -> None:
        first_line = types.Range(types.Position(0, 0), types.Position(0, _END_OF_LINE))
        warning = types.DiagnosticSeverity.Warning
        self._board.replace(
            BLOCK,
            {
                path: [
                    types.Diagnostic(
                        range=first_line, message=each.message, severity=warning, source=SOURCE, code=BLOCK
                    )
                    for each in blocks
                ]
                for path, blocks in self._blocks.items()
            },
        )


class ApprovalDiagnostics:
    """Each change that waits for an answer, on the lines that it would replace."""

    def __init__(self, board: DiagnosticBoard) -> None:
        self._board = board

    def show(self, waiting: Sequence["PendingApproval"]) -> None:
        """Replace all."""
        found: Found = defaultdict(list)
        for entry in waiting:
            change = entry.request.change
            if change is None or change.before is None:  # there is no file to show it in
                continue
            for number in range(min(len(entry.hunks), _MOST_PARTS)):
                found[change.path.path].append(_part(entry, number))
        self._board.replace(APPROVAL, dict(found))


def _part(entry: "PendingApproval", number: int) -> types.Diagnostic:
    """One part of a change that waits."""
    request, total = entry.request, len(entry.hunks)
    which = f" ({number + 1} of {total})" if total > 1 else ""
    state = {None: "waits for your answer", True: "is taken", False: "is left out"}[entry.decided.get(number)]
    return types.Diagnostic(
        range=part_range(entry, number),
        message=f"{request.action.tool}: this change{which} {state}. {request.reason} [{request.id[:8]}]",
        severity=types.DiagnosticSeverity.Warning,
        source=SOURCE,
        code=APPROVAL,
    )


def part_range(entry: "PendingApproval", number: int) -> types.Range:
    """The lines that a part of a change would replace; where it only adds some, the line before them."""
    lines = entry.hunks[number].replaced
    first = lines.start if lines else max(lines.start - 1, 0)
    return types.Range(types.Position(first, 0), types.Position(max(first, lines.stop - 1), _END_OF_LINE))


def is_settings_file(path: Path | None) -> bool:
    """Whether a document may be one of ours."""
    return path is not None and path.name in ("settings.json", "settings.local.json")


def _settings_problems(root: Path, editor: Sequence[Mapping[str, Any]], encoding: str) -> Found:
    """All mistakes that stand in a file, at the client's kind of position."""
    from agent_lsp.session.configured import workspace_settings

    found: Found = defaultdict(list)
    for problem in workspace_settings(root, editor).problems:
        path = Path(problem.place.source)
        if not path.is_absolute():
            continue
        line = max(problem.place.line - 1, 0)
        column = code_units(_text_before(path, line, problem.place.column), encoding)
        found[real_path(path)].append(
            types.Diagnostic(
                range=types.Range(types.Position(line, column), types.Position(line, _END_OF_LINE)),
                message=f"{problem.key + ': ' if problem.key else ''}{problem.message}",
                severity=types.DiagnosticSeverity.Warning,
                source=SOURCE,
                code=SETTINGS,
            )
        )
    return dict(found)


def _text_before(path: Path, line: int, column: int) -> str:
    """What stands in a line before a column that counts characters from 1."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return lines[line][: max(column - 1, 0)] if line < len(lines) else ""
