"""What the user has agreed to let workspaces execute, in the user's own state directory (F70).

Invariant: trust is by content. A record names a digest, and whatever has another digest is not trusted.
"""

import json
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from agent_lsp.hooks.trust import TrustItem

_log = logging.getLogger(__name__)


class TrustStore:
    """One private file for each approved digest, so that two servers never overwrite each other's answers."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._unsaved: set[str] = set()

    def covers(self, digest: str) -> bool:
        return digest in self._unsaved or (self._directory / digest).exists()

    def grant(self, items: Sequence[TrustItem]) -> None:
        """Remember; what cannot be written holds for this process."""
        for item in items:
            try:
                self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
                descriptor = os.open(self._directory / item.digest, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump({"text": item.text, "place": str(item.place)}, file)
            except OSError as error:
                self._unsaved.add(item.digest)
                _log.warning("the trust in %s holds for this process only: %s", item, error)

    def revoke(self, digests: Iterable[str]) -> int:
        """Forget; returns how many were known."""
        known = [digest for digest in digests if self.covers(digest)]
        for digest in known:
            if digest in self._unsaved:
                self._unsaved.discard(digest)
            else:
                (self._directory / digest).unlink(missing_ok=True)
        return len(known)


class TrustEverything:
    """The answer of ``--trust``: all of this workspace, for this run."""

    def covers(self, digest: str) -> bool:
        return True

    def grant(self, items: Sequence[TrustItem]) -> None:
        """There is nothing left to grant."""
