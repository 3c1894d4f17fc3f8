"""What the user has agreed to let workspaces execute, in the user's own state directory (F70).

Invariant: trust is by content. A record names a digest, and whatever has another digest is not trusted.
"""

import hashlib
import json
import logging
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from agent_lsp.hooks.trust import TrustItem, script_digests
from agent_lsp.validation.validator import Validator

_log = logging.getLogger(__name__)


_HOLD_COMMANDS = frozenset(
    {"package.json", "Makefile", "makefile", "GNUmakefile", "tox.ini", "noxfile.py", ".pre-commit-config.yaml"}
)


def validator_item(validator: Validator, root: Path) -> TrustItem:
    """A validator as something to be trusted; where a project's file says what it really runs, with that file."""
    command = validator.command
    exact = [str(root), command, validator.directory, validator.place.source, *script_digests(command, root)]
    evidence = Path(validator.place.source)
    if validator.detected and evidence.name in _HOLD_COMMANDS:
        try:
            exact.append(hashlib.sha256(evidence.read_bytes()).hexdigest())
        except OSError:
            exact.append("unreadable")
    digest = hashlib.sha256(json.dumps(exact).encode()).hexdigest()
    text = command if isinstance(command, str) else shlex.join(command)
    where = f" in {validator.directory}" if validator.directory != "." else ""
    because = f", because of {validator.why}" if validator.why else ""
    return TrustItem(text=f"validator {validator.name}: {text}{where}{because}", place=validator.place, digest=digest)


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
