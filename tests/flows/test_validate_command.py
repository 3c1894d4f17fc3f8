"""``agent-lsp validate`` on small real projects with their real tools, found by themselves."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.flows.test_command_line import COMMAND, environment
from tests.support.openai_server import OpenAIServer

TOOLS = Path(sys.executable).parent
PYPROJECT = """\
[tool.ruff.lint]
select = ["F"]
[tool.mypy]
strict = true
files = ["pkg.py"]
[tool.pytest.ini_options]
testpaths = ["tests"]
"""
PYTHON = {
    "pyproject.toml": PYPROJECT,
    "pkg.py": "import os\n\n\ndef double(number: int) -> int:\n    return str(number)\n",
    "tests/test_pkg.py": "from pkg import double\n\n\ndef test_double() -> None:\n    assert double(2) == 4\n",
    "conftest.py": "",
}
FIXED = "def double(number: int) -> int:\n    return number * 2\n"
JAVASCRIPT = {
    "package.json": json.dumps({"private": True, "scripts": {"lint": "eslint .", "test": "vitest"}, "type": "module"}),
    "eslint.config.js": "export default [{ rules: { 'no-unused-vars': 'error' } }];\n",
    "double.js": "const unused = 1;\nexport const double = (number) => number + 2;\n",
    "double.test.js": (
        "import { expect, test } from 'vitest';\nimport { double } from './double.js';\n\n"
        "test('double', () => {\n  expect(double(3)).toBe(6);\n});\n"
    ),
}


def build(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def validate(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = environment(tmp_path) | {"PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        [*COMMAND, "validate", *arguments],
        cwd=tmp_path / "work",
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def found(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Each validator's status, and each finding's place."""
    body = json.loads(done.stdout)
    findings = {(finding["tool"], finding["path"], finding["line"]) for finding in body["report"]["findings"]}
    return {"statuses": {each["name"]: each["status"] for each in body["validators"]}, "findings": findings}


@pytest.mark.requirement("S1-validate", "F42", "S2-validation")
def test_python_project_is_validated_by_the_tools_that_it_configures(tmp_path: Path) -> None:
    build(tmp_path / "work", PYTHON)

    red = validate(tmp_path, "--json", "--trust")
    (tmp_path / "work" / "pkg.py").write_text(FIXED)
    green = validate(tmp_path, "--trust")

    assert found(red) == {
        "statuses": {"ruff": "red", "mypy": "red", "pytest": "red"},
        "findings": {("ruff", "pkg.py", 1), ("mypy", "pkg.py", 5), ("pytest", "tests/test_pkg.py", 5)},
    }
    assert (red.returncode, green.returncode) == (1, 0)
    assert [line.split()[:2] for line in green.stdout.splitlines()] == [
        ["green", "ruff"],
        ["green", "mypy"],
        ["green", "pytest"],
    ]


@pytest.mark.requirement("S1-validate", "B42", "F70")
def test_validators_do_not_run_untrusted(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    build(tmp_path / "work", PYTHON | {"conftest.py": f"open({str(marker)!r}, 'w')\n"})

    refused = validate(tmp_path)

    assert not marker.exists()
    assert refused.returncode == 1
    assert [line.split()[:2] for line in refused.stdout.splitlines() if line.startswith("refused")] == [
        ["refused", "ruff"],
        ["refused", "mypy"],
        ["refused", "pytest"],
    ]


@pytest.mark.requirement("S1-validate")
def test_project_without_validators_says_so(tmp_path: Path) -> None:
    build(tmp_path / "work", {"notes.txt": "nothing to run"})

    done = validate(tmp_path)

    assert (done.returncode, done.stdout) == (0, "There is no validator: none is configured, and none was found.\n")


@pytest.mark.requirement("S2-validation", "F42")
def test_make_targets_are_validators_where_nothing_more_direct_is_there(tmp_path: Path) -> None:
    makefile = "lint:\n\t@echo main.x:3:1: bad name; exit 1\ntest:\n\t@echo fine\ndeploy:\n\ttouch deployed\n"
    build(tmp_path / "work", {"Makefile": makefile, "main.x": "a\nb\nc\n"})

    done = validate(tmp_path, "--json", "--trust")

    statuses = json.loads(done.stdout)["validators"]
    assert sorted(each["status"] for each in statuses) == ["green", "red"]
    assert [(f["path"], f["line"]) for f in json.loads(done.stdout)["report"]["findings"]] == [("main.x", 3)]
    assert not (tmp_path / "work" / "deployed").exists()


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """eslint and vitest from npm, once for all tests."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm on this machine (2026-11-30)")
    folder = tmp_path_factory.mktemp("npm")
    (folder / "package.json").write_text('{"private": true}')
    quiet = ("--no-audit", "--no-fund", "--silent")
    subprocess.run([npm, "install", *quiet, "eslint@9", "vitest@2"], cwd=folder, check=True, timeout=110)
    return folder / "node_modules"


@pytest.mark.requirement("S2-validation", "F40", "F42")
def test_two_languages_in_one_repository_are_validated_each_in_its_folder(tmp_path: Path, node_modules: Path) -> None:
    build(tmp_path / "work" / "web", JAVASCRIPT)
    build(tmp_path / "work" / "api", PYTHON)
    (tmp_path / "work" / "web" / "node_modules").symlink_to(node_modules)

    done = validate(tmp_path, "--json", "--trust")

    result = found(done)
    assert set(result["statuses"].values()) == {"red"}
    assert len(result["statuses"]) == 5
    assert {(path, line) for _tool, path, line in result["findings"]} == {
        ("api/pkg.py", 1),
        ("api/pkg.py", 5),
        ("api/tests/test_pkg.py", 5),
        ("web/double.js", 1),
        ("web/double.test.js", 5),
    }


@pytest.mark.requirement("S1-run", "S1-validate")
@pytest.mark.parametrize("skip", [False, True])
def test_run_validates_at_the_end_unless_told_not_to(tmp_path: Path, server: OpenAIServer, skip: bool) -> None:
    check = {"name": "check", "command": "grep -q good note.txt || { echo note.txt:1: not good; exit 1; }"}
    build(tmp_path / "work", {".agent-lsp/settings.json": json.dumps({"validation": {"validators": [check]}})})
    server.reply_tool_calls(("call_1", "write_file", '{"path": "note.txt", "content": "bad\\n"}'))
    server.reply_text("written")
    if not skip:
        server.reply_text("I cannot do better")

    done = subprocess.run(
        [*COMMAND, "run", "--trust", "--mode", "accept_edits", "--prompt", "x", *(["--no-validate"] if skip else [])],
        cwd=tmp_path / "work",
        env=environment(tmp_path, server),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    if skip:
        assert (done.returncode, done.stdout) == (0, "written\n")
    else:
        assert (done.returncode, done.stdout) == (1, "I cannot do better\n\nStill failing: check\n")
        unknown = (
            "what failed before the changes is not known (there is no git repository), so all of it goes to the model"
        )
        shown = [line for line in done.stderr.splitlines() if line.startswith("[Validation]")]
        assert [re.sub(r"\(\d+\.\d s\)", "", line).rstrip() for line in shown] == [
            "[Validation] 1: check",
            "[Validation] check: red",
            f"[Validation] red: check; {unknown}",
            "[Validation] 2: check",
            "[Validation] check: red",
            f"[Validation] red: check; {unknown}",
        ]
    server.assert_consumed()
