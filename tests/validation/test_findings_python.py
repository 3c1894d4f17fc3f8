"""Findings in what ruff, mypy, pytest and unittest really print about small broken projects."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent_lsp.validation.findings import read_findings
from agent_lsp.validation.validator import Finding

MODULE = 'import os\n\n\ndef add(a: int, b: int) -> int:\n    return "a"\n\n\nadd(1, "b")\nprint(missing)\n'
SIMPLE = "Simple statements must be separated by newlines or semicolons"
TESTS = """\
import json
import unittest
import warnings

import pytest


def check(value):
    assert value == 1, "value is wrong"


@pytest.fixture
def database():
    raise RuntimeError("no database")


def test_helper():
    check(2)


def test_compares():
    assert {"a": 1} == {"a": 2}


def test_fixture(database):
    pass


def test_library():
    json.loads("{")


def test_prints():
    warnings.warn("test_mod.py:1: careful")
    print("test_mod.py:3: error: something printed")
    assert False


class TestClass(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(1, 2, "numbers differ")
"""


def run(directory: Path, *arguments: str) -> str:
    """stdout and stderr of a module of this interpreter."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        env={"PATH": "", "NO_COLOR": "1", "CI": "1", "TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    return done.stdout.decode(errors="replace")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/mod.py").write_text(MODULE)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


@pytest.mark.parametrize("tool", ["ruff", ""])
@pytest.mark.parametrize(
    "form", ["concise", "full", "json", "json-lines", "grouped", "github", "sarif", "gitlab", "rdjson", "junit"]
)
def test_ruff_in_each_form(project: Path, form: str, tool: str) -> None:
    (project / "pkg/broken.py").write_text("a b\n")
    output = run(project, "ruff", "check", "--no-cache", "--isolated", "--output-format", form, ".")
    found = read_findings(output, tool=tool, root=project, directory=project)

    assert [(one.path, one.line, one.column, one.code, one.message, one.severity) for one in found] == [
        ("pkg/broken.py", 1, 3, "invalid-syntax", SIMPLE, "error"),
        ("pkg/mod.py", 1, 8, "F401", "`os` imported but unused", "error"),
        ("pkg/mod.py", 9, 7, "F821", "Undefined name `missing`", "error"),
    ]
    assert not tool or {one.tool for one in found} == {"ruff"}


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ((), (0, 0, 0)),
        (("--show-column-numbers",), (12, 8, 7)),
        (("--show-error-end",), (12, 8, 7)),
        (("--output", "json"), (12, 8, 7)),
        (("--pretty",), (0, 0, 0)),
    ],
)
def test_mypy_in_each_form(project: Path, options: tuple[str, ...], columns: tuple[int, ...]) -> None:
    (project / "pkg/mod.py").write_text(MODULE + "reveal_type(add)\n")
    output = run(project, "mypy", "--no-incremental", "--cache-dir", "cache", *options, "pkg/mod.py")

    assert read_findings(output, tool="mypy", root=project, directory=project) == tuple(
        Finding(path="pkg/mod.py", line=line, column=column, message=message, code=code, tool="mypy")
        for column, (line, code, message) in zip(
            columns,
            [
                (5, "return-value", 'Incompatible return value type (got "str", expected "int")'),
                (8, "arg-type", 'Argument 2 to "add" has incompatible type "str"; expected "int"'),
                (9, "name-defined", 'Name "missing" is not defined'),
            ],
            strict=True,
        )
    )


def failed(line: int, message: str, path: str = "test_mod.py") -> Finding:
    return Finding(path=path, line=line, message=message, tool="pytest")


EXPECTING = "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
LONG = (
    failed(1, "ModuleNotFoundError: No module named 'nowhere'", "test_broken.py"),
    failed(9, "AssertionError: value is wrong\nassert 2 == 1"),
    failed(14, "RuntimeError: no database"),
    failed(22, "AssertionError: assert {'a': 1} == {'a': 2}"),
    failed(30, EXPECTING),
    failed(36, "assert False"),
    failed(41, "AssertionError: 1 != 2 : numbers differ"),
    failed(1, "SyntaxError: invalid syntax", "test_syntax.py"),
)
NATIVE = (
    *LONG[:1],
    failed(9, "AssertionError: value is wrong"),
    *LONG[2:5],
    failed(36, "AssertionError: assert False"),
    *LONG[6:],
)
NONE = (
    failed(0, "Collection failed", "test_broken.py"),
    failed(0, "AssertionError: 1 != 2 : numbers differ"),
    failed(0, "AssertionError: assert {'a': 1} == {'a': 2}"),
    failed(0, "AssertionError: value is wrong"),
    failed(0, "RuntimeError: no database"),
    failed(0, "assert False"),
    failed(0, EXPECTING),
    failed(0, "Collection failed", "test_syntax.py"),
)


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    """A project in a sub-folder of the workspace, with a copy of a library in it."""
    directory = tmp_path / "backend"
    directory.mkdir()
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "test_mod.py").write_text(TESTS)
    (directory / "test_broken.py").write_text("import nowhere\n")
    (directory / "test_syntax.py").write_text("def f(:\n    pass\n")
    return directory


PYTEST = ("pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors")


@pytest.mark.parametrize("quiet", [(), ("-q",), ("-v",)])
@pytest.mark.parametrize(
    ("style", "expected"), [("auto", LONG), ("long", LONG), ("short", LONG), ("native", NATIVE), ("no", NONE)]
)
def test_pytest_in_each_style(tests: Path, style: str, expected: tuple[Finding, ...], quiet: tuple[str, ...]) -> None:
    output = run(tests, *PYTEST, "--tb", style, *quiet)

    assert read_findings(output, tool="pytest", root=tests, directory=tests) == expected


def test_pytest_report_is_believed_before_the_output(tests: Path) -> None:
    output = run(tests, *PYTEST, "--junit-xml", "report.xml")
    found = read_findings(
        output, tool="pytest", root=tests.parent, directory=tests, report=(tests / "report.xml").read_bytes()
    )

    assert found == tuple(
        Finding(path=f"backend/{one.path}", line=one.line, message=one.message, tool="pytest") for one in LONG
    )


def test_pytest_one_line_a_failure(tests: Path) -> None:
    found = read_findings(run(tests, *PYTEST, "--tb", "line"), tool="pytest", root=tests, directory=tests)

    assert {failed(9, "AssertionError: value is wrong"), LONG[0], LONG[3], LONG[7]} <= set(found)
    assert len(found) == len(LONG)


def test_pytest_broken_conftest(tests: Path) -> None:
    (tests / "conftest.py").write_text("import nowhere\n")

    assert read_findings(run(tests, *PYTEST), tool="pytest", root=tests, directory=tests) == (
        failed(1, "ModuleNotFoundError: No module named 'nowhere'", "conftest.py"),
    )


def test_pytest_frame_of_installed_library_is_not_the_place(tmp_path: Path) -> None:
    library = tmp_path / ".venv/lib/python3.11/site-packages"
    library.mkdir(parents=True)
    (library / "installed.py").write_text("def fail():\n    raise ValueError('deep')\n")
    (tmp_path / "test_a.py").write_text(
        f"import sys\nsys.path.append({str(library)!r})\nimport installed\n\n\ndef test_a():\n    installed.fail()\n"
    )
    output = run(tmp_path, "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", ".", "test_a.py")

    assert read_findings(output, tool="pytest", root=tmp_path, directory=tmp_path) == (
        failed(7, "ValueError: deep", "test_a.py"),
    )


def test_unittest_traceback(tests: Path) -> None:
    (tests / "test_chain.py").write_text(
        "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_chain(self):\n        try:\n"
        "            1 / 0\n        except ZeroDivisionError:\n            raise ValueError('second')\n"
    )
    output = run(tests, "unittest", "test_mod", "test_broken", "test_chain")

    assert read_findings(output, tool="unittest", root=tests, directory=tests) == (
        Finding(
            path="test_broken.py", line=1, message="ModuleNotFoundError: No module named 'nowhere'", tool="unittest"
        ),
        Finding(path="test_chain.py", line=9, message="ValueError: second", tool="unittest"),
        Finding(path="test_mod.py", line=41, message="AssertionError: 1 != 2 : numbers differ", tool="unittest"),
    )
