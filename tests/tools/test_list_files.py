"""Listing honours .gitignore, with ripgrep and without it."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from agent_lsp.messages import ToolResult
from agent_lsp.tools.base import ToolContext
from agent_lsp.tools.globs import Glob
from agent_lsp.tools.list_files import LIST_FILES, list_paths
from agent_lsp.tools.ripgrep import find_ripgrep
from agent_lsp.workspace import ResolvedPath, Workspace
from tests.tools.conftest import Call


def fill(root: Path, paths: Iterable[str]) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


@pytest.fixture
def tree(root: Path) -> Path:
    """A workspace with what should be listed, and what should not."""
    fill(
        root,
        [
            ".env",
            ".git/config",
            ".github/ci.yml",
            "build/out.js",
            "debug.log",
            "empty/.gitkeep",
            "keep/debug.log",
            "new\nline",
            "src/a.py",
            "src/b.ts",
            "src/generated/c.py",
            "src/generated/kept.py",
        ],
    )
    (root / ".gitignore").write_text("*.log\n/build/\n")
    (root / "keep/.gitignore").write_text("!debug.log\n")
    (root / "src/.gitignore").write_text("generated/*\n!generated/kept.py\n")
    (root.parent / "secret").write_text("")
    (root / "link").symlink_to(root.parent / "secret")
    (root / "linked").symlink_to(root / "src")
    return root


EVERYTHING = [
    ".env",
    ".github/ci.yml",
    ".gitignore",
    "empty/.gitkeep",
    "keep/.gitignore",
    "keep/debug.log",
    "new\nline",
    "src/.gitignore",
    "src/a.py",
    "src/b.ts",
    "src/generated/kept.py",
]


@pytest.mark.parametrize(
    ("directory", "glob", "expected"),
    [
        (".", None, EVERYTHING),
        (".", "*.log", ["keep/debug.log"]),
        (".", "**/*.log", ["keep/debug.log"]),
        (".", "build/**", []),
        (".", "*.{py,yml}", [".github/ci.yml", "src/a.py", "src/generated/kept.py"]),
        (".", "src/*.py", ["src/a.py"]),
        (".", "/src/**", ["src/.gitignore", "src/a.py", "src/b.ts", "src/generated/kept.py"]),
        ("src", "*.py", ["src/a.py", "src/generated/kept.py"]),
        ("src", "generated/*.py", ["src/generated/kept.py"]),
        ("linked", "a.*", ["src/a.py"]),
        ("build", None, ["build/out.js"]),
    ],
)
@pytest.mark.parametrize("has_ripgrep", [True, False])
@pytest.mark.requirement("S3")
async def test_list_paths_honours_gitignore(
    tree: Path, context: ToolContext, has_ripgrep: bool, directory: str, glob: str | None, expected: list[str]
) -> None:
    ripgrep = find_ripgrep(context.workspace, context.environment)
    assert ripgrep is not None

    listing = await list_paths(
        context.workspace.resolve(directory),
        None if glob is None else Glob(glob),
        context,
        ripgrep=ripgrep if has_ripgrep else None,
    )

    assert sorted(listing.paths) == expected
    assert listing.notes == (() if has_ripgrep else ("ripgrep not found; slow search in Python",))


@pytest.mark.parametrize("has_ripgrep", [True, False])
@pytest.mark.parametrize("directory", [".", "src"])
async def test_list_paths_leaves_out_what_may_not_be_read(
    tree: Path, context: ToolContext, has_ripgrep: bool, directory: str
) -> None:
    asked: list[ResolvedPath] = []

    def may_read(path: ResolvedPath) -> bool:
        asked.append(path)
        return path.display != "src/a.py"

    listing = await list_paths(
        context.workspace.resolve(directory),
        Glob("*.[pt][ys]"),
        replace(context, may_read=may_read),
        ripgrep=find_ripgrep(context.workspace, context.environment) if has_ripgrep else None,
    )

    assert sorted(listing.paths) == ["src/b.ts", "src/generated/kept.py"]
    assert sorted(asked, key=lambda path: path.display) == [
        context.workspace.resolve(path) for path in ("src/a.py", "src/b.ts", "src/generated/kept.py")
    ]


async def test_list_files_lists_sorted_paths(tree: Path, call: Call) -> None:
    assert await call(LIST_FILES, path="src") == ToolResult(
        content="src/.gitignore\nsrc/a.py\nsrc/b.ts\nsrc/generated/kept.py", metadata={"count": 4}
    )


async def test_list_files_lists_an_additional_root_by_full_paths(
    root: Path, tmp_path: Path, context: ToolContext
) -> None:
    other = tmp_path / "other"
    fill(other, ["sub/file.py", "sub/file.txt"])
    both = ToolContext(call_id="1", workspace=Workspace(root, additional=(other,)), environment=context.environment)

    result = await LIST_FILES.prepare("1", {"path": str(other), "pattern": "sub/*.py"}).run(both)

    assert result.content == f"{other}/sub/file.py"


async def test_list_files_says_how_many_there_are(root: Path, call: Call) -> None:
    fill(root, [f"{number:05}" for number in range(1_500)])

    lines = (await call(LIST_FILES)).content.split("\n")

    assert lines == [
        *(f"{number:05}" for number in range(1_000)),
        "[The first 1,000 of 1,500 files; narrow the pattern or the path]",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "[No files found]"),
        ({"path": "missing"}, "Error [not_a_directory]: missing is not a directory"),
        ({"path": "x" * 300}, "Error [unreadable_file]: {long} cannot be read: File name too long"),
        ({"path": ".."}, "Error [outside_workspace]: Path is outside the workspace: {parent}"),
        ({"pattern": "[z-a]"}, "Error [invalid_glob]: Not a glob: [z-a] (invalid character class range: z-a)"),
    ],
)
async def test_list_files_says_why_there_is_nothing(
    root: Path, call: Call, arguments: dict[str, str], expected: str
) -> None:
    assert (await call(LIST_FILES, **arguments)).content == expected.format(parent=root.parent, long="x" * 300)


# --- where ripgrep is looked for


def test_find_ripgrep_prefers_the_one_installed_with_the_package(root: Path) -> None:
    found = find_ripgrep(Workspace(root), {"PATH": "/bin"})

    assert found is not None
    assert found.is_file()


@pytest.mark.requirement("F70")
def test_find_ripgrep_takes_none_that_the_workspace_holds(root: Path, tmp_path: Path) -> None:
    for directory in (root, tmp_path / "trusted"):
        directory.mkdir(exist_ok=True)
        (directory / "rg").write_text("#!/bin/sh\n")
        (directory / "rg").chmod(0o755)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/rg").symlink_to(root / "rg")
    search_path = f"::.:{root}:{tmp_path / 'linked'}:{tmp_path / 'trusted'}"

    assert find_ripgrep(Workspace(root), {"PATH": search_path}, scripts=tmp_path) == tmp_path / "trusted/rg"
    assert find_ripgrep(Workspace(root), {"PATH": f".:{root}"}, scripts=tmp_path) is None
    assert find_ripgrep(Workspace(root), {}, scripts=tmp_path) is None
