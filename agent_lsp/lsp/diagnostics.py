"""Mistakes in settings files, shown where they stand.

Invariant: a file's diagnostics are replaced as a whole, so that a mended mistake disappears.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from lsprotocol import types

from agent_lsp.lsp.server import AgentServer

SOURCE = "agent-lsp"
_END_OF_LINE = 2**31 - 1  # a client takes what is beyond a line for its end
_WATCHED = "**/.agent-lsp/settings*.json"


class SettingsDiagnostics:
    """Reads the settings of a workspace and publishes what is wrong with them."""

    def __init__(self, server: AgentServer) -> None:
        self._server = server
        self._published: set[str] = set()
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
        """Read again and publish."""
        async with self._reading:
            found = await anyio.to_thread.run_sync(_diagnostics, root, editor)
            for uri in found.keys() | self._published:
                self._server.text_document_publish_diagnostics(
                    types.PublishDiagnosticsParams(uri=uri, diagnostics=found.get(uri, []))
                )
            self._published = set(found)


def is_settings_file(path: Path | None) -> bool:
    """Whether a document may be one of ours."""
    return path is not None and path.name in ("settings.json", "settings.local.json")


def _diagnostics(root: Path, editor: Sequence[Mapping[str, Any]]) -> dict[str, list[types.Diagnostic]]:
    """All mistakes that stand in a file, by the file's URI."""
    from agent_lsp.session.configured import workspace_settings

    found: dict[str, list[types.Diagnostic]] = defaultdict(list)
    for problem in workspace_settings(root, editor).problems:
        path = Path(problem.place.source)
        if not path.is_absolute():
            continue
        line, column = max(problem.place.line - 1, 0), max(problem.place.column - 1, 0)
        found[path.as_uri()].append(
            types.Diagnostic(
                range=types.Range(types.Position(line, column), types.Position(line, _END_OF_LINE)),
                message=f"{problem.key + ': ' if problem.key else ''}{problem.message}",
                severity=types.DiagnosticSeverity.Warning,
                source=SOURCE,
                code="settings",
            )
        )
    return dict(found)
