"""What the human allowed for longer than once: for the session in memory, for always in the user's state directory.

Invariant: a grant is an allow rule and nothing more, so any ask or deny still wins over it; a file that cannot be
read grants nothing.
"""

import hashlib
import json
import logging
import os
import tempfile
from pathlib import Path

_log = logging.getLogger(__name__)


class Grants:
    """Remembered allow rules. Without a file, all of them end with the session."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._session: list[str] = []
        self._always = _load(file) if file is not None else []

    @property
    def rules(self) -> tuple[str, ...]:
        """The texts of all remembered rules."""
        return (*self._always, *self._session)

    def add(self, rule: str, *, persist: bool) -> None:
        """Remember a rule; one that cannot be saved holds for the session."""
        if persist and self._file is not None:
            self._always = _load(self._file)  # another session may have added to it
            if rule not in self._always and _save(self._file, [*self._always, rule]):
                self._always.append(rule)
        if rule not in self.rules:
            self._session.append(rule)


def grants_file(state: Path, workspace_root: Path) -> Path:
    """Where the grants of a workspace lie in the state directory."""
    return state / "grants" / f"{hashlib.sha256(os.fsencode(workspace_root)).hexdigest()[:32]}.json"


def _load(file: Path) -> list[str]:
    try:
        rules = json.loads(file.read_text(encoding="utf-8"))["rules"]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("remembered permissions cannot be read and count as none: %s (%s)", file, error)
        return []
    return [rule for rule in rules if isinstance(rule, str)] if isinstance(rules, list) else []


def _save(file: Path, rules: list[str]) -> bool:
    """Replace the file as a whole, and say whether that went well; it is private to the user."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".grants-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump({"rules": rules}, stream)
        Path(name).replace(file)
    except OSError as error:
        _log.warning("the permission holds for this session only, it cannot be saved: %s (%s)", file, error)
        return False
    return True
