"""Whole files are created and replaced in the shape that they have."""

import codecs
from dataclasses import replace
from pathlib import Path

import pytest

from agent_lsp.approvals import FileChange, content_digest
from agent_lsp.errors import ToolError
from agent_lsp.messages import ToolResult
from agent_lsp.tools.base import ToolContext
from agent_lsp.tools.write import WRITE_FILE
from agent_lsp.workspace import Access, Document, Written
from tests.tools.conftest import Call, OpenDocuments

UTF8, UTF16 = codecs.BOM_UTF8, codecs.BOM_UTF16_LE


@pytest.mark.parametrize(
    ("before", "content", "after", "said"),
    [
        (None, "ü\r\n\n", "ü\r\n\n".encode(), "Created file (2 lines)"),
        (None, "", b"", "Created file (0 lines)"),
        (b"old\n", "new", b"new", "Replaced file (1 line)"),
        (b"", "new\n", b"new\n", "Replaced file (1 line)"),
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n", "Replaced file (2 lines, in the line ends of the old file)"),
        (b"a\rb\r", "c\nd\n", b"c\rd\r", "Replaced file (2 lines, in the line ends of the old file)"),
        (b"a\r\nb\r\n", "c\r\nd\r\n", b"c\r\nd\r\n", "Replaced file (2 lines)"),
        (b"a\r\nb\r\n", "c\r\nd\n", b"c\r\nd\r\n", "Replaced file (2 lines, in the line ends of the old file)"),
        (b"a\r\nb\r\n", "c\rd\n", b"c\r\nd\r\n", "Replaced file (2 lines, in the line ends of the old file)"),
        (UTF8 + b"a\r\n", "\ufeffb\r\n", UTF8 + b"b\r\n", "Replaced file (1 line)"),
        (b"a\nb\n", "c\r\nd\r\n", b"c\r\nd\r\n", "Replaced file (2 lines)"),
        (b"a\r\nb\n", "c\nd\n", b"c\nd\n", "Replaced file (2 lines)"),
        (UTF16 + b"a\0", "ü", UTF16 + b"\xfc\0", "Replaced file (1 line)"),
        (b"caf\xe9", "th\xe9", b"th\xe9", "Replaced file (1 line)"),
        (UTF8 + b"a", "\ufeffb", UTF8 + b"b", "Replaced file (1 line)"),
    ],
)
@pytest.mark.requirement("F30", "S3")
async def test_write_file_keeps_encoding_and_line_ends(
    root: Path, call: Call, before: bytes | None, content: str, after: bytes, said: str
) -> None:
    if before is not None:
        (root / "file").write_bytes(before)

    result = await call(WRITE_FILE, path="file", content=content)

    assert result == ToolResult(content=said, metadata={"path": "file", "changed": True})
    assert (root / "file").read_bytes() == after


async def test_write_file_of_the_same_content_writes_nothing(root: Path, call: Call) -> None:
    (root / "file").write_bytes(b"same\r\n")
    before = (root / "file").stat()

    result = await call(WRITE_FILE, path="file", content="same\n")

    assert result == ToolResult(content="file has this content already", metadata={"path": "file", "changed": False})
    assert (root / "file").stat().st_ino == before.st_ino


async def test_write_file_makes_directories(root: Path, call: Call) -> None:
    await call(WRITE_FILE, path="a/b/file", content="text")

    assert (root / "a/b/file").read_text() == "text"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("binary", "Error [binary_file]: binary is not a text file (NUL characters)"),
        (".", "Error [is_directory]: . is a directory"),
        ("binary/below", "Error [unwritable_file]: binary/below cannot be written: Not a directory"),
        ("out/file", "Error [outside_workspace]: Path is outside the workspace: {outside}/file"),
    ],
)
@pytest.mark.requirement("F23", "F30")
async def test_write_file_refuses_what_it_would_damage(root: Path, call: Call, path: str, expected: str) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "out").symlink_to(outside)
    (root / "binary").write_bytes(b"\0")

    result = await call(WRITE_FILE, path=path, content="text")

    assert result.content == expected.format(outside=outside)
    assert not (outside / "file").exists()
    assert (root / "binary").read_bytes() == b"\0"


@pytest.mark.requirement("F34")
async def test_write_file_replaces_no_typed_text_that_nobody_saw(
    root: Path, documents: OpenDocuments, call: Call
) -> None:
    documents[root / "file"] = Document(text="typed", version=1, unsaved=True, typed=True)
    documents.written = Written.HELD

    result = await call(WRITE_FILE, path="file", content="new")

    assert (result.code, documents[root / "file"].text) == ("unsaved_changes", "typed")


@pytest.mark.requirement("F34")
async def test_write_file_refuses_to_overwrite_unsaved_text(root: Path, documents: OpenDocuments, call: Call) -> None:
    documents[root / "file"] = Document(text="typed", version=1, unsaved=True)

    result = await call(WRITE_FILE, path="file", content="new")

    assert result == ToolResult.error(
        "unsaved_changes",
        "file has unsaved changes in the editor. Ask the user to save or discard them, then try again",
    )
    assert not (root / "file").exists()


@pytest.mark.parametrize(("before", "digest"), [(None, "missing"), ("a\r\n", content_digest(b"a\r\n"))])
async def test_write_file_says_what_it_would_do(
    root: Path, context: ToolContext, before: str | None, digest: str
) -> None:
    if before is not None:
        (root / "file").write_bytes(before.encode())
    prepared = WRITE_FILE.prepare("1", {"path": "file", "content": "b\r\n"})
    path = context.workspace.resolve("file")

    action = prepared.action(context.workspace)

    assert (action.tool, action.access, action.paths, action.command) == ("write_file", Access.WRITE, (path,), None)
    assert await prepared.preview(context) == FileChange(path=path, before=before, after="b\r\n", before_digest=digest)
    assert (root / "file").exists() == (before is not None)


@pytest.mark.requirement("A40")
async def test_write_file_writes_exactly_what_was_approved(root: Path, context: ToolContext) -> None:
    prepared = WRITE_FILE.prepare("1", {"path": "file", "content": "proposed"})
    shown = await prepared.preview(context)
    assert shown is not None

    await prepared.run(replace(context, change=replace(shown, after="approved")))

    assert (root / "file").read_text() == "approved"


@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.requirement("F33")
async def test_write_file_refuses_a_file_that_changed_since_it_was_shown(
    root: Path, context: ToolContext, before: bytes | None
) -> None:
    if before is not None:
        (root / "file").write_bytes(before)
    prepared = WRITE_FILE.prepare("1", {"path": "file", "content": "new"})
    shown = await prepared.preview(context)
    (root / "file").write_bytes(b"newer")

    with pytest.raises(ToolError) as caught:
        await prepared.run(replace(context, change=shown))

    assert (caught.value.code, (root / "file").read_bytes()) == ("stale_file", b"newer")
