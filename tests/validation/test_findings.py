"""Findings in outputs that were kept: of real runs where the tool could be had, else as its documentation shows."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_lsp.validation.findings import MOST_FINDINGS, read_findings
from agent_lsp.validation.validator import Finding

OUTPUTS = Path(__file__).parent / "outputs"
FILES = (
    "calc/sum_test.go",
    "jt/broken.test.cjs",
    "jt/sum.cjs",
    "jt/sum.test.cjs",
    "main.c",
    "main.go",
    "pkg/broken.py",
    "pkg/mod.py",
    "src/app.js",
    "src/broken.js",
    "src/lib.rs",
    "src/main.rs",
    "src/main/java/app/Main.java",
    "src/shape.ts",
    "src/test/java/app/MainTest.java",
    "store/store.go",
    "sum_test.go",
    "test_broken.py",
    "test_syntax.py",
    "vt/broken.test.ts",
    "vt/sum.test.ts",
    "vt/sum.ts",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    for file in FILES:
        path = project / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return project


def read(root: Path, name: str, tool: str = "", *, report: bool = False) -> list[tuple[object, ...]]:
    """The findings of a kept output, as place, code, severity and the message's first line."""
    text = (OUTPUTS / name).read_text().replace("{root}", root.as_posix())
    found = read_findings(
        "" if report else text, tool=tool, root=root, directory=root, report=text.encode() if report else None
    )
    return [(f"{x.path}:{x.line}:{x.column}", x.code, x.severity, x.message) for x in found]


ESLINT = [
    ("src/app.js:1:7", "no-unused-vars", "error", "'unused' is assigned a value but never used."),
    ("src/app.js:2:5", "prefer-const", "warning", "'value' is never reassigned. Use 'const' instead."),
    ("src/app.js:2:13", "no-undef", "error", "'missing' is not defined."),
    ("src/broken.js:1:7", "", "error", "Parsing error: Unexpected token ="),
]
TSC = [
    ("src/shape.ts:5:31", "TS2322", "error", "Type 'string' is not assignable to type 'number'."),
    ("src/shape.ts:6:49", "TS2322", "error", "Type 'undefined' is not assignable to type 'string'."),
    (
        "src/shape.ts:7:1",
        "TS2584",
        "error",
        (
            "Cannot find name 'console'. Do you need to change your target library? "
            "Try changing the 'lib' compiler option to include 'dom'."
        ),
    ),
]
RUSTC = [
    ("src/main.rs:3:22", "E0308", "error", "mismatched types"),
    ("src/main.rs:4:20", "E0425", "error", "cannot find value `missing` in this scope"),
]
JEST = "expect(received).toBe(expected) // Object.is equality\nExpected: 3\nReceived: 4"
MYPY = [
    ("pkg/mod.py:5:0", "return-value", "error", 'Incompatible return value type (got "str", expected "int")'),
    ("pkg/mod.py:8:0", "arg-type", "error", 'Argument 2 to "add" has incompatible type "str"; expected "int"'),
    ("pkg/mod.py:9:0", "name-defined", "error", 'Name "missing" is not defined'),
]


@pytest.mark.parametrize(
    ("name", "tool", "expected"),
    [
        ("eslint_json.txt", "eslint", ESLINT),
        ("eslint_unix.txt", "eslint", ESLINT),
        ("eslint_stylish.txt", "eslint", [(*one[:3], str(one[3]).removesuffix(".")) for one in ESLINT]),
        ("checkstyle.txt", "eslint", [ESLINT[2]]),
        ("tsc.txt", "tsc", TSC),
        ("tsc_pretty.txt", "tsc", TSC),
        (
            "vitest.txt",
            "vitest",
            [
                (
                    "vt/broken.test.ts:1:1",
                    "",
                    "error",
                    "Error: Cannot find module './nowhere' imported from {root}/vt/broken.test.ts",
                ),
                ("vt/sum.test.ts:6:23", "", "error", "AssertionError: expected 4 to be 3 // Object.is equality"),
                ("vt/sum.ts:3:11", "", "error", "Error: no negative numbers"),
            ],
        ),
        (
            "jest.txt",
            "jest",
            [
                ("jt/broken.test.cjs:1:0", "", "error", "SyntaxError: Unexpected token '='"),
                ("jt/sum.cjs:3:11", "", "error", "no negative numbers"),
                ("jt/sum.test.cjs:5:23", "", "error", JEST),
            ],
        ),
        ("cargo.txt", "cargo", RUSTC),
        ("cargo_json.txt", "cargo", RUSTC),
        (
            "cargo_short.txt",
            "cargo",
            [
                ("src/main.rs:3:22", "E0308", "error", "mismatched types: expected `u32`, found `&str`"),
                (
                    "src/main.rs:4:20",
                    "E0425",
                    "error",
                    "cannot find value `missing` in this scope: not found in this scope",
                ),
            ],
        ),
        (
            "cargo_test.txt",
            "cargo",
            [
                (
                    "src/lib.rs:11:9",
                    "",
                    "error",
                    "assertion `left == right` failed: sum of one and two\nleft: 4\nright: 3",
                ),
                ("src/lib.rs:17:14", "", "error", "called `Option::unwrap()` on a `None` value"),
            ],
        ),
        (
            "javac.txt",
            "javac",
            [
                (
                    "src/main/java/app/Main.java:5:0",
                    "",
                    "error",
                    "incompatible types: String cannot be converted to int",
                ),
                ("src/main/java/app/Main.java:6:0", "", "error", "cannot find symbol"),
            ],
        ),
        (
            "maven.txt",
            "maven",
            [
                ("src/main/java/app/Main.java:3:8", "", "warning", "[rawtypes] found raw type: List"),
                (
                    "src/main/java/app/Main.java:5:21",
                    "",
                    "error",
                    "incompatible types: java.lang.String cannot be converted to int",
                ),
                ("src/main/java/app/Main.java:6:9", "", "error", "cannot find symbol"),
            ],
        ),
        (
            "surefire.txt",
            "maven",
            [
                (
                    "src/test/java/app/MainTest.java:12:0",
                    "",
                    "error",
                    "org.opentest4j.AssertionFailedError: expected: <3> but was: <4>",
                )
            ],
        ),
        (
            "make.txt",
            "",
            [
                (
                    "main.c:3:13",
                    "-Wint-conversion",
                    "warning",
                    (
                        "initialization of \u2018int\u2019 from \u2018char *\u2019 "
                        "makes integer from pointer without a cast"
                    ),
                ),
                ("main.c:4:12", "", "error", "\u2018missing\u2019 undeclared (first use in this function)"),
            ],
        ),
        (
            "gcc.txt",
            "gcc",
            [
                ("main.c:3:9", "-Wunused-variable", "warning", "unused variable \u2018x\u2019"),
                (
                    "main.c:3:13",
                    "-Wint-conversion",
                    "warning",
                    (
                        "initialization of \u2018int\u2019 from \u2018char *\u2019 "
                        "makes integer from pointer without a cast"
                    ),
                ),
                ("main.c:4:12", "", "error", "\u2018missing\u2019 undeclared (first use in this function)"),
            ],
        ),
        (
            "flake8.txt",
            "flake8",
            [
                ("pkg/broken.py:1:8", "E999", "error", "SyntaxError: invalid syntax"),
                ("pkg/mod.py:1:1", "F401", "error", "'os' imported but unused"),
                ("pkg/mod.py:9:7", "F821", "error", "undefined name 'missing'"),
                ("test_broken.py:1:1", "F401", "error", "'nowhere' imported but unused"),
                ("test_syntax.py:1:8", "E999", "error", "SyntaxError: invalid syntax"),
            ],
        ),
        (
            "go_build.txt",
            "go",
            [
                (
                    "main.go:5:9",
                    "",
                    "error",
                    'cannot use "four" (untyped string constant) as int value in variable declaration',
                ),
                ("store/store.go:10:2", "", "error", "undefined: missing"),
                ("store/store.go:12:3", "", "error", "unreachable code"),
            ],
        ),
        (
            "go_test.txt",
            "go",
            [
                ("calc/sum_test.go:12:0", "", "error", "sum(1, 2) = 4, want 3"),
                ("calc/sum_test.go:20:0", "", "error", "Not equal:"),
            ],
        ),
        ("go_test_json.txt", "go", [("calc/sum_test.go:12:0", "", "error", "sum(1, 2) = 4, want 3")]),
        (
            "go_panic.txt",
            "go",
            [("store/store.go:8:0", "", "error", "panic: runtime error: index out of range [3] with length 0")],
        ),
        (
            "sarif.txt",
            "",
            [("src/app.js:3:5", "R1", "error", "Bad call"), ("src/app.js:4:0", "R2", "warning", "Without a level")],
        ),
        (
            "annotations.txt",
            "",
            [
                ("src/app.js:1:8", "F401", "error", "`os` imported but unused"),
                ("src/app.js:3:5", "", "error", "Bad: 100%"),
                ("src/app.js:4:0", "", "warning", "Careful"),
            ],
        ),
        (
            "formatters.txt",
            "",
            [
                ("main.c:0:0", "", "error", "Is not formatted"),
                ("src/app.js:0:0", "", "error", "Is not formatted"),
                ("src/main.rs:3:0", "", "error", "Is not formatted"),
                ("src/shape.ts:0:0", "", "error", "Is not formatted"),
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith(".txt") else "",
)
def test_findings_of_tool(root: Path, name: str, tool: str, expected: list[tuple[str, ...]]) -> None:
    assert read(root, name, tool) == [
        tuple(part.replace("{root}", root.as_posix()) for part in one) for one in expected
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "vitest_junit.xml",
            [
                (
                    "vt/broken.test.ts:1:1",
                    "",
                    "error",
                    "Cannot find module './nowhere' imported from {root}/vt/broken.test.ts",
                ),
                ("vt/sum.test.ts:6:23", "", "error", "expected 4 to be 3 // Object.is equality"),
                ("vt/sum.ts:3:11", "", "error", "no negative numbers"),
            ],
        ),
        (
            "jest_junit.xml",
            [
                ("jt/sum.cjs:3:11", "", "error", "Error: no negative numbers"),
                ("jt/sum.test.cjs:5:23", "", "error", f"Error: {JEST}"),
            ],
        ),
        ("mypy_junit.xml", MYPY),
    ],
)
def test_findings_of_junit_report_and_of_the_same_in_the_output(
    root: Path, name: str, expected: list[tuple[str, ...]]
) -> None:
    wanted = [tuple(part.replace("{root}", root.as_posix()) for part in one) for one in expected]

    assert (read(root, name, report=True), read(root, name)) == (wanted, wanted)


def test_pyright_says_the_same_in_text_and_json(root: Path) -> None:
    text, structured = read(root, "pyright.txt", "pyright"), read(root, "pyright_json.txt", "pyright")

    assert [[re.sub(r"\s+", " ", str(part)) for part in one] for one in text] == [
        [re.sub(r"\s+", " ", str(part)) for part in one] for one in structured
    ]
    message = (
        'Type "Literal[\'a\']" is not assignable to return type "int"\n"Literal[\'a\']" is not assignable to "int"'
    )
    assert (text[7], text[9], len(text)) == (
        ("pkg/mod.py:5:12", "reportReturnType", "error", message),
        ("pkg/mod.py:9:7", "reportUndefinedVariable", "error", '"missing" is not defined'),
        18,
    )


def test_path_outside_or_missing_is_no_finding(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").touch()
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    output = f"../outside.py:1: a\n{tmp_path}/outside.py:1: a\nlink.py:1: a\nnowhere.py:1: a\nsrc:1: a\njust text\n"

    assert read_findings(output, tool="", root=root, directory=root) == ()


def test_paths_are_relative_to_where_the_tool_ran(root: Path) -> None:
    output = "app.js:2:1: error: b\nmake[1]: Entering directory '../jt'\nsum.cjs:1: error: a\n"

    assert read_findings(output, tool="t", root=root, directory=root / "src") == (
        Finding(path="jt/sum.cjs", line=1, message="a", tool="t"),
        Finding(path="src/app.js", line=2, column=1, message="b", tool="t"),
    )


def test_findings_are_bounded_and_once(root: Path) -> None:
    output = "".join(f"main.c:{line}: error: x\n" * 2 for line in range(1, 3 * MOST_FINDINGS))
    found = read_findings(output, tool="gcc", root=root, directory=root)

    assert [one.line for one in found] == list(range(1, MOST_FINDINGS + 1))


@pytest.mark.parametrize(
    "report",
    [
        b'<!DOCTYPE testsuite [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><testsuite>&b;</testsuite>',
        b"<?xml version='1.0'?><!-- <a> --><!DOCTYPE t SYSTEM 'file:///etc/passwd'><testsuite/>",
        b"<testsuite><testcase>",
        b"",
        b"\xff\xfe\x00",
    ],
)
def test_refused_or_broken_report_falls_back_to_the_output(root: Path, report: bytes) -> None:
    found = read_findings("main.c:1: error: x", tool="", root=root, directory=root, report=report)

    assert found == (Finding(path="main.c", line=1, message="x"),)


@pytest.mark.parametrize("broken", ['[{"a": ', '{"file": "main.c", "line": true', "[" * 100_000, "<testsuite>", "[{}]"])
def test_broken_document_does_not_hide_the_text(root: Path, broken: str) -> None:
    found = read_findings(f"{broken}\nmain.c:1: error: x", tool="", root=root, directory=root)

    assert found == (Finding(path="main.c", line=1, message="x"),)


PIECES = [
    *("main.c", ":", "1", "(", ")", "[", "]", "{", "}", '"', ",", "\n", " ", "error", "::error file=", "--> ", " - "),
    *("=== FAILURES ===\n", "___ t ___\n", "E   ", "Traceback (most recent call last):\n", '  File "main.c", line 1'),
    *("FAIL  main.c\n", "  ● ", " at ", "thread 'a' panicked at ", "panic: ", "\tmain.c:1 +0x1", "ok  \ta/b\t1s\n"),
    *("<testsuite>", "<testcase>", "<failure>", "</failure></testcase></testsuite>", '"runs":', '"message":', "\ud800"),
]


@given(
    text=st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=40).map("".join)),
    tool=st.sampled_from(["", "mypy", "pytest", "ruff"]),
    reported=st.booleans(),
)
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_gives_findings_of_files_that_are_there(root: Path, text: str, tool: str, reported: bool) -> None:
    report = text.encode("utf-8", "surrogatepass") if reported else None
    found = read_findings(text, tool=tool, root=root, directory=root, report=report)

    assert {one.path for one in found} <= set(FILES)
    assert all(one.message for one in found)


KEYS = [
    "file",
    "line",
    "column",
    "message",
    "location",
    "range",
    "start",
    "runs",
    "results",
    "locations",
    "physicalLocation",
    "region",
    "tool",
    "spans",
    "messages",
    "filePath",
    "generalDiagnostics",
    "reason",
    "code",
    "testResults",
    "assertionResults",
    "is_primary",
    "Action",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["main.c", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(document=JSON)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_gives_findings_of_files_that_are_there(root: Path, document: object) -> None:
    found = read_findings(json.dumps(document), tool="", root=root, directory=root)

    assert {one.path for one in found} <= {"main.c"}


@pytest.mark.parametrize(
    "line",
    [
        *(" " * 4000 + "x", "at " + " " * 4000 + "x", "at " + ":1:1 " * 800, "main.c:1: error: " + "[-Wa," * 790),
        *("main.c:1: [" + "a-" * 1900, "(1,1" * 1000, "thread " + " panicked at " * 300, "FAILED " + " - " * 1300),
        *("=== " * 990 + "x", "::error " + " " * 3900, '{"a": 1', '[{"a":' * 600, "<testsuite", "", "E" + " " * 3900),
    ],
)
def test_hostile_output_takes_little_time(root: Path, line: str) -> None:
    started = time.process_time()
    read_findings(f"{line}\n" * (1024 * 1024 // (len(line) + 1)), tool="", root=root, directory=root)

    assert time.process_time() - started < 20  # seconds; the quadratic would take many minutes
