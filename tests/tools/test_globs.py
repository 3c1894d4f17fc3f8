"""Globs mean what they mean in .gitignore and in ripgrep."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

from agent_lsp.errors import ToolError
from agent_lsp.tools.globs import Glob

PATHS = [
    "a.py",
    "a.ts",
    "b.tsx",
    "src/a.py",
    "src/deep/a.py",
    "src/deep/x,y.txt",
    "src/[1].txt",
    "lib/src/a.py",
    ".env",
]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.py", ["a.py", "src/a.py", "src/deep/a.py", "lib/src/a.py"]),
        ("/*.py", ["a.py"]),
        ("src/*.py", ["src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/deep/a.py"]),
        ("**/src/*.py", ["src/a.py", "lib/src/a.py"]),
        ("src/**", ["src/a.py", "src/deep/a.py", "src/deep/x,y.txt", "src/[1].txt"]),
        ("**", PATHS),
        ("*", PATHS),
        ("*.{ts,tsx}", ["a.ts", "b.tsx"]),
        ("{src,lib/src}/a.{py,ts}", ["src/a.py", "lib/src/a.py"]),
        ("{a,{b,c}}.ts*", ["a.ts", "b.tsx"]),
        ("?.ts", ["a.ts"]),
        ("[b-z].ts*", ["b.tsx"]),
        ("[!a].ts*", ["b.tsx"]),
        ("\\[1\\].txt", ["src/[1].txt"]),
        ("x,y.*", ["src/deep/x,y.txt"]),
        (".*", [".env"]),
        ("A.PY", []),
        ("", []),
    ],
)
def test_glob_matches_as_ripgrep_does(tmp_path: Path, glob: str, expected: list[str]) -> None:
    for path in PATHS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    ripgrep = [f"{sysconfig.get_path('scripts')}/rg", "--no-config", "--files", "--hidden", f"--glob={glob}"]
    listed = subprocess.run(ripgrep, cwd=tmp_path, capture_output=True, text=True, check=False).stdout.split()

    assert [path for path in PATHS if Glob(glob).matches(path)] == expected
    assert sorted(listed) == sorted(expected if glob else PATHS)


def test_glob_of_a_directory_matches_all_below_it() -> None:
    assert [path for path in PATHS if Glob("src/deep/").matches(path)] == ["src/deep/a.py", "src/deep/x,y.txt"]


@pytest.mark.parametrize("glob", ["*a*a*a*a*a*a*a*a*a*a*ab", "x/*a*a*a*a*a*a*a*a*a*a*ab", f"{'**/' * 40}ab"])
def test_glob_takes_linear_time(glob: str) -> None:
    assert not Glob(glob).matches(f"x/{'a' * 5_000}")
    assert not Glob(glob).matches("a/" * 5_000)


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("a#b -~&{c}", "a#b -~&c", True),
        ("ü?.[ä-ö]", "ü漢.ä", True),
        ("new\nline*", "new\nline\n.txt", True),
        ("?", "\udcff", True),
        ("a", "A", False),
    ],
)
def test_glob_takes_all_characters(glob: str, path: str, fits: bool) -> None:
    assert Glob(glob).matches(path) == fits


@pytest.mark.parametrize(
    ("glob", "names", "is_names_only"),
    [
        ("*.py", ("*.py",), True),
        ("src/**/*.{ts,tsx}", ("*.ts", "*.tsx"), False),
        ("src/", (), False),
        ("{*.py,docs/**}", (), False),
    ],
)
def test_glob_knows_the_names_of_its_files(glob: str, names: tuple[str, ...], is_names_only: bool) -> None:
    assert (Glob(glob).names, Glob(glob).is_names_only) == (names, is_names_only)


@pytest.mark.parametrize("glob", ["[z-a]", "{a,b}" * 20, "\ud800"])
def test_glob_refuses_what_means_nothing(glob: str) -> None:
    with pytest.raises(ToolError) as caught:
        Glob(glob)

    assert caught.value.code == "invalid_glob"
