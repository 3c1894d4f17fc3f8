"""What was found out about model servers, in the user's state directory: quirks and context windows (F55).

Invariant: one private file for each endpoint and model, replaced as a whole; what cannot be read is not known.
"""

import hashlib
import json
import logging
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_lsp.models.quirks import NAMES, Quirk, Quirks

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """``found`` holds the day of each finding, by the quirk's name or ``context_window``."""

    quirks: Quirks = field(default_factory=dict)
    context_window: int | None = None
    found: Mapping[str, str] = field(default_factory=dict)


class ModelMemory:
    """The findings about one model at one endpoint. Without a ``directory`` they hold for this process alone."""

    def __init__(self, directory: Path | None, base_url: str, model: str) -> None:
        digest = hashlib.sha256(json.dumps([base_url.rstrip("/"), model]).encode()).hexdigest()[:32]
        self._file = None if directory is None else directory / f"{digest}.json"
        self._model = model
        self.known = self._read()

    def _read(self) -> Known:
        try:
            values = json.loads(self._file.read_text(encoding="utf-8")) if self._file is not None else {}
            return _known(values)
        except FileNotFoundError:
            return Known()
        except (OSError, ValueError, TypeError, AttributeError) as error:
            _log.warning("what was found out about the model server cannot be read: %s", error)
            return Known()

    def add_quirk(self, quirk: Quirk) -> None:
        """Remember a quirk from now on."""
        known = self._read() if self._file is not None else self.known
        found = {**known.found, quirk.name: _today()}
        self._write(
            Known(quirks={**known.quirks, quirk.name: quirk.value}, context_window=known.context_window, found=found)
        )

    def set_context_window(self, tokens: int) -> None:
        """Remember the size of the context, as the server gave it."""
        if tokens != self.known.context_window:
            known = self._read() if self._file is not None else self.known
            found = {**known.found, "context_window": _today()}
            self._write(Known(quirks=known.quirks, context_window=tokens, found=found))

    def forget(self) -> None:
        """Know nothing any more."""
        self.known = Known()
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def _write(self, known: Known) -> None:
        self.known = known
        if self._file is None:
            return
        values = {
            "model": self._model,
            "quirks": dict(known.quirks),
            "context_window": known.context_window,
            "found": dict(known.found),
        }
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = self._file.with_suffix(f".{secrets.token_hex(4)}")
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(values, file)
            new.replace(self._file)
        except OSError as error:
            _log.warning("what was found out about the model server holds for this process only: %s", error)


def _known(values: dict[str, Any]) -> Known:
    quirks = {name: value for name, value in values.get("quirks", {}).items() if name in NAMES}
    window = values.get("context_window")
    return Known(
        quirks={name: value for name, value in quirks.items() if isinstance(value, bool | str)},
        context_window=window if isinstance(window, int) and window > 0 else None,
        found={str(key): str(day) for key, day in values.get("found", {}).items()},
    )


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
