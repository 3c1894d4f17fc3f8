"""What a snapshot sees and where contents come from: git's index is read as git reads it."""

import os
from pathlib import Path

import pytest

from agent_lsp.session.git_index import git_directory, read_blobs, read_index
from agent_lsp.session.read_only import is_read_only
from agent_lsp.session.snapshot import Contents, Limits, TooLarge, Tree, changed, scan
from tests.support.worlds import git

OLD = 1_600_000_000


def look(*roots: Path, like: Tree | None = None) -> Tree:
    return scan(roots, lambda: None, like=like)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with names of many lengths."""
    root = tmp_path / "w"
    root.mkdir()
    git(root, "init", "-q")
    for number in range(1, 30):
        (root / ("n" * number)).write_text(f"{number}\n")
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "ünï\tname").write_text("odd\n")
    (root / "deep" / "run").write_text("x")
    (root / "deep" / "run").chmod(0o755)
    (root / "link").symlink_to("n")
    long = root / "/".join(["d" * 200] * 15)
    long.mkdir(parents=True)
    os.chdir(long)
    try:
        Path("f" * 200).write_text("behind a path of more than 4,095 bytes is none of our business\n")
    finally:
        os.chdir(tmp_path)
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
            os.utime(path, (OLD, OLD))
    git(root, "add", "-A")
    return root


@pytest.mark.parametrize("version", [2, 3, 4])
def test_index_is_read_as_git_reads_it(repository: Path, version: int) -> None:
    (repository / "later").write_text("x")
    (repository / "skipped").write_text("x")
    git(repository, "add", "skipped")
    git(repository, "update-index", "--skip-worktree", "skipped")
    git(repository, "add", "--intent-to-add", "later")  # from version 3 on there is a place to say so
    git(repository, "update-index", "--index-version", str(version))
    listed = git(repository, "ls-files", "--stage", "-z").split("\0")[:-1]
    expected = {
        line.partition("\t")[2]: line.split()[1]
        for line in listed
        if line.startswith("100") and not line.endswith(("\tlater", "\tskipped"))
    }

    found = {path: entry.blob for path, entry in read_index(repository / ".git").items()}

    assert found == expected
    for path, entry in read_index(repository / ".git").items():
        status = (repository / path).stat()
        assert entry.describes(status.st_size, status.st_mtime_ns, status.st_ino)


def test_file_that_changed_with_the_index_does_not_count_as_kept(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("a")
    os.utime(tmp_path / "a", (OLD, OLD))
    git(tmp_path, "add", "a")
    assert list(read_index(tmp_path / ".git")) == ["a"]

    os.utime(tmp_path / ".git" / "index", (OLD, OLD))

    assert read_index(tmp_path / ".git") == {}


@pytest.mark.parametrize(
    "content", [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\x05", b"DIRC\0\0\0\x09\0\0\0\0", b"DIRC\0\0\0\4" + b"\xff" * 90]
)
def test_index_that_cannot_be_read_keeps_nothing(tmp_path: Path, content: bytes) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git" / "index").write_bytes(content)

    assert read_index(tmp_path / ".git") == {}


def test_split_index_keeps_nothing(repository: Path) -> None:
    git(repository, "update-index", "--split-index")

    assert read_index(repository / ".git") == {}


def test_repository_with_longer_names_is_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256")
    (tmp_path / "a").write_text("a")
    os.utime(tmp_path / "a", (OLD, OLD))
    git(tmp_path, "add", "a")

    [entry] = read_index(tmp_path / ".git").values()

    assert len(entry.blob) == 64
    assert list(read_blobs(tmp_path / ".git", [entry.blob])) == [(entry.blob, b"a")]


def test_linked_working_tree_has_its_own_index(repository: Path, tmp_path: Path) -> None:
    git(repository, "commit", "-qm", "x")
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    place = git_directory(tmp_path / "linked")

    assert place is not None
    assert place.parent == repository / ".git" / "worktrees"
    git(tmp_path / "linked", "status")
    blobs = {entry.blob for entry in read_index(repository / ".git").values()}
    assert {name for name, _ in read_blobs(place, blobs)} == blobs


def test_blobs_that_are_not_there_are_left_out(repository: Path) -> None:
    [(name, content)] = read_blobs(repository / ".git", ["0" * 40, git(repository, "hash-object", "n").strip(), "x"])

    assert (content, len(name)) == (b"1\n", 40)


def test_what_is_ignored_or_a_cache_is_left_out_and_said(tmp_path: Path) -> None:
    for name in ("out", "src/generated", "node_modules/x", "env/lib", "cache/x", "kept", ".git/objects"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "cache" / "CACHEDIR.TAG").touch()
    (tmp_path / ".gitignore").write_text("out/\n*.log\n")
    (tmp_path / "src" / ".gitignore").write_text("generated\n")
    (tmp_path / "a.log").touch()

    tree = look(tmp_path)

    names = sorted(str(Path(path).relative_to(tmp_path)) for path in tree.entries)
    assert names == [".gitignore", "a.log", "kept", "src", "src/.gitignore"]
    skipped = sorted(str(Path(path).relative_to(tmp_path)) for path in tree.skipped)
    assert skipped == ["cache", "env", "node_modules", "out", "src/generated"]


def test_second_look_sees_what_the_first_saw_whatever_is_ignored_by_then(tmp_path: Path) -> None:
    for name in ("was", "will-be"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").touch()
    (tmp_path / ".gitignore").write_text("was\n")
    first = look(tmp_path)
    (tmp_path / ".gitignore").write_text("will-be\n")
    (tmp_path / "will-be" / "CACHEDIR.TAG").touch()

    second = look(tmp_path, like=first)

    assert str(tmp_path / "was" / "f") not in second.entries
    assert changed(first.entries, second.entries) == [
        str(tmp_path / ".gitignore"),
        str(tmp_path / "will-be" / "CACHEDIR.TAG"),
    ]


def test_contents_come_back_as_they_were(repository: Path) -> None:
    (repository / "nn").write_text("changed\n")
    (repository / "untracked").write_text("u\n")
    tree = look(repository)
    contents = Contents()
    contents.keep(tree, lambda: None)
    for name in ("n", "nn", "untracked"):
        (repository / name).unlink()

    found = dict(contents.of(tree, [str(repository / name) for name in ("n", "nn", "untracked", "nobody")]))
    contents.close()

    assert found == {
        str(repository / "n"): b"1\n",
        str(repository / "nn"): b"changed\n",
        str(repository / "untracked"): b"u\n",
    }


def test_contents_above_the_bounds_are_not_kept(tmp_path: Path) -> None:
    for name, content in (("a", "small"), ("b", "larger"), ("c", "c"), ("d", "d")):
        (tmp_path / name).write_text(content)
    contents = Contents(Limits(file=5, files=3))

    left = contents.keep(look(tmp_path), lambda: None)
    contents.close()

    assert len(left) in (1, 2)
    assert str(tmp_path / "b") in left


def test_look_at_too_many_files_is_given_up(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"d{number}").mkdir()

    with pytest.raises(TooLarge):
        scan((tmp_path,), lambda: None, limits=Limits(entries=5))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls -la src", True),
        ("cat a.txt", True),
        ("git status --short", True),
        ("git log --oneline -3", True),
        ("git log --output=x", False),
        ("git checkout .", False),
        ("git -c core.pager=x log", False),
        ("cat a > b", False),
        ("ls; rm a", False),
        ("./ls", False),
        ("X=1 ls", False),
        ("sudo ls", False),
        ("sed -n p a", False),
        ("find . -delete", False),
        ("echo $(rm a)", False),
        ("", False),
        (None, False),
    ],
)
def test_command_that_certainly_changes_nothing_is_told_from_all_others(command: str | None, expected: bool) -> None:
    assert is_read_only(command) is expected
