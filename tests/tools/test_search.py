"""Searching finds what ripgrep finds, says what it left out, and works slowly without ripgrep."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agent_lsp.errors import ToolError
from agent_lsp.messages import JsonValue, ToolResult
from agent_lsp.tools.base import ToolContext
from agent_lsp.tools.ripgrep import find_ripgrep
from agent_lsp.tools.search import SEARCH, Findings, Line, Search, find_lines
from agent_lsp.workspace import Document, ResolvedPath
from tests.tools.conftest import Call, OpenDocuments


@pytest.fixture
def tree(root: Path) -> Path:
    (root / "src").mkdir()
    (root / "src/a.py").write_bytes(b"import os\r\n\r\ndef needle(x):\r\n    return x\r\n")
    (root / "src/b.py").write_text("one\nneedle = 1\nthree\nfour\nfive\nneedle()\n")
    (root / "notes.txt").write_bytes(b"caf\xc3\xa9 needle\n-needle-\n")
    (root / "binary").write_bytes(b"\0needle")
    (root / ".hidden").write_text("needle in hay")
    (root / "ignored.log").write_text("needle\n")
    (root / ".gitignore").write_text("*.log\n")
    (root / ".git").mkdir()
    (root / ".git/config").write_text("needle\n")
    (root.parent / "outside").write_text("needle\n")
    (root / "link").symlink_to(root.parent / "outside")
    return root


def line(path: str, number: int, text: str, *, is_match: bool = True) -> Line:
    return Line(path=path, number=number, text=text, is_match=is_match)


EVERYWHERE = [
    line(".hidden", 1, "needle in hay"),
    line("notes.txt", 1, "café needle"),
    line("notes.txt", 2, "-needle-"),
    line("src/a.py", 3, "def needle(x):"),
    line("src/b.py", 2, "needle = 1"),
    line("src/b.py", 6, "needle()"),
]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "needle"}, EVERYWHERE),
        ({"pattern": "^needle$"}, []),
        ({"pattern": "(?i)NEEDLE in"}, EVERYWHERE[:1]),
        ({"pattern": "needle(x)", "literal": True}, [EVERYWHERE[3]]),
        ({"pattern": "-needle-"}, [EVERYWHERE[2]]),
        ({"pattern": "caf. ne[^\\n]*e$"}, [EVERYWHERE[1]]),
        ({"pattern": "n\\\\n"}, []),
        ({"pattern": "e\\n", "literal": True}, []),
        ({"pattern": "needle", "glob": "*.py"}, EVERYWHERE[3:]),
        ({"pattern": "needle", "glob": "src/b.*"}, EVERYWHERE[4:]),
        ({"pattern": "needle", "glob": "*.log"}, []),
        ({"pattern": "needle", "path": "src", "glob": "a.py"}, [EVERYWHERE[3]]),
        ({"pattern": "needle", "path": "src", "glob": "src/*.py"}, []),
        ({"pattern": "needle", "path": "ignored.log"}, [line("ignored.log", 1, "needle")]),
        (
            {"pattern": "needle", "path": "src/b.py", "context": 1},
            [
                line("src/b.py", 1, "one", is_match=False),
                line("src/b.py", 2, "needle = 1"),
                line("src/b.py", 3, "three", is_match=False),
                line("src/b.py", 5, "five", is_match=False),
                line("src/b.py", 6, "needle()"),
            ],
        ),
    ],
)
@pytest.mark.parametrize("has_ripgrep", [True, False])
@pytest.mark.requirement("S3")
async def test_find_lines_agrees_with_and_without_ripgrep(
    tree: Path, context: ToolContext, has_ripgrep: bool, arguments: dict[str, JsonValue], expected: list[Line]
) -> None:
    params = SEARCH.validate(arguments)
    ripgrep = find_ripgrep(context.workspace, context.environment) if has_ripgrep else None

    findings = await find_lines(params, context.workspace.resolve(params.path), context, ripgrep=ripgrep)

    notes = () if has_ripgrep else ("ripgrep not found; slow search in Python",)
    assert findings == Findings(lines=expected, notes=notes)


LINE_END = "Files are searched line by line, so a pattern must not hold a line end"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (Search(pattern="needle("), "needle("),
        (Search(pattern="in hay\n"), LINE_END),
        (Search(pattern="in\nhay", literal=True), LINE_END),
        (Search(pattern=r"in hay\n"), LINE_END),
        (Search(pattern=r"[^\n]\\\n"), LINE_END),
        (Search(pattern="\0"), "A pattern must not hold NUL characters"),
    ],
)
@pytest.mark.parametrize("has_ripgrep", [True, False])
async def test_find_lines_refuses_a_pattern_that_is_none(
    tree: Path, context: ToolContext, has_ripgrep: bool, params: Search, message: str
) -> None:
    ripgrep = find_ripgrep(context.workspace, context.environment) if has_ripgrep else None

    with pytest.raises(ToolError) as caught:
        await find_lines(params, context.workspace.resolve("."), context, ripgrep=ripgrep)

    assert caught.value.code == "invalid_pattern"
    assert message in caught.value.message


async def test_find_lines_looks_around_with_ripgrep_alone(tree: Path, context: ToolContext) -> None:
    path, params = context.workspace.resolve("."), Search(pattern=r"needle(?=\()")
    ripgrep = find_ripgrep(context.workspace, context.environment)

    assert await find_lines(params, path, context, ripgrep=ripgrep) == Findings(lines=[EVERYWHERE[3], EVERYWHERE[5]])
    with pytest.raises(ToolError) as caught:
        await find_lines(params, path, context, ripgrep=None)
    assert (caught.value.code, caught.value.message) == (
        "invalid_pattern",
        r"Not a regular expression: needle(?=\() (invalid perl operator: (?=)",
    )


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x"])
async def test_find_lines_takes_linear_time_without_ripgrep(root: Path, context: ToolContext, pattern: str) -> None:
    (root / "file").write_text("a" * 5_000 + "!")

    findings = await find_lines(Search(pattern=pattern), context.workspace.resolve("."), context, ripgrep=None)

    assert findings.lines == []


@pytest.mark.parametrize("has_ripgrep", [True, False])
@pytest.mark.parametrize(
    ("start", "glob", "asked_for"),
    [
        (".", "*.py", ["src/a.py", "src/b.py"]),
        ("src", "b.py", ["src/b.py"]),
        ("src", None, ["src/a.py", "src/b.py"]),
        ("src/b.py", None, ["src/b.py"]),
    ],
)
async def test_find_lines_leaves_out_what_may_not_be_read(
    tree: Path, context: ToolContext, has_ripgrep: bool, start: str, glob: str | None, asked_for: list[str]
) -> None:
    asked: list[ResolvedPath] = []

    def may_read(path: ResolvedPath) -> bool:
        asked.append(path)
        return path.display != "src/b.py"

    findings = await find_lines(
        Search(pattern="needle", glob=glob),
        context.workspace.resolve(start),
        replace(context, may_read=may_read),
        ripgrep=find_ripgrep(context.workspace, context.environment) if has_ripgrep else None,
    )

    assert findings.lines == [line for line in EVERYWHERE if line.path in asked_for and line.path != "src/b.py"]
    # Each file once.
    assert sorted(asked, key=lambda path: path.display) == [context.workspace.resolve(path) for path in asked_for]


async def test_search_groups_by_file(tree: Path, call: Call) -> None:
    result = await call(SEARCH, pattern="needle", path="src", context=1)

    assert result == ToolResult(
        content=(
            "src/a.py\n2-\n3:def needle(x):\n4-    return x\n\n"
            "src/b.py\n1-one\n2:needle = 1\n3-three\n--\n5-five\n6:needle()"
        )
    )


async def test_search_says_how_many_matches_it_left_out(tree: Path, call: Call) -> None:
    result = await call(SEARCH, pattern="needle", limit=2)

    assert result.content == (
        ".hidden\n1:needle in hay\n\nnotes.txt\n1:café needle\n\n"
        "[The first 2 of 6 matching lines; narrow the pattern, the path or the glob]"
    )


@pytest.mark.requirement("F36")
async def test_search_bounds_long_lines(root: Path, call: Call) -> None:
    (root / "minified").write_text("needle" + "x" * 3_000_000)

    result = await call(SEARCH, pattern="needle")

    assert result.content == f"minified\n1:needle{'x' * 494} [... omitted end of long line]"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "nowhere"}, "[No matches]"),
        ({"pattern": "x", "path": "missing"}, "Error [file_not_found]: File not found: missing"),
        (
            {"pattern": "x", "path": "x" * 300},
            f"Error [unreadable_file]: {'x' * 300} cannot be read: File name too long",
        ),
        ({"pattern": "x", "path": ".."}, "Error [outside_workspace]: Path is outside the workspace: {parent}"),
    ],
)
async def test_search_says_why_there_is_nothing(
    tree: Path, call: Call, arguments: Mapping[str, JsonValue], expected: str
) -> None:
    assert (await call(SEARCH, **arguments)).content == expected.format(parent=tree.parent)


@pytest.mark.requirement("F70")
async def test_search_ignores_configuration_of_ripgrep(tree: Path, context: ToolContext) -> None:
    configuration = tree / "ripgreprc"
    configuration.write_text("--no-ignore\n--follow\n--max-count=0\n")
    environment = {**context.environment, "RIPGREP_CONFIG_PATH": str(configuration)}

    result = await SEARCH.prepare("1", {"pattern": "needle in"}).run(replace(context, environment=environment))

    assert result.content == ".hidden\n1:needle in hay"


@pytest.mark.requirement("F34")
@pytest.mark.parametrize("has_ripgrep", [True, False])
async def test_search_reads_what_the_editor_holds_unsaved(
    tree: Path, context: ToolContext, documents: OpenDocuments, has_ripgrep: bool
) -> None:
    held = {"src/b.py": "gone\n\U0001f600 needle typed\n", "src/new.py": "needle\n", "new.txt": "needle\n"}
    for name, text in held.items():
        documents[tree / name] = Document(text=text, version=2, unsaved=True)
    documents[tree / "src/a.py"] = Document(text="needle needle", version=1, unsaved=False)
    documents[tree.parent / "other.py"] = Document(text="needle", version=1, unsaved=True)
    ripgrep = find_ripgrep(context.workspace, {}) if has_ripgrep else None

    params = Search(pattern="needle", path="src", glob="*.py")
    findings = await find_lines(params, context.workspace.resolve("src"), context, ripgrep=ripgrep)

    assert findings.lines == [
        line("src/a.py", 3, "def needle(x):"),
        line("src/b.py", 2, "\U0001f600 needle typed"),
        line("src/new.py", 1, "needle"),
    ]
