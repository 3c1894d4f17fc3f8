"""Python: what is detected by which file, and how the project's own tools are started."""

import os
import sys
from pathlib import Path

import pytest

from agent_lsp.processes import Program, run_program
from agent_lsp.validation.detect import detect
from agent_lsp.validation.validator import REPORT
from tests.validation.test_detect import commands, write

RUFF = "ruff check --output-format concise ."
MYPY = "mypy --no-pretty --show-column-numbers"
FLAKE8 = "flake8 --extend-exclude .venv,venv,node_modules,build,dist ."
PYTEST = "-q --no-header --junitxml={report}"


@pytest.mark.parametrize(
    ("files", "name", "command", "why", "line"),
    [
        ({"pyproject.toml": "[tool.ruff.lint]\n"}, "ruff", RUFF, "[tool.ruff] in pyproject.toml", 1),
        ({".ruff.toml": ""}, "ruff", RUFF, ".ruff.toml", 0),
        (
            {"pyproject.toml": '[dependency-groups]\nlint = [\n  "Ruff>=0.15",\n]\n'},
            "ruff",
            RUFF,
            "ruff in dependency group lint in pyproject.toml",
            3,
        ),
        (
            {"pyproject.toml": '[project.optional-dependencies]\ndev = ["mypy"]\n'},
            "mypy",
            f"{MYPY} .",
            "mypy in extra dev in pyproject.toml",
            2,
        ),
        (
            {"pyproject.toml": '[tool.poetry.group.dev.dependencies]\nflake8 = "^7"\n'},
            "flake8",
            FLAKE8,
            "flake8 in development dependencies in pyproject.toml",
            2,
        ),
        (
            {"pyproject.toml": '[tool.pdm.dev-dependencies]\nx = ["ruff"]\n'},
            "ruff",
            RUFF,
            "ruff in dev-dependencies in pyproject.toml",
            2,
        ),
        (
            {"pyproject.toml": '[tool.hatch.envs.default]\ndependencies = ["ruff"]\n'},
            "ruff",
            f"hatch run {RUFF}",
            "ruff in hatch environment default in pyproject.toml",
            2,
        ),
        (
            {"pyproject.toml": '[tool.ruff]\n[tool.hatch.envs.style]\nextra-dependencies = ["ruff~=0.1"]\n'},
            "ruff",
            f"hatch run style:{RUFF}",
            "[tool.ruff] in pyproject.toml",
            1,
        ),
        ({"requirements-dev.txt": "# ruff\n-r x.txt\nruff==1\n"}, "ruff", RUFF, "ruff in requirements-dev.txt", 3),
        ({"requirements/dev.in": "ruff\n"}, "ruff", RUFF, "ruff in requirements/dev.in", 1),
        ({"Pipfile": '[dev-packages]\nruff = "*"\n'}, "ruff", RUFF, "ruff in [dev-packages] in Pipfile", 2),
        (
            {"setup.cfg": "[options.extras_require]\ndev =\n  coverage\n  flake8>1\n"},
            "flake8",
            FLAKE8,
            "flake8 in setup.cfg",
            4,
        ),
        (
            {"setup.py": 'setup(\n  extras_require={"dev": ["flake8 >= 1"]})\n'},
            "flake8",
            FLAKE8,
            "flake8 in setup.py",
            2,
        ),
        ({".flake8": "[flake8]\n"}, "flake8", FLAKE8, ".flake8", 0),
        ({"tox.ini": "[tox]\n[flake8]\nextend-exclude = x\n"}, "flake8", "flake8 .", "[flake8] in tox.ini", 2),
        ({"setup.cfg": "[mypy]\npackages = a\n"}, "mypy", MYPY, "[mypy] in setup.cfg", 1),
        ({"mypy.ini": "[mypy]\n", "src/a.py": ""}, "mypy", f"{MYPY} src", "mypy.ini", 0),
        ({"pyproject.toml": "[tool.mypy]\nfiles = ['a']\n"}, "mypy", MYPY, "[tool.mypy] in pyproject.toml", 1),
        ({"pyrightconfig.json": "{}"}, "pyright", "pyright", "pyrightconfig.json", 0),
        (
            {"pyproject.toml": "[tool.basedpyright]\n"},
            "pyright",
            "basedpyright",
            "[tool.basedpyright] in pyproject.toml",
            1,
        ),
        (
            {"pyproject.toml": "\n[tool.pytest.ini_options]\nx = 1\n"},
            "pytest",
            f"pytest {PYTEST}",
            "[tool.pytest.ini_options] in pyproject.toml",
            2,
        ),
        ({"pytest.ini": ""}, "pytest", f"pytest {PYTEST}", "pytest.ini", 0),
        ({"tox.ini": "[pytest]\n"}, "pytest", f"pytest {PYTEST}", "[pytest] in tox.ini", 1),
        ({"setup.cfg": "[tool:pytest]\n"}, "pytest", f"pytest {PYTEST}", "[tool:pytest] in setup.cfg", 1),
        ({"tests/conftest.py": ""}, "pytest", f"pytest {PYTEST}", "tests/conftest.py", 0),
        (
            {"requirements.txt": "pytest\n", "src/a/tests/test_a.py": ""},
            "pytest",
            f"pytest {PYTEST}",
            "pytest in requirements.txt",
            1,
        ),
        ({"tests/a/test_a.py": "def test_a(): ...\n"}, "pytest", f"pytest {PYTEST}", "tests/a/test_a.py", 0),
        ({"test_a.py": "\nimport pytest\n"}, "pytest", f"pytest {PYTEST}", "test_a.py imports pytest", 2),
        (
            {"test_a.py": "import unittest\n"},
            "unittest",
            "python3 -m unittest discover",
            "test_a.py imports unittest",
            1,
        ),
        (
            {"tests/test_a.py": "from unittest import TestCase\n"},
            "unittest",
            "python3 -m unittest discover -s tests",
            "tests/test_a.py imports unittest",
            1,
        ),
        (
            {"test/__init__.py": "", "test/a/test_a.py": "import unittest\n"},
            "unittest",
            "python3 -m unittest discover -s test -t .",
            "test/a/test_a.py imports unittest",
            1,
        ),
        (
            {"manage.py": "import django\n", "app/tests.py": "from django.test import TestCase\n"},
            "unittest",
            "python3 manage.py test --noinput",
            "tests and manage.py",
            0,
        ),
        ({"tox.ini": "[testenv:lint]\n"}, "tox-lint", "tox -e lint", "[testenv:lint] in tox.ini", 1),
        ({"tox.toml": "[env.type]\n"}, "tox-type", "tox -e type", "[env.type] in tox.toml", 1),
        (
            {"noxfile.py": "import nox\n\n@nox.session(python=[1])\n@x\ndef lint(session): ...\n"},
            "nox-lint",
            "nox -s lint",
            'session "lint" in noxfile.py',
            5,
        ),
    ],
)
def test_detect_knows_python_by(
    files: dict[str, str], name: str, command: str, why: str, line: int, tmp_path: Path
) -> None:
    write(tmp_path, files)

    found = [(item.name, " ".join(item.command), item.why, item.place.line) for item in detect(tmp_path)]

    assert found == [(name, command, why, line)]


@pytest.mark.parametrize(
    "files",
    [
        {"requirements.txt": "pytest\n"},
        {"pyproject.toml": '[project]\nname = "ruff"\ndependencies = ["ruff-lsp", "mypy-extensions", "pytest-cov"]\n'},
        {"pyproject.toml": "# [tool.ruff]\n"},
        {"tox.ini": "[testenv]\ncommands = pytest\n[testenv:docs]\n"},
        {"noxfile.py": "def lint(session): ...\n"},
        {"app/test_a.py": "import unittest\n"},
        {"test/data.txt": ""},
    ],
)
def test_detect_does_not_guess(files: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path, files)

    assert detect(tmp_path) == ()


@pytest.mark.parametrize(
    ("files", "ruff", "pytest_"),
    [
        ({}, RUFF, "pytest"),
        ({".venv/bin/ruff": "", ".venv/bin/pytest": ""}, f".venv/bin/{RUFF}", ".venv/bin/pytest"),
        (
            {"venv/bin/ruff": "", "venv/bin/pytest": "", "venv/bin/python": ""},
            f"venv/bin/{RUFF}",
            "venv/bin/python -m pytest",
        ),
        ({".venv/bin/python": ""}, RUFF, "pytest"),
        ({".venv/bin/python": "", "uv.lock": ""}, f"uv run {RUFF}", "uv run python -m pytest"),
        ({".venv/bin/ruff": "", "uv.lock": ""}, f".venv/bin/{RUFF}", "uv run python -m pytest"),
        ({"poetry.lock": ""}, f"poetry run {RUFF}", "poetry run python -m pytest"),
        ({"pdm.lock": ""}, f"pdm run {RUFF}", "pdm run python -m pytest"),
        ({"Pipfile.lock": ""}, f"pipenv run {RUFF}", "pipenv run python -m pytest"),
    ],
)
@pytest.mark.requirement("F42")
def test_detect_starts_tools_as_the_project_does(
    files: dict[str, str], ruff: str, pytest_: str, tmp_path: Path
) -> None:
    write(tmp_path, {"pyproject.toml": "[tool.ruff]\n[tool.pytest.ini_options]\n", **files})

    assert commands(tmp_path) == {"ruff": ruff, "pytest": f"{pytest_} {PYTEST}"}


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ('[dependency-groups]\nlint = ["ruff"]\n', f"uv run --group lint {RUFF}"),
        ('[dependency-groups]\ndev = ["ruff"]\n', f"uv run {RUFF}"),
        ('[project.optional-dependencies]\nqa = ["ruff"]\n', f"uv run --extra qa {RUFF}"),
        ('[dependency-groups]\n"--x" = ["ruff"]\n', f"uv run {RUFF}"),
        ('[tool.ruff]\n[dependency-groups]\nlint = ["ruff"]\n', f"uv run --group lint {RUFF}"),
    ],
)
def test_detect_names_the_group_that_uv_has_to_install(section: str, expected: str, tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": section, "uv.lock": ""})

    assert commands(tmp_path) == {"ruff": expected}


def test_detect_leaves_out_a_tool_that_cannot_be_executed(tmp_path: Path) -> None:
    write(tmp_path, {"ruff.toml": "", ".venv/bin/ruff": ""})
    (tmp_path / ".venv/bin/ruff").chmod(0o644)

    assert commands(tmp_path) == {"ruff": RUFF}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"pyproject.toml": "[tool.ruff]\n", "a/pyproject.toml": "[tool.ruff]\n"},
            {"ruff": RUFF},
        ),
        (
            {"mypy.ini": "", "a/mypy.ini": "", "b/requirements.txt": "mypy\n"},
            {"mypy": f"{MYPY} .", "a/mypy": f"{MYPY} ."},
        ),
        (
            {"pytest.ini": "", "a/pytest.ini": "", "b/setup.py": "", "b/tests/test_b.py": ""},
            {"pytest": f"pytest {PYTEST}", "a/pytest": f"pytest {PYTEST}"},
        ),
        (
            {"a/setup.py": "", "a/tests/test_a.py": "", "b/setup.py": "", "b/test_b.py": "import unittest\n"},
            {"a/pytest": f"pytest {PYTEST}", "b/unittest": "python3 -m unittest discover"},
        ),
        (
            {".venv/bin/mypy": "", "a/mypy.ini": "", "a/b/c/mypy.ini": "", "a/b/c/venv/bin/mypy": ""},
            {"a/mypy": f"../.venv/bin/{MYPY} .", "a/b/c/mypy": f"venv/bin/{MYPY} ."},
        ),
        (
            {"uv.lock": "", "a/mypy.ini": "", "tests/test_a.py": "import unittest\n"},
            {"a/mypy": f"uv run {MYPY} .", "unittest": "uv run python -m unittest discover -s tests"},
        ),
        (
            {"tox.ini": "[testenv:lint]\n[testenv:flake8]\n[testenv:test]\n", "pytest.ini": ""},
            {"tox-lint": "tox -e lint", "pytest": f"pytest {PYTEST}"},
        ),
    ],
)
def test_detect_finds_projects_below_the_root(files: dict[str, str], expected: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path, files)

    assert commands(tmp_path) == expected


# --- the real tools


@pytest.mark.requirement("F42")
async def test_detected_ruff_and_pytest_run(tmp_path: Path, environment: dict[str, str]) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("ruff", "pytest"):
        (programs / name).symlink_to(Path(sys.executable).parent / name)
    environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"
    root = tmp_path / "root"
    write(
        root,
        {
            "api/pyproject.toml": "[tool.ruff]\n[tool.pytest.ini_options]\n",
            "api/sums.py": "import os\n\n\ndef add(a: int, b: int) -> int:\n    return a - b\n",
            "api/tests/conftest.py": "",
            "api/tests/test_sums.py": "import sums\n\n\ndef test_add() -> None:\n    assert sums.add(1, 1) == 2\n",
        },
    )
    (root / "api/.venv").symlink_to(Path(sys.executable).parent.parent)  # leads out: not the project's
    write(root, {"api/pytest.ini": "[pytest]\npythonpath = .\n"})
    report = tmp_path / "report.xml"

    results = {}
    for found in detect(root):
        command = tuple(word.replace(REPORT, str(report)) for word in found.command)
        cwd = root / found.directory
        ran = await run_program(
            Program(command=command, cwd=cwd, environment=environment, timeout=found.timeout, merge_stderr=True)
        )
        results[found.name] = (ran.exit_code, ran.stdout.text())

    assert [(name, code) for name, (code, _) in results.items()] == [("api/ruff", 1), ("api/pytest", 1)]
    assert results["api/ruff"][1].startswith("sums.py:1:8: F401 [*] `os` imported but unused\n")
    assert "FAILED tests/test_sums.py::test_add" in results["api/pytest"][1]
    assert 'failures="1"' in report.read_text()


async def test_detected_interpreter_of_the_project_runs_its_tests(tmp_path: Path, environment: dict[str, str]) -> None:
    write(tmp_path, {"sub/tests/test_a.py": "import unittest\n", "sub/setup.py": ""})
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)

    (found,) = detect(tmp_path)
    assert isinstance(found.command, tuple)
    ran = await run_program(
        Program(command=found.command, cwd=tmp_path / found.directory, environment=environment, timeout=60)
    )

    assert found.command == ("../.venv/bin/python", "-m", "unittest", "discover", "-s", "tests")
    assert "Ran 0 tests" in ran.stderr.text()
