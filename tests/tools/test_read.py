"""Reading is numbered, bounded and honest about what it left out."""

import os
from pathlib import Path

import pytest

from agent_lsp.messages import ToolResult
from agent_lsp.tools.read import READ_FILE
from agent_lsp.workspace import Access, Document, Workspace
from tests.tools.conftest import Call, OpenDocuments


@pytest.mark.parametrize(
    ("content", "arguments", "expected"),
    [
        (b"one\ntwo\n", {}, "1\tone\n2\ttwo"),
        (b"one\n\nthree", {}, "1\tone\n2\t\n3\tthree"),
        (b"one\r\ntwo\rthree\n", {}, "1\tone\n2\ttwo\n3\tthree"),
        ("a\x0cb\u2028c\x85d\n".encode(), {}, "1\ta\x0cb\u2028c\x85d"),
        (b"1\n2\n3\n4\n", {"start_line": 2, "end_line": 3}, "2\t2\n3\t3"),
        (b"1\n2\n", {"start_line": 2, "end_line": 9}, "2\t2"),
        (b"", {}, "[The file is empty]"),
        (b"caf\xe9", {}, "1\tcafé\n[Encoded as cp1252]"),
        (b"1\n2\n", {"start_line": 3}, "Error [out_of_range]: file has 2 lines; line 3 is past its end"),
        (b"", {"start_line": 2}, "Error [out_of_range]: file has 0 lines; line 2 is past its end"),
        (b"a\0b", {}, "Error [binary_file]: file is not a text file (NUL characters)"),
    ],
)
@pytest.mark.requirement("S3", "F36")
async def test_read_file_numbers_lines(
    root: Path, call: Call, content: bytes, arguments: dict[str, int], expected: str
) -> None:
    (root / "file").write_bytes(content)

    assert (await call(READ_FILE, path="file", **arguments)).content == expected


@pytest.mark.requirement("F36")
async def test_read_file_bounds_the_number_of_lines(root: Path, call: Call) -> None:
    (root / "file").write_text("".join(f"line {number}\n" for number in range(1, 5_001)))

    first = (await call(READ_FILE, path="file")).content.split("\n")
    rest = (await call(READ_FILE, path="file", start_line=2_001)).content.split("\n")

    assert [len(first), first[-2:]] == [
        2_001,
        ["2000\tline 2000", "[Lines 1 to 2,000 of 5,000; go on with start_line 2001]"],
    ]
    assert [rest[0], rest[-1]] == [
        "2001\tline 2001",
        "[Lines 2,001 to 4,000 of 5,000; go on with start_line 4001]",
    ]


@pytest.mark.requirement("F36")
async def test_read_file_bounds_characters_and_long_lines(root: Path, call: Call) -> None:
    (root / "minified").write_text("x" * 1_000_000 + "\nend\n")
    (root / "wide").write_text(("y" * 1_500 + "\n") * 100)

    minified = (await call(READ_FILE, path="minified")).content
    wide = (await call(READ_FILE, path="wide")).content

    assert minified == (
        f"1\t{'x' * 2_000} [… 998,000 more characters in line 1; search for what you need in it …]\n2\tend"
    )
    assert len(wide) < 101_000
    assert wide.endswith("[Lines 1 to 66 of 100; go on with start_line 67]")


@pytest.mark.requirement("F34")
async def test_read_file_prefers_unsaved_editor_text(root: Path, documents: OpenDocuments, call: Call) -> None:
    (root / "file").write_text("on disk")
    documents[root / "file"] = Document(text="typed\n", version=3, unsaved=True)
    documents[root / "new"] = Document(text="not on disk yet", version=1, unsaved=True)
    note = "[This is the text in the editor; it is not saved yet]"

    assert await call(READ_FILE, path="file") == ToolResult(content=f"1\ttyped\n{note}", metadata={"path": "file"})
    assert (await call(READ_FILE, path="new")).content == f"1\tnot on disk yet\n{note}"


async def test_read_file_reads_a_saved_open_file_from_disk(root: Path, documents: OpenDocuments, call: Call) -> None:
    (root / "file").write_text("on disk")
    documents[root / "file"] = Document(text="in memory", version=3, unsaved=False)

    assert (await call(READ_FILE, path="file")).content == "1\ton disk"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "readme.txt",
            "Error [file_not_found]: File not found: readme.txt. Files of similar names there: readme.text",
        ),
        ("no/such/place", "Error [file_not_found]: File not found: no/such/place"),
        ("readme.text/below", "Error [file_not_found]: File not found: readme.text/below"),
        (".", "Error [is_directory]: . is a directory"),
        ("pipe", "Error [unreadable_file]: pipe cannot be read: not a regular file"),
        ("link", "Error [outside_workspace]: Path is outside the workspace: {outside}"),
        ("", "Error [invalid_path]: Path must not be empty or contain NUL characters"),
    ],
)
@pytest.mark.requirement("F36", "F23")
async def test_read_file_says_why_it_cannot(root: Path, call: Call, path: str, expected: str) -> None:
    outside = root.parent / "outside"
    outside.write_text("secret")
    (root / "link").symlink_to(outside)
    (root / "readme.text").write_text("")
    os.mkfifo(root / "pipe")

    assert (await call(READ_FILE, path=path)).content == expected.format(outside=outside)


def test_read_file_action_names_the_resolved_path(root: Path) -> None:
    workspace = Workspace(root)

    action = READ_FILE.prepare("1", {"path": "a/../../outside"}).action(workspace)

    assert (action.tool, action.access, action.paths) == (
        "read_file",
        Access.READ,
        (workspace.resolve("../outside"),),
    )
    assert not action.paths[0].inside
