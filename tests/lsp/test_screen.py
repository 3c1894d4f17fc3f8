"""What the server shows beside the user's work, and how much of it it keeps."""

import os
from pathlib import Path

import pytest

from agent_lsp.lsp.screen import keep_newest


@pytest.mark.requirement("S4-approvals")
def test_files_that_were_shown_longest_ago_are_removed(tmp_path: Path) -> None:
    for age, name in enumerate(("new", "b", "old", "oldest")):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (1_000 - age, 1_000 - age))
    keep_newest(tmp_path, 3)
    assert {file.name for file in tmp_path.iterdir()} == {"new", "b", "old"}
