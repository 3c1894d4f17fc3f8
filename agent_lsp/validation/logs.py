"""The whole outputs of validators: private files in a directory for each session, beside those of other sessions.

Invariants: a log that cannot be written or removed disturbs nobody; to remove one, no link is followed.
"""

import os
import re
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

KEEP_DAYS = 30


def write_log(logs: Path, name: str, text: str) -> Path | None:
    """Keep a whole output; None where it cannot be written. A session's first log removes the old ones of all."""
    prefix = re.sub(r"[^\w.-]+", "-", name)[:60] or "validator"
    try:
        if not logs.exists():
            logs.mkdir(parents=True, exist_ok=True, mode=0o700)
            _remove_old(logs.parent, before=time.time() - KEEP_DAYS * 24 * 60 * 60)
        descriptor, path = tempfile.mkstemp(dir=logs, prefix=f"{prefix}-", suffix=".log")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return None
    return Path(path)


def _remove_old(sessions: Path, *, before: float) -> None:
    """Remove what was written before a time, in seconds since the epoch, and directories that this leaves empty."""
    with suppress(OSError):
        for directory in sessions.iterdir():
            with suppress(OSError):  # one directory's fault is not the next one's
                if directory.is_dir() and not directory.is_symlink() and _remove_logs(directory, before):
                    directory.rmdir()


def _remove_logs(directory: Path, before: float) -> bool:
    """Whether there were any to remove."""
    old = [path for path in directory.iterdir() if _is_old_log(path, before)]
    for path in old:
        path.unlink(missing_ok=True)
    return bool(old)


def _is_old_log(path: Path, before: float) -> bool:
    status = path.lstat()
    return path.suffix == ".log" and stat.S_ISREG(status.st_mode) and status.st_mtime < before
