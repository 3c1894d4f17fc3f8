"""What failed before the agent's first change: a snapshot by git that touches nothing of the user's."""

import subprocess
from pathlib import Path

import pytest

from agent_lsp.validation.baseline import Unknown, new_findings, run_on, take_snapshot
from agent_lsp.validation.run import Status, Surroundings, ValidatorResult, run_validators
from agent_lsp.validation.validator import Finding, Validator
from agent_lsp.workspace import Place

LISTING = Validator(
    name="listing", command="cat *.txt sub/*.txt 2>/dev/null; exit 1", place=Place(source="settings.json")
)


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@t")
    done = subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def tree(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its content and time, the repository included; git renews the time of objects that it reads."""
    files = [path for path in root.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(root)): (path.read_bytes(), 0 if "objects" in path.parts else path.stat().st_mtime_ns)
        for path in files
    }


@pytest.fixture
def around(tmp_path: Path, environment: dict[str, str]) -> Surroundings:
    """A repository with a committed, a changed, a staged, an untracked and an ignored file."""
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    for name in ("committed.txt", "changed.txt", "sub/below.txt"):
        (root / name).write_text(f"{name}\n")
    (root / ".gitignore").write_text("ignored.txt\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "x")
    (root / "changed.txt").write_text("changed since\n")
    (root / "staged.txt").write_text("staged\n")
    git(root, "add", "staged.txt")
    (root / "untracked.txt").write_text("untracked\n")
    (root / "ignored.txt").write_text("ignored\n")
    return Surroundings(root=root, environment=environment, logs=tmp_path / "logs")


async def before(around: Surroundings, snapshot_of: Path | None = None) -> ValidatorResult:
    """The listing as it was when the snapshot was taken, after all text files have been overwritten."""
    snapshot = await take_snapshot(snapshot_of or around.root, around.environment)
    try:
        for path in (snapshot_of or around.root).glob("*.txt"):
            path.write_text("overwritten by the agent\n")
        failed = await run_validators([LISTING], around, timeout=60)
        return (await run_on(snapshot, failed, around, timeout=60))["listing"]
    finally:
        snapshot.remove()


@pytest.mark.requirement("S2-validation")
async def test_snapshot_holds_what_was_there_before_the_change(around: Surroundings) -> None:
    result = await before(around)

    assert result.output.splitlines() == ["changed since", "committed.txt", "staged", "untracked", "sub/below.txt"]


async def test_snapshot_of_a_folder_in_a_repository_is_that_folder(around: Surroundings) -> None:
    result = await before(Surroundings(root=around.root / "sub", environment=around.environment, logs=around.logs))

    assert result.output == "sub/below.txt"


async def test_snapshot_touches_neither_tree_nor_index_nor_repository(around: Surroundings) -> None:
    untouched = tree(around.root)

    snapshot = await take_snapshot(around.root, around.environment)
    await run_on(snapshot, await run_validators([LISTING], around, timeout=60), around, timeout=60)
    snapshot.remove()

    assert tree(around.root) == untouched
    assert not snapshot.folder.exists()


async def test_snapshot_runs_no_program_of_the_repository(around: Surroundings) -> None:
    marker = around.root.parent / "ran"
    hook = around.root / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    git(around.root, "config", "core.fsmonitor", f"touch {marker}; false")
    (around.root / ".gitattributes").write_text("*.txt filter=evil\n")
    for key in ("clean", "smudge"):
        git(around.root, "config", f"filter.evil.{key}", f"touch {marker}; cat")

    await before(around)

    assert not marker.exists()


@pytest.mark.parametrize("why", ["no repository", "no git"])
async def test_snapshot_that_cannot_be_taken_is_unknown(tmp_path: Path, environment: dict[str, str], why: str) -> None:
    if why == "no git":
        environment = environment | {"PATH": str(tmp_path)}

    with pytest.raises(Unknown, match="git"):
        await take_snapshot(tmp_path, environment)


async def test_tests_and_types_are_not_judged_on_a_copy(around: Surroundings) -> None:
    snapshot = await take_snapshot(around.root, around.environment)
    tests = Validator(name="pytest", command="exit 1", kind="test", place=Place(source="s"))

    with pytest.raises(Unknown, match="pytest cannot be trusted on a copy"):
        await run_on(snapshot, await run_validators([tests], around, timeout=60), around, timeout=60)
    snapshot.remove()


async def test_dependencies_are_used_where_they_are(around: Surroundings) -> None:
    (around.root / ".venv").mkdir()
    (around.root / ".venv" / "tool.txt").write_text("the tool\n")
    (around.root / ".gitignore").write_text(".venv\n")
    using = Validator(name="listing", command="cat .venv/tool.txt; exit 1", place=Place(source="s"))
    snapshot = await take_snapshot(around.root, around.environment)

    results = await run_on(snapshot, await run_validators([using], around, timeout=60), around, timeout=60)

    link = snapshot.folder / "tree" / ".venv"
    assert (results["listing"].output, link.readlink()) == ("the tool", around.root / ".venv")
    snapshot.remove()
    assert (around.root / ".venv" / "tool.txt").exists()


A = Finding(path="a.py", line=1, message="unused", code="F401")
B = Finding(path="b.py", line=2, message="undefined", code="F821")


def result(*findings: Finding, text: str = "x", status: Status = "red", code: int = 1) -> ValidatorResult:
    return ValidatorResult(validator=LISTING, status=status, text=text, findings=findings, exit_code=code)


@pytest.mark.parametrize(
    ("now", "earlier", "fresh"),
    [
        (result(A), None, None),
        (result(A), result(status="green"), None),
        (result(A), result(status="missing"), None),
        (result(A), result(A), ()),
        (result(Finding(path="a.py", line=9, message="unused", code="F401")), result(A), ()),
        (result(A, B), result(A), (B,)),
        (result(A, A), result(A), (A,)),
        (result(B), result(A), (B,)),
        (result(text="2 failed in 0.3s"), result(text="2 failed in 0.4s"), ()),
        (result(text="a failed"), result(text="b failed"), None),
        (result(A), result(text="something else"), None),
        (result(text="2 tests failed"), result(text="9 tests failed"), None),
        (result(text="expected 1.0 got 1"), result(text="expected 1.0 got 55"), None),
        (result(A, text="1 error\nFATAL: coverage"), result(A, text="1 error"), None),
        (result(A, text="a.py:9 unused"), result(A, text="a.py:1 unused"), ()),
        (result(A), result(A, code=2), None),
    ],
)
def test_new_findings_are_those_that_were_not_there_before(
    now: ValidatorResult, earlier: ValidatorResult | None, fresh: tuple[Finding, ...] | None
) -> None:
    assert new_findings(now, earlier) == fresh
