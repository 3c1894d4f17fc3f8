"""Whole outputs in files: how they are named, and that old ones do not stay."""

import os
import time
from pathlib import Path

import pytest

from agent_lsp.validation.logs import KEEP_DAYS, write_log

DAY = 24 * 60 * 60


def aged(path: Path, days: float) -> Path:
    """Make the file, or the link itself, as old as that."""
    if not path.is_symlink():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    then = time.time() - days * DAY
    os.utime(path, (then, then), follow_symlinks=False)
    return path


@pytest.mark.requirement("F41")
def test_log_has_all_of_the_output_in_a_private_file_named_after_the_validator(tmp_path: Path) -> None:
    log = write_log(tmp_path / "logs" / "session", "api/../ruff check", "caf\N{LATIN SMALL LETTER E WITH ACUTE}\udcff")

    assert log is not None
    assert (log.parent, log.name.rpartition("-")[0]) == (tmp_path / "logs" / "session", "api-..-ruff-check")
    assert log.read_text(encoding="utf-8") == "caf\N{LATIN SMALL LETTER E WITH ACUTE}\\udcff"
    assert (log.stat().st_mode & 0o077, log.parent.stat().st_mode & 0o077) == (0, 0)


@pytest.mark.requirement("F41")
def test_log_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file in the place of the directory")

    assert write_log(tmp_path / "logs" / "session", "check", "x") is None


@pytest.mark.requirement("F41")
def test_first_log_of_a_session_removes_old_ones_of_all_and_the_next_none(tmp_path: Path) -> None:
    old = aged(tmp_path / "emptied" / "check-1.log", KEEP_DAYS + 1)
    beside = aged(tmp_path / "mixed" / "check-1.log", KEEP_DAYS + 1)
    recent = aged(tmp_path / "mixed" / "check-2.log", KEEP_DAYS - 1)

    first = write_log(tmp_path / "session", "check", "one")
    late = aged(tmp_path / "late" / "check-1.log", KEEP_DAYS + 1)
    second = write_log(tmp_path / "session", "check", "two")

    kept = [path for path in (first, second, recent, late) if path is not None and path.exists()]
    assert kept == [first, second, recent, late]
    assert not old.parent.exists()
    assert not beside.exists()


@pytest.mark.requirement("F41")
def test_what_is_no_log_is_not_removed_and_no_link_is_followed(tmp_path: Path) -> None:
    logs, elsewhere = tmp_path / "logs", tmp_path / "elsewhere"
    theirs = aged(elsewhere / "check-1.log", KEEP_DAYS + 1)
    notes = aged(logs / "another" / "notes.txt", KEEP_DAYS + 1)
    stray = aged(logs / "stray.log", KEEP_DAYS + 1)
    (logs / "another" / "folder.log").mkdir()
    (logs / "linked").symlink_to(elsewhere)
    (logs / "another" / "linked.log").symlink_to(theirs)
    link = aged(logs / "another" / "linked.log", KEEP_DAYS + 1)
    old = aged(logs / "another" / "check-1.log", KEEP_DAYS + 1)

    written = write_log(logs / "session", "check", "x")

    assert written is not None
    assert [path for path in (theirs, notes, stray, link) if not path.exists()] == []
    assert not old.exists()
