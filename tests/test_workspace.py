"""Paths are judged after resolving, by component."""

import os
from pathlib import Path

import pytest

from agent_lsp.errors import ConfigurationError, ToolError
from agent_lsp.workspace import Workspace


@pytest.mark.requirement("A45")
@pytest.mark.parametrize(
    ("spelling", "inside"),
    [
        ("a.txt", True),
        ("sub/../a.txt", True),
        ("missing/deeper.txt", True),
        (".", True),
        ("..", False),
        ("../outside.txt", False),
        ("sub/../../outside.txt", False),
        ("../work-other/a.txt", False),
        ("link-out/a.txt", False),
        ("dangling-out", False),
        ("link-in/a.txt", True),
        ("/etc/passwd", False),
        ("~/a.txt", False),
    ],
)
def test_resolve_judges_the_place_after_links(tmp_path: Path, spelling: str, inside: bool) -> None:
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "work-other").mkdir()
    (root / "link-out").symlink_to(tmp_path / "work-other")
    (root / "dangling-out").symlink_to(tmp_path / "nowhere")
    (root / "link-in").symlink_to(root / "sub")

    resolved = Workspace(root).resolve(spelling)

    assert resolved.inside is inside
    assert resolved.path == Path(os.path.realpath(root / Path(spelling).expanduser()))


def test_resolve_shows_paths_relative_to_the_root(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)

    assert workspace.resolve("sub/./a.txt").display == "sub/a.txt"
    assert workspace.resolve("..").display == tmp_path.parent.as_posix()


def test_additional_directory_counts_as_inside(tmp_path: Path) -> None:
    for name in ("work", "more"):
        (tmp_path / name).mkdir()

    workspace = Workspace(tmp_path / "work", additional=(tmp_path / "more",))

    assert workspace.resolve("../more/a.txt").inside


@pytest.mark.parametrize("spelling", ["", "a\0b", "loop"])
def test_resolve_refuses_what_no_system_call_takes(tmp_path: Path, spelling: str) -> None:
    if spelling == "loop":
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        assert Workspace(tmp_path).resolve(spelling).inside
        return
    with pytest.raises(ToolError) as caught:
        Workspace(tmp_path).resolve(spelling)
    assert caught.value.code == "invalid_path"


def test_workspace_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Workspace folder does not exist"):
        Workspace(tmp_path / "missing")
