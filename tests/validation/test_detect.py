"""What is detected in a project, and what a look at it does not touch."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_lsp.validation.detect import detect
from agent_lsp.validation.detection.tree import MAX_BYTES, MAX_ENTRIES, Folder
from agent_lsp.validation.validator import Validator
from agent_lsp.workspace import Place


def write(root: Path, files: Mapping[str, str]) -> None:
    """Write files, with the folders that they need; what lies in a ``bin`` folder becomes executable."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        if path.parent.name == "bin":
            path.chmod(0o755)


def commands(root: Path) -> dict[str, str]:
    """The detected commands by name, their words joined."""
    return {item.name: " ".join(item.command) for item in detect(root)}


RUFF = "ruff check --output-format concise ."


def test_detect_tells_all_that_it_knows(tmp_path: Path) -> None:
    write(tmp_path, {"services/api/pyproject.toml": '[project]\nname = "api"\n\n[tool.ruff]\n'})

    assert detect(tmp_path) == (
        Validator(
            name="services/api/ruff",
            command=("ruff", "check", "--output-format", "concise", "."),
            place=Place(source=str(tmp_path / "services/api/pyproject.toml"), line=4, column=1),
            directory="services/api",
            paths=(
                "services/api/**/*.py",
                "services/api/**/*.pyi",
                "services/api/**/*.ipynb",
                "services/api/pyproject.toml",
            ),
            timeout=60.0,
            kind="lint",
            tool="ruff",
            why="[tool.ruff] in services/api/pyproject.toml",
            detected=True,
        ),
    )


@pytest.mark.parametrize("root", [".", "missing", "file"])
def test_detect_finds_nothing_where_there_is_nothing(root: str, tmp_path: Path) -> None:
    write(tmp_path, {"file": "", "README.md": "# ruff, pytest and make test\n"})

    assert detect(tmp_path / root) == ()


def test_detect_orders_by_kind_then_by_folder(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "b/go.mod": "module b\n",
            "a/Cargo.toml": '[package]\nname = "a"\n',
            "pyproject.toml": "[tool.pytest.ini_options]\n[tool.mypy]\n[tool.ruff]\n",
        },
    )

    assert [(item.name, item.kind, item.timeout) for item in detect(tmp_path)] == [
        ("ruff", "lint", 60.0),
        ("b/go-vet", "lint", 180.0),
        ("mypy", "types", 120.0),
        ("a/cargo-check", "build", 180.0),
        ("pytest", "test", 300.0),
        ("a/cargo-test", "test", 300.0),
        ("b/go-test", "test", 300.0),
    ]


def test_detect_keeps_two_languages_of_a_monorepo_apart(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "api/pyproject.toml": "[tool.ruff]\n[tool.pytest.ini_options]\n",
            "web/package.json": '{"scripts": {"lint": "eslint .", "test": "vitest run"}}',
            "web/pnpm-lock.yaml": "",
        },
    )

    assert [(item.name, item.directory, item.command, item.paths[0]) for item in detect(tmp_path)] == [
        ("api/ruff", "api", tuple(RUFF.split()), "api/**/*.py"),
        ("web/eslint", "web", ("pnpm", "run", "lint"), "web/**/*.js"),
        ("api/pytest", "api", ("pytest", "-q", "--no-header", "--junitxml={report}"), "api/**/*.py"),
        ("web/vitest", "web", ("pnpm", "run", "test"), "web/**/*.js"),
    ]


def test_detect_gives_each_validator_a_name_of_its_own(tmp_path: Path) -> None:
    scripts = {"lint": "tsc", "typecheck": "tsc", "test": "jest"}
    write(tmp_path, {"a/package.json": json.dumps({"scripts": scripts})})

    assert [item.name for item in detect(tmp_path)] == ["a/tsc", "a/tsc-types", "a/jest"]


def test_detect_writes_a_folder_as_a_pattern_that_means_it(tmp_path: Path) -> None:
    write(tmp_path, {"[app]*/go.mod": "module app\n"})

    assert [(item.directory, item.paths[0]) for item in detect(tmp_path)] == [("[app]*", r"\[app]\*/**/*.go")] * 2


# --- make and pre-commit: for what nothing more direct covers


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"Makefile": "lint:\n\t@x\ntest: lint\n\t@y\n"}, {"make-lint": "make lint", "make-test": "make test"}),
        ({"Makefile": ".PHONY: lint test\nlint test:\n\t@x\n"}, {"make-lint": "make lint", "make-test": "make test"}),
        ({"GNUmakefile": "check:\n\t@x\n"}, {"make-check": "make check"}),
        ({"Makefile": "check: lint test\nlint:\ntest:\n"}, {"make-lint": "make lint", "make-test": "make test"}),
        ({"Makefile": "check:\ntest:\n"}, {"make-check": "make check", "make-test": "make test"}),
        ({"Makefile": "lint := a\ntest ::= b\nlinter: c\n\ttest: d\n"}, {}),
        ({"Makefile": " " * 200_000 + "\nlint:\n"}, {"make-lint": "make lint"}),
        (
            {"Makefile": "lint:\ntest:\n", "ruff.toml": ""},
            {"ruff": RUFF, "make-test": "make test"},
        ),
        (
            {"Makefile": "lint:\ntest:\n", "a/Makefile": "lint:\n", "a/go.mod": ""},
            {"a/go-vet": "go vet ./...", "a/go-test": "go test ./..."},
        ),
        (
            {"Makefile": "lint:\n", "a/Makefile": "lint:\ntest:\n"},
            {"make-lint": "make lint", "a/make-test": "make test"},
        ),
        ({".pre-commit-config.yaml": "repos: []\n"}, {"pre-commit": "pre-commit run --all-files"}),
        ({"a/.pre-commit-config.yaml": "repos: []\n"}, {}),
        ({".pre-commit-config.yaml": "", "Makefile": "lint:\n"}, {"make-lint": "make lint"}),
        ({".pre-commit-config.yaml": "", "ruff.toml": ""}, {"ruff": RUFF}),
        (
            {".pre-commit-config.yaml": "", "tox.ini": "[testenv:flake8]\n"},
            {"tox-flake8": "tox -e flake8"},
        ),
    ],
)
def test_detect_uses_wrapping_tasks_for_what_nothing_else_covers(
    files: dict[str, str], expected: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path, files)

    assert commands(tmp_path) == expected


def test_detect_names_the_line_of_a_make_target(tmp_path: Path) -> None:
    write(tmp_path, {"sub/Makefile": "all:\n\nlint:\n\t@x\n"})

    (found,) = detect(tmp_path)

    assert (found.place, found.why, found.paths) == (
        Place(source=str(tmp_path / "sub/Makefile"), line=3, column=1),
        'target "lint" in sub/Makefile',
        ("sub/**",),
    )


# --- the look is bounded and harmless


@pytest.mark.parametrize(
    "folder",
    [".git", "node_modules/x", ".venv/lib", "venv/lib", "build", "target", "vendor/x", "tests/fixtures", "examples/x"],
)
def test_detect_skips_folders_that_are_not_the_project(folder: str, tmp_path: Path) -> None:
    write(tmp_path, {f"{folder}/pyproject.toml": "[tool.ruff]\n", f"{folder}/Makefile": "lint:\n"})

    assert detect(tmp_path) == ()


def test_detect_works_in_a_workspace_whose_own_name_is_skipped(tmp_path: Path) -> None:
    write(tmp_path, {"tests/build/ruff.toml": ""})

    assert commands(tmp_path / "tests/build") == {"ruff": RUFF}


def test_detect_looks_three_folders_deep(tmp_path: Path) -> None:
    write(tmp_path, {"a/b/c/ruff.toml": "", "x/y/z/w/ruff.toml": ""})

    assert commands(tmp_path) == {"a/b/c/ruff": RUFF}


def test_detect_bounds_its_look_but_knows_the_root(tmp_path: Path) -> None:
    for number in range(MAX_ENTRIES + 100):
        (tmp_path / f"{number}.txt").touch()
    write(tmp_path, {"ruff.toml": "", "pyproject.toml": "[tool.mypy]\n"})

    assert set(commands(tmp_path)) == {"ruff", "mypy"}


def test_detect_leaves_out_what_is_beyond_the_bound(tmp_path: Path) -> None:
    write(tmp_path, {"ruff.toml": "", "b/go.mod": ""})
    (tmp_path / "a").mkdir()
    for number in range(MAX_ENTRIES):
        (tmp_path / "a" / f"{number}").touch()

    assert set(commands(tmp_path)) == {"ruff"}


def test_detect_follows_no_link_out_of_the_workspace(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside, {"pyproject.toml": "[tool.ruff]\n", "Makefile": "lint:\n", ".venv/bin/mypy": "#!/bin/sh\n"})
    (outside / ".venv/bin/mypy").chmod(0o755)
    root = tmp_path / "root"
    write(root, {"mypy.ini": "[mypy]\n"})
    for name in ("pyproject.toml", "Makefile", ".venv"):
        (root / name).symlink_to(outside / name)
    (root / "project").symlink_to(outside)
    (root / "loop").symlink_to(root)
    (root / "package.json").symlink_to(root / "package.json")

    assert commands(root) == {"mypy": "mypy --no-pretty --show-column-numbers ."}


def test_detect_follows_a_link_within_the_workspace(tmp_path: Path) -> None:
    write(tmp_path, {"configuration/pyproject.toml": "[tool.mypy]\nfiles = ['a']\n"})
    (tmp_path / "pyproject.toml").symlink_to("configuration/pyproject.toml")

    assert set(commands(tmp_path)) == {"mypy", "configuration/mypy"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"{" * 100_000,
        b"[" * 100_000,
        b"[tool\n",
        b"[]",
        b"null",
        b'{"scripts": [], "devDependencies": 1, "jest": }',
        b'{"scripts": {"test": 1, "lint": null, "typecheck": ""}}',
        b"\n" * (MAX_BYTES - 1),
        b"/*" * (MAX_BYTES // 2),
        b'"' * (MAX_BYTES - 1),
        b'"\\' * (MAX_BYTES // 2),
        b"'" + b"a" * (MAX_BYTES - 1),
        b"@session\n" * (MAX_BYTES // 9),
        b"[tool.ruff]\n" + b" " * MAX_BYTES,
    ],
    ids=range(16),
)
@pytest.mark.parametrize("name", ["pyproject.toml", "package.json", "setup.cfg", "Makefile", "setup.py", "noxfile.py"])
@pytest.mark.timeout(10)
def test_detect_skips_broken_files(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    write(tmp_path, {"ruff.toml": ""})

    assert commands(tmp_path) == {"ruff": RUFF}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads all")
def test_detect_skips_what_it_may_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": "[tool.mypy]\n", "closed/go.mod": "", "ruff.toml": ""})
    (tmp_path / "pyproject.toml").chmod(0)
    (tmp_path / "closed").chmod(0)

    found = commands(tmp_path)
    (tmp_path / "closed").chmod(0o700)

    assert found == {"ruff": RUFF}


def test_detect_reads_no_pipe_and_no_folder_as_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    (tmp_path / "package.json").mkdir()
    (tmp_path / "Makefile").symlink_to("/dev/zero")

    assert detect(tmp_path) == ()


def test_detect_runs_nothing_of_the_project(tmp_path: Path) -> None:
    touch = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n"
    write(
        tmp_path,
        {
            **dict.fromkeys(("setup.py", "conftest.py", "noxfile.py", "manage.py", "tests/test_a.py"), touch),
            "Makefile": f"X := $(shell touch {tmp_path / 'ran'})\nlint:\n",
        },
    )

    assert set(commands(tmp_path)) == {"make-lint", "pytest"}
    assert not (tmp_path / "ran").exists()


def test_json_reads_comments_and_trailing_commas(tmp_path: Path) -> None:
    write(tmp_path, {"a.json": '\ufeff{ // one\n "url": "http://x/*y*/,}", /* two\n */ "list": [1, 2,],\n}'})

    folder = Folder(path=tmp_path, root=tmp_path)

    assert folder.json("a.json") == {"url": "http://x/*y*/,}", "list": [1, 2]}
