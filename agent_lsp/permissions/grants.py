"""What the human allowed for longer than once: for the session in memory, for always in the user's state directory.

Invariant: a grant is an allow rule and nothing more, so any ask or deny still wins over it; a file that cannot be
read grants nothing. Each rule has a file of its own, so that two editors never overwrite each other's (F64).
"""

import hashlib
import json
import logging
import os
import tempfile
from pathlib import Path

_log = logging.getLogger(__name__)


class Grants:
    """Remembered allow rules. Without a directory, all of them end with the session."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._session: list[str] = []
        self._always = _load(directory) if directory is not None else []

    @property
    def rules(self) -> tuple[str, ...]:
        """The texts of all remembered rules."""
        return (*self._always, *self._session)

    def add(self, rule: str, *, persist: bool) -> None:
        """Remember a rule; one that cannot be saved holds for the session."""
        if persist and self._directory is not None and _save(self._directory, rule):
            self._always = _load(self._directory)  # another session may have added to it
        if rule not in self.rules:
            self._session.append(rule)


def grants_directory(state: Path, workspace_root: Path) -> Path:
    """Where the grants of a workspace lie in the state directory."""
    return state / "grants" / _name(os.fsencode(workspace_root))


def _name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _load(directory: Path) -> list[str]:
    """The saved rules, in the order of their texts."""
    return sorted(rule for file in directory.glob("*.json") if (rule := _read(file)) is not None)


def _read(file: Path) -> str | None:
    try:
        rule = json.loads(file.read_text(encoding="utf-8"))["rule"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("a remembered permission cannot be read and counts as none: %s (%s)", file, error)
        return None
    return rule if isinstance(rule, str) else None


def _save(directory: Path, rule: str) -> bool:
    """Write the rule's file, private to the user and at once; says whether that went well."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=directory)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump({"rule": rule}, stream)
        Path(name).replace(directory / f"{_name(rule.encode('utf-8', 'surrogatepass'))}.json")
    except OSError as error:
        _log.warning("the permission holds for this session only, it cannot be saved: %s (%s)", rule, error)
        return False
    return True
