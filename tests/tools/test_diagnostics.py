"""The editor's diagnostics, as the model reads them."""

from pathlib import Path

import pytest

from agent_lsp.tools.diagnostics import DIAGNOSTICS, MAX_PROBLEMS
from agent_lsp.workspace import FileProblems, Problem
from tests.tools.conftest import Call, OpenDocuments

UNUSED = Problem(line=3, column=5, message="unused\nvariable", severity="warning", source="ruff", code="F841")


@pytest.mark.requirement("S3-diagnostics")
async def test_diagnostics_of_all_files_are_told_with_their_age(
    root: Path, documents: OpenDocuments, call: Call
) -> None:
    bare = Problem(line=1, column=1, message="bad", severity="error")
    documents.reported = [
        FileProblems(path=root / "a.py", problems=(UNUSED,)),
        FileProblems(path=root / "b.py", problems=(bare,), is_current=False),
        FileProblems(path=root.parent / "outside.py", problems=(bare,)),
    ]

    everything = await call(DIAGNOSTICS)
    one = await call(DIAGNOSTICS, path="a.py")
    nothing = await call(DIAGNOSTICS, path="c.py")

    line = "a.py:3:5: warning: unused variable (ruff F841)"
    assert everything.content == f"{line}\nb.py:1:1: error: bad [the text has changed since]"
    assert one.content == line
    assert nothing.content == "The editor reports nothing for c.py"


@pytest.mark.requirement("S3-diagnostics")
async def test_diagnostics_are_bounded(root: Path, documents: OpenDocuments, call: Call) -> None:
    documents.reported = [FileProblems(path=root / "a.py", problems=(UNUSED,) * (MAX_PROBLEMS + 7))]

    lines = (await call(DIAGNOSTICS)).content.splitlines()

    assert (len(lines), lines[-1]) == (MAX_PROBLEMS + 1, "[7 more; ask for one file]")
