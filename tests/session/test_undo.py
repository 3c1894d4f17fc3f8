"""Undo as a property: whatever was done, alone it is undone whole, and nothing that the user did since is touched."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_lsp.approvals import Action
from agent_lsp.session.checkpoints import Checkpoints
from agent_lsp.session.file_state import Objects
from agent_lsp.session.records import Record, StoredTurn, encoded, replay
from agent_lsp.session.undo import UndoReport, undo_turn
from agent_lsp.workspace import Access, NoDocuments, Workspace
from tests.support.worlds import tree

Operation: TypeAlias = tuple[str, str, str]
Found: TypeAlias = dict[str, tuple[str, int, str]]

NAMES = ("a", "b", "d", "d/a", "d/e", "d/e/a", "x/y")
operations = st.lists(
    st.tuples(
        st.sampled_from(["write", "append", "delete", "make", "move", "mode", "link", "touch"]),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    max_size=6,
)


def do(root: Path, todo: Sequence[Operation], mark: str) -> None:
    """Do what can be done of some operations."""
    for number, (what, name, other) in enumerate(todo):
        path = root / name
        with suppress(OSError):
            match what:
                case "write":
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(f"{mark}{number}")
                case "append":
                    with path.open("a") as file:
                        file.write(mark)
                case "delete":
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                case "make":
                    path.mkdir(parents=True)
                case "move":
                    path.rename(root / other)
                case "mode":
                    path.chmod(0o700 if path.stat().st_mode & 0o077 else 0o755)
                case "link":
                    path.symlink_to(other)
                case "touch":
                    os.utime(path)


def begin(root: Path) -> None:
    (root / "d" / "e").mkdir(parents=True)
    (root / "a").write_text("first a")
    (root / "d" / "a").write_text("first d/a")
    (root / "d" / "e" / "a").write_text("first d/e/a")
    (root / "b").symlink_to("a")


@dataclass(kw_only=True)
class Story:
    """What was there in the beginning, after the agent, after the user, and after the undo."""

    first: Found
    agent: Found
    user: Found
    last: Found
    report: UndoReport


def story(rounds: Sequence[Sequence[Operation]], theirs: Sequence[Operation] = ()) -> Story:
    """Have an agent do rounds of operations, then a user some, then undo from what was written of it alone."""
    return anyio.run(_story, rounds, theirs)


async def _story(rounds: Sequence[Sequence[Operation]], theirs: Sequence[Operation]) -> Story:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "w"
        root.mkdir()
        begin(root)
        first = tree(root)
        workspace, objects = Workspace(root), Objects(Path(folder) / "objects")
        records: list[Record] = [
            {"type": "session", "format": 1, "id": "s", "root": str(root), "created": 0},
            {"type": "turn", "id": "t", "prompt": "p", "at": 0},
        ]
        checkpoints = Checkpoints(workspace, NoDocuments(), objects, records.append)
        checkpoints.begin(StoredTurn(id="t", prompt="p", began=0, first_message=0))
        for number, todo in enumerate(rounds):
            async with checkpoints.recording(Action(tool="shell", access=Access.EXECUTE, command="make")):
                do(root, todo, f"agent {number} ")
        checkpoints.close()
        agent = tree(root)
        do(root, theirs, "user ")
        user = tree(root)
        [turn] = replay(b"".join(map(encoded, records))).turns
        report = await undo_turn(turn, objects, workspace, NoDocuments())
        return Story(first=first, agent=agent, user=user, last=tree(root), report=report)


@pytest.mark.requirement("F61-undo")
@given(st.lists(operations, min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_whatever_was_done_is_undone_whole(rounds: list[list[Operation]]) -> None:
    told = story(rounds)

    assert told.last == told.first
    assert told.report.refused == ()


@pytest.mark.requirement("F61-undo")
@given(st.lists(operations, min_size=1, max_size=2), operations)
@settings(max_examples=60, deadline=None)
def test_whatever_the_user_made_since_stays(rounds: list[list[Operation]], theirs: list[Operation]) -> None:
    told = story(rounds, theirs)

    made = {
        path: state for path, state in told.user.items() if state not in (told.agent.get(path), told.first.get(path))
    }
    assert {path: told.last.get(path) for path in made} == made


async def _cut_off(root: Path, wrote: str) -> UndoReport:
    """Undo a turn that was ended while a file was written, of which only the beginning was noted."""
    root.mkdir()
    begin(root)
    workspace, objects = Workspace(root), Objects(root.parent / "objects")
    records: list[Record] = [
        {"type": "session", "format": 1, "id": "s", "root": str(root), "created": 0},
        {"type": "turn", "id": "t", "prompt": "p", "at": 0},
    ]
    checkpoints = Checkpoints(workspace, NoDocuments(), objects, records.append)
    checkpoints.begin(StoredTurn(id="t", prompt="p", began=0, first_message=0))
    action = Action(tool="write_file", access=Access.WRITE, paths=(workspace.resolve("a"),))
    async with checkpoints.recording(action):
        (root / "a").write_text(wrote)
        written = list(records)
    [turn] = replay(b"".join(map(encoded, written))).turns
    return await undo_turn(turn, objects, workspace, NoDocuments())


@pytest.mark.requirement("F61-undo", "F61")
async def test_file_that_was_written_when_the_program_was_killed_is_shown_and_left(tmp_path: Path) -> None:
    report = await _cut_off(tmp_path / "w", "what the agent wrote, or somebody else")

    [refused] = report.refused
    assert refused.reason.startswith("the program was ended while it was changed")
    assert "-first a" in refused.diff
    assert report.not_covered == ("what a command changed that ran when the program was ended",)


@pytest.mark.requirement("F61-undo", "F61")
async def test_file_that_was_not_written_yet_when_the_program_was_killed_needs_no_undo(tmp_path: Path) -> None:
    report = await _cut_off(tmp_path / "w", "first a")

    assert (report.restored, report.refused) == ((), ())
