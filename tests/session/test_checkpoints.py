"""What a turn changed is put back to the last bit, in a repository and without one, and nothing else is touched."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_lsp.agent.profiles import PRODUCT
from agent_lsp.approvals import Action
from agent_lsp.models.scripted import ScriptedModel, Step, calls, says
from agent_lsp.session.assemble import SessionOptions, open_session
from agent_lsp.session.checkpoints import Checkpoints
from agent_lsp.session.file_state import Objects
from agent_lsp.session.records import Record, StoredTurn
from agent_lsp.session.session import Session
from agent_lsp.session.snapshot import Limits
from agent_lsp.session.stored import stored_sessions
from agent_lsp.workspace import Access, NoDocuments, Workspace
from tests.support.harness import RecordingApprover
from tests.support.worlds import git, git_workspace, plain_workspace, repository_state, tree

PLAIN = [
    "echo changed > a.txt",
    "echo more >> crlf.txt; head -c 10 /dev/zero > binary.bin; : > run.sh",
    "chmod 644 run.sh; chmod 400 private; chmod 700 folder",
    "chmod 000 private",
    "mv a.txt moved.txt; mv folder/inner folder/other",
    "rm -r folder hollow 'run.sh' ünï*",
    "rm link dangling; ln -s run.sh link; rm to-folder; echo file > to-folder",
    "rm a.txt; mkdir a.txt; echo x > a.txt/x",
    "rm -r folder; echo file > folder",
    "mkdir -p new/deep/empty; echo n > new/deep/n.txt; ln -s n.txt new/deep/l; mkfifo new/pipe",
    "cp -p a.txt b.txt; echo same-size > x; mv x a.txt; touch -r b.txt a.txt",
    "rm -rf ./*",
    "echo 1 > a.txt; false",
    "sed -i s/one/1/ crlf.txt; echo -n > empty; echo y > empty",
    "ln a.txt hard; echo z > hard",
]
IN_GIT = [
    *PLAIN,
    "echo changed > tracked.txt; echo x > staged.txt; echo x > dirty.txt; echo x > untracked.txt; echo x > ignored.log",
    "rm tracked.txt staged.txt added.txt dirty.txt untracked.txt ignored.log sub/lib.txt .gitignore",
    "echo x > sub/lib.txt; echo y > sub/new.txt",
    "chmod +x tracked.txt sub/lib.txt",
]
WITH_GIT = ["git checkout -q -- . ; git stash -q; git reset -q --hard", "git add -A; git commit -qm x; git clean -qfd"]


_opened: list[Session] = []


@pytest.fixture(autouse=True)
def _close_all() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().history.close()


def session_of(root: Path, *script: Step, resume: str | None = None) -> Session:
    session = open_session(
        SessionOptions(
            root=root,
            approver=RecordingApprover(),
            model=ScriptedModel(script),
            mode="bypass",
            profile=PRODUCT,
            validate=False,
            resume=resume,
            environ={**os.environ, "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e", "GIT_COMMITTER_NAME": "n"}
            | {"GIT_COMMITTER_EMAIL": "e@example.com", "GIT_CONFIG_GLOBAL": os.devnull},
        )
    )
    _opened.append(session)
    return session


def without_build(found: dict[str, tuple[str, int, str]]) -> dict[str, tuple[str, int, str]]:
    """What is covered: all but the ignored directory."""
    return {path: entry for path, entry in found.items() if path.partition("/")[0] != "build"}


async def turn(root: Path, *script: Step) -> Session:
    """Run one turn, in a session that is still there."""
    session = session_of(root, *script, says("done"))
    finished = await session.run("go")
    assert finished.stop_reason == "completed", finished
    return session


def shell(command: str) -> Step:
    return calls(("shell", {"command": command}))


@pytest.mark.requirement("F61-undo")
@pytest.mark.parametrize("command", PLAIN)
async def test_undo_of_a_command_puts_all_files_back_without_git(tmp_path: Path, command: str) -> None:
    root = plain_workspace(tmp_path / "w")
    before = tree(root)

    session = await turn(root, shell(command))
    changed = tree(root)
    report = await session.undo()

    assert changed != before
    assert tree(root) == before
    assert report.refused == ()


@pytest.mark.requirement("F61-undo")
@pytest.mark.parametrize("command", IN_GIT)
async def test_undo_of_a_command_puts_all_files_back_and_leaves_the_repository(tmp_path: Path, command: str) -> None:
    root = git_workspace(tmp_path / "w")
    before, repository = tree(root), repository_state(root)

    session = await turn(root, shell(command))
    changed = tree(root)
    report = await session.undo()

    assert changed != before
    assert without_build(tree(root)) == without_build(before)
    assert repository_state(root) == repository
    assert report.refused == ()


@pytest.mark.requirement("F61-undo")
@pytest.mark.parametrize("command", WITH_GIT)
async def test_undo_of_what_git_did_to_files_leaves_gits_own_state_as_the_command_made_it(
    tmp_path: Path, command: str
) -> None:
    root = git_workspace(tmp_path / "w")
    before = tree(root)

    session = await turn(root, shell(command))
    repository = repository_state(root)
    report = await session.undo()

    assert tree(root) == before
    assert repository_state(root) == repository
    assert report.refused == ()


@pytest.mark.requirement("F61-undo")
async def test_undo_says_what_it_does_not_cover(tmp_path: Path) -> None:
    root = git_workspace(tmp_path / "w")
    (root / "node_modules").mkdir()

    session = await turn(root, shell("echo x > build/out.txt; echo x > node_modules/y"))
    report = await session.undo(session.history.turns[-1].id)

    assert report.not_covered == ("what commands changed in ignored directories and caches: build, node_modules",)
    assert (root / "build" / "out.txt").read_text() == "x\n"


@pytest.mark.requirement("F61-undo")
async def test_undo_of_several_commands_and_edits_of_one_file_goes_back_to_the_beginning(tmp_path: Path) -> None:
    root = git_workspace(tmp_path / "w")
    before = tree(root)

    session = await turn(
        root,
        shell("echo 1 >> tracked.txt; echo new > n.txt"),
        calls(("edit_file", {"path": "tracked.txt", "edits": [{"old": "1", "new": "2"}]})),
        shell("sed -i s/2/3/ tracked.txt; rm n.txt; git mv a.txt b.txt"),
        calls(("write_file", {"path": "n.txt", "content": "again\n"})),
    )
    report = await session.undo()

    assert tree(root) == before
    assert report.refused == ()


def _change_file(root: Path) -> None:
    (root / "tracked.txt").write_text("mine\n")


def _change_mode(root: Path) -> None:
    (root / "tracked.txt").chmod(0o600)


def _delete(root: Path) -> None:
    (root / "tracked.txt").unlink()


def _replace_by_link(root: Path) -> None:
    (root / "tracked.txt").unlink()
    (root / "tracked.txt").symlink_to("a.txt")


def _replace_by_directory(root: Path) -> None:
    (root / "tracked.txt").unlink()
    (root / "tracked.txt").mkdir()


@pytest.mark.requirement("F61-undo")
@pytest.mark.parametrize(
    "change",
    [_change_file, _change_mode, _delete, _replace_by_link, _replace_by_directory],
    ids=lambda each: each.__name__,
)
async def test_what_the_user_changed_since_is_refused_and_left(tmp_path: Path, change: Callable[[Path], None]) -> None:
    root = git_workspace(tmp_path / "w")
    session = await turn(root, shell("echo theirs > tracked.txt; echo theirs > a.txt"))
    change(root)
    mine = tree(root).get("tracked.txt")

    report = await session.undo()

    assert tree(root).get("tracked.txt") == mine
    assert (root / "a.txt").read_text() == "a\n"
    assert [(each.display, each.reason) for each in report.refused] == [("tracked.txt", "it was changed since")]
    if change is _change_file:
        assert report.refused[0].diff == "--- a/tracked.txt\n+++ b/tracked.txt\n@@ -1 +1 @@\n-theirs\n+mine\n"


@pytest.mark.requirement("F61-undo")
async def test_what_the_user_put_into_a_new_directory_stays(tmp_path: Path) -> None:
    root = plain_workspace(tmp_path / "w")
    session = await turn(root, shell("mkdir new; echo theirs > new/theirs"))
    (root / "new" / "mine").write_text("mine\n")

    report = await session.undo()

    assert {path for path in tree(root) if path.startswith("new")} == {"new", "new/mine"}
    assert [(each.display, each.reason) for each in report.refused] == [
        ("new", "there are other files in the directory")
    ]


@pytest.mark.requirement("F61-undo")
async def test_what_the_user_changed_between_two_changes_of_the_agent_is_refused(tmp_path: Path) -> None:
    root = plain_workspace(tmp_path / "w")

    def interfere(_request: object) -> Step:
        (root / "a.txt").write_text("mine\n")
        return shell("echo theirs >> a.txt; echo theirs > empty")

    session = await turn(root, shell("echo first > a.txt"), interfere)
    report = await session.undo()

    assert (root / "a.txt").read_text() == "mine\ntheirs\n"
    assert (root / "empty").read_text() == ""
    assert [(each.display, each.reason) for each in report.refused] == [
        ("a.txt", "somebody else changed it between, or during, changes of the agent")
    ]


@pytest.mark.requirement("F61-undo")
async def test_what_the_user_changed_between_two_commands_is_not_taken_for_the_agents(tmp_path: Path) -> None:
    root = plain_workspace(tmp_path / "w")

    def meanwhile(_request: object) -> Step:
        (root / "crlf.txt").write_text("mine\n")
        return shell("echo theirs > empty")

    session = await turn(root, shell("echo first > a.txt"), meanwhile)
    report = await session.undo()

    assert (root / "crlf.txt").read_text() == "mine\n"
    assert (root / "a.txt").read_text() == "a\n"
    assert report.refused == ()


@pytest.mark.requirement("F61-undo")
async def test_turns_are_undone_from_the_last_one_back_also_by_another_process(tmp_path: Path) -> None:
    root = git_workspace(tmp_path / "w")
    states = [tree(root)]
    session = session_of(
        root, *[each for n in range(3) for each in (shell(f"echo {n} >> a.txt; echo {n} > f{n}"), says("ok"))]
    )
    for _ in range(3):
        await session.run("go")
        states.append(tree(root))
    session.history.close()
    [stored] = stored_sessions(root).list()

    resumed = session_of(root, resume=stored.id)
    seen = []
    for _ in range(3):
        await resumed.undo()
        seen.append(tree(root))

    assert seen == states[2::-1]


@pytest.mark.requirement("F61-undo")
async def test_an_old_turn_is_undone_where_no_later_one_touched_the_same(tmp_path: Path) -> None:
    root = plain_workspace(tmp_path / "w")
    session = session_of(root, shell("echo 1 > a.txt; echo 1 > empty"), says("ok"), shell("echo 2 > a.txt"), says("ok"))
    await session.run("one")
    await session.run("two")

    report = await session.undo(session.history.turns[0].id)

    assert ((root / "a.txt").read_text(), (root / "empty").read_text()) == ("2\n", "")
    assert [each.display for each in report.refused] == ["a.txt"]


@pytest.mark.requirement("F61-undo")
async def test_link_in_the_way_leads_no_undo_out_of_the_workspace(tmp_path: Path) -> None:
    root = plain_workspace(tmp_path / "w")
    outside = tmp_path / "outside"
    session = await turn(root, shell("echo theirs > folder/inner/deep.txt"))
    shutil.move(root / "folder" / "inner", outside)
    (root / "folder" / "inner").symlink_to(outside)

    report = await session.undo()

    assert (outside / "deep.txt").read_text() == "theirs\n"
    assert len(report.refused) == 1


@pytest.mark.requirement("F61-undo", "F34")
async def test_a_command_that_was_cancelled_is_undone_too(tmp_path: Path) -> None:
    root = plain_workspace(tmp_path / "w")
    before = tree(root)
    session = session_of(root, shell("echo x > a.txt; echo begun; sleep 60"))

    def cancel(event: object) -> None:
        if type(event).__name__ == "ToolOutput":
            session.cancel()

    session.subscribe(cancel)
    finished = await session.run("go")
    changed = tree(root)
    await session.undo()

    assert finished.stop_reason == "cancelled"
    assert changed != before
    assert tree(root) == before


@pytest.mark.requirement("F61-undo")
async def test_file_that_git_keeps_in_another_shape_is_never_put_back_wrongly(tmp_path: Path) -> None:
    root = tmp_path / "w"
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitattributes").write_text("* text eol=crlf\n")
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    os.utime(root / "a.txt", (1_600_000_000, 1_600_000_000))
    git(root, "update-index", "--refresh", "-q")

    session = await turn(root, shell("echo x > a.txt"))
    report = await session.undo()

    assert (root / "a.txt").read_bytes() in (b"one\r\ntwo\r\n", b"x\n")
    assert (root / "a.txt").read_bytes() == b"one\r\ntwo\r\n" or report.refused


@pytest.mark.requirement("F61-undo", "F10")
async def test_what_a_hook_and_a_validator_made_of_a_file_is_undone_with_it(tmp_path: Path) -> None:
    root = plain_workspace(tmp_path / "w")
    before = tree(root)
    settings = {
        "hooks": {"PostToolUse": [{"type": "command", "command": "echo formatted >> a.txt", "matcher": "write_file"}]},
        "validation": {
            "validators": [{"name": "fixer", "command": "if [ -s empty ]; then exit 0; fi; echo fixed > empty; exit 1"}]
        },
    }
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "settings.json").write_text(json.dumps(settings))
    session = open_session(
        SessionOptions(
            root=root,
            approver=RecordingApprover(),
            model=ScriptedModel([calls(("write_file", {"path": "a.txt", "content": "theirs\n"})), says("done")]),
            mode="bypass",
            trusted=True,
            user_directory=tmp_path / "user",
        )
    )
    _opened.append(session)

    async with session.opened(drain=5):
        finished = await session.run("go")
        changed = tree(root)
        report = await session.undo()

    assert finished.stop_reason == "completed"
    assert {path for path in changed if changed[path] != before.get(path)} == {"a.txt", "empty"}
    assert tree(root) == before
    assert report.refused == ()


@pytest.mark.requirement("F61-undo")
async def test_workspace_that_is_too_large_is_said(tmp_path: Path) -> None:
    root = plain_workspace(tmp_path / "w")
    written: list[Record] = []
    objects = Objects(tmp_path / "objects")
    checkpoints = Checkpoints(Workspace(root), NoDocuments(), objects, written.append, Limits(entries=3))
    checkpoints.begin(StoredTurn(id="t", prompt="p", began=0, first_message=0))

    async with checkpoints.recording(Action(tool="shell", access=Access.EXECUTE, command="make")):
        (root / "a.txt").write_text("x\n")

    [note] = written
    assert note["text"].startswith("what commands changed: the workspace has more files than can be looked at")


@pytest.mark.requirement("F61-undo")
async def test_modes_of_directories_are_put_back_behind_what_is_in_them(tmp_path: Path) -> None:
    root = plain_workspace(tmp_path / "w")
    (root / "folder").chmod(0o555)
    before = tree(root)

    session = await turn(
        root, shell("chmod 755 folder; rm -r folder/inner; echo x > folder/new; chmod 500 folder; chmod 0 private")
    )
    await session.undo()

    assert tree(root) == before
