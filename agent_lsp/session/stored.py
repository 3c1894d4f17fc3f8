"""The stored sessions of a workspace, for whoever shows, exports or deletes them without going on with one."""

import shutil
from pathlib import Path
from typing import Any

from agent_lsp.session.directories import state_directory
from agent_lsp.session.export import to_json, to_markdown, transcript
from agent_lsp.session.store import SessionStore
from agent_lsp.session.store import Summary as Summary


def stored_sessions(root: Path) -> "StoredSessions":
    """What is stored of a workspace."""
    return StoredSessions(SessionStore(state_directory(), root.resolve()))


class StoredSessions:
    """Sessions by id, of which the beginning is enough. Raises ConfigurationError for one that is not there."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store

    def list(self) -> tuple[Summary, ...]:
        """All of them, the one written last first."""
        return tuple(self._store.summaries())

    def find(self, text: str | None) -> str:
        """The whole id; without a beginning of one, the session written last."""
        return self._store.latest() if text is None else self._store.find(text)

    def transcript(self, text: str | None) -> str:
        """The conversation as Markdown."""
        return transcript(self._store.read(self.find(text)))

    def markdown(self, text: str | None) -> str:
        """The session as a Markdown document."""
        return to_markdown(self._store.read(self.find(text)))

    def json(self, text: str | None) -> dict[str, Any]:
        """The session as JSON."""
        return to_json(self._store.read(self.find(text)))

    def delete(self, text: str) -> str:
        """Delete a session with all that belongs to it; gives its id."""
        id_ = self._store.find(text)
        self._store.delete(id_)
        forget(state_directory(), id_)
        return id_

    def prune(self, days: float) -> None:
        """Delete what nobody used for so many days."""
        for id_ in self._store.prune(days):
            forget(state_directory(), id_)


def forget(state: Path, id_: str) -> None:
    """Remove what other parts of the program keep of a session under its id."""
    (state / "transcripts" / f"{id_}.md").unlink(missing_ok=True)
    shutil.rmtree(state / "logs" / id_, ignore_errors=True)
