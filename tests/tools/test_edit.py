"""Edits change what they say, and not a byte more."""

import codecs
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_lsp.approvals import FileChange, content_digest
from agent_lsp.errors import ToolError
from agent_lsp.messages import JsonValue, ToolResult
from agent_lsp.tools.base import ToolContext
from agent_lsp.tools.edit import EDIT_FILE
from agent_lsp.tools.files import TextFile, decode
from agent_lsp.tools.matching import Edited, apply_edit, nearest_lines
from agent_lsp.workspace import Access, Document, Written
from tests.tools.conftest import Call, OpenDocuments

CODECS = [
    ("utf-8", b""),
    ("utf-8", codecs.BOM_UTF8),
    ("utf-16-le", codecs.BOM_UTF16_LE),
    ("utf-16-be", codecs.BOM_UTF16_BE),
    ("cp1252", b""),
    ("latin-1", b""),
]
ADD_LINES = "Add lines around it, or set all to change each"
TEXTS = st.lists(st.sampled_from(["a", "b", "ü", " ", "\t", "\n", "\r\n", "\r"])).map("".join)


def splits_a_crlf(text: str, offset: int) -> bool:
    return text[offset - 1 : offset + 1] == "\r\n" if offset else False


@st.composite
def edits_of_files(draw: st.DrawFn) -> tuple[TextFile, int, int, str, str]:
    """A file, the span of its text that is to be replaced, the edit's old text (with LF or as it is) and new text."""
    codec, mark = draw(st.sampled_from(CODECS))
    text = draw(TEXTS.filter(bool))
    offsets = [offset for offset in range(len(text) + 1) if not splits_a_crlf(text, offset)]
    start, end = sorted(draw(st.lists(st.sampled_from(offsets), min_size=2, max_size=2, unique=True)))
    old = text[start:end]
    if draw(st.booleans()):
        old = old.replace("\r\n", "\n").replace("\r", "\n")
    file = TextFile(content=mark + text.encode(codec), text=text, codec=codec, mark=mark)
    return file, start, end, old, draw(TEXTS)


@given(edits_of_files())
@pytest.mark.requirement("F30")
def test_apply_edit_changes_no_byte_outside_the_span(edit: tuple[TextFile, int, int, str, str]) -> None:
    file, start, end, old, new = edit
    try:
        after = apply_edit(file.text, old, new, every=False).text
    except ToolError as error:
        if error.code != "ambiguous_edit":
            raise
        return

    content = file.encode(after)
    assert content.startswith(file.encode(file.text[:start]))
    assert content.endswith(file.text[end:].encode(file.codec))
    written = after[start : len(after) - len(file.text) + end]
    assert written.replace("\r\n", "\n").replace("\r", "\n") == new.replace("\r\n", "\n").replace("\r", "\n")


@given(TEXTS, st.sampled_from(["a", "ab", "a\n", "\nb", "\n", "\n\n"]))
@pytest.mark.requirement("F30")
def test_apply_edit_of_every_place_undone_gives_the_same_text(text: str, old: str) -> None:
    uniform = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")
    try:
        edited = apply_edit(uniform, old, "<new>", every=True)
    except ToolError as error:
        if error.code != "text_not_found":
            raise
        return

    if edited.loose:
        return
    assert edited.count == edited.text.count("<new>")
    assert edited.text.replace("<new>", old.replace("\n", "\r\n")) == uniform


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("one\ntwo\n", "two", "2", Edited(text="one\n2\n", line=2)),
        ("one\r\ntwo\r\nthree", "one\ntwo\n", "1\n2\n", Edited(text="1\r\n2\r\nthree", line=1)),
        ("one\rtwo\r", "two\n", "2\n3\n", Edited(text="one\r2\r3\r", line=2)),
        ("a\nb\r\nc\n", "b", "x\ny", Edited(text="a\nx\r\ny\r\nc\n", line=2)),
        ("a\r\nb", "b", "x\ny", Edited(text="a\r\nx\r\ny", line=2)),
        ("a\r\nb\r\n", "a", "x\r\ny\rz\nw", Edited(text="x\r\ny\r\nz\r\nw\r\nb\r\n", line=1)),
        ("a\n", "a", "x\r\ny", Edited(text="x\ny\n", line=1)),
        ("a", "a", "x\r\ny\n", Edited(text="x\ny\n", line=1)),
        ("a\nb\nc\n", "a\r\nb\r\n", "x\r\n", Edited(text="x\nc\n", line=1)),
        ("a\r\nb\r\nc\nd", "d", "x\ny", Edited(text="a\r\nb\r\nc\nx\r\ny", line=4)),
        (" a\n b\n", "a\r\nb\r\n", "x\r\ny\r\n", Edited(text=" x\n y\n", line=1, loose=True)),
        ("a\n\nb", "\n\n", "\n", Edited(text="a\nb", line=1)),
        ("\r\n\r\n", "\n\n", "x", Edited(text="x", line=1)),
    ],
)
@pytest.mark.requirement("F30")
def test_apply_edit_takes_line_ends_from_the_file(text: str, old: str, new: str, expected: Edited) -> None:
    assert apply_edit(text, old, new, every=False) == expected


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        (
            "def f():\n    if x:\n        y()\n    z()\n",
            "if x:\n    y()",
            "if x:\n    y(1)\n    if w:\n        v()",
            Edited(
                text="def f():\n    if x:\n        y(1)\n        if w:\n            v()\n    z()\n", line=2, loose=True
            ),
        ),
        (
            "f() {\n\tif (x) {\n\t\ty();\n\t}\n}\n",
            "    if (x) {\n        y();\n    }\n",
            "    if (x) {\n        z();\n    }\n",
            Edited(text="f() {\n\tif (x) {\n\t\tz();\n\t}\n}\n", line=2, loose=True),
        ),
        ("a = 1   \nb = 2\n", "a = 1\nb = 2", "a = 3\nb = 4", Edited(text="a = 3\nb = 4\n", line=1, loose=True)),
        (" a\r\n  b\r\nc", "a\n b\n", "a\n\n b\n", Edited(text=" a\r\n\r\n  b\r\nc", line=1, loose=True)),
        ("one\n  last", "last\n", "end\n", Edited(text="one\n  end", line=2, loose=True)),
        ("one\n  two \nlast", "two\n", "", Edited(text="one\nlast", line=2, loose=True)),
    ],
)
@pytest.mark.requirement("F32")
def test_apply_edit_matches_white_space_aside_and_indents(text: str, old: str, new: str, expected: Edited) -> None:
    assert apply_edit(text, old, new, every=False) == expected


@pytest.mark.parametrize(
    ("text", "old", "code", "message"),
    [
        (
            "a\nb\na\n",
            "a",
            "ambiguous_edit",
            f"The old text matches 2 places (lines 1, 3). {ADD_LINES}",
        ),
        (
            "aaa",
            "aa",
            "ambiguous_edit",
            f"The old text matches 2 places (lines 1, 1). {ADD_LINES}",
        ),
        (
            "x\n" * 3_000,
            "x",
            "ambiguous_edit",
            f"The old text matches at least 1,000 places (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …). {ADD_LINES}",
        ),
        (
            " a  b\na b \n",
            "\ta b",
            "ambiguous_edit",
            f"The old text matches, white space aside, 2 places (lines 1, 2). {ADD_LINES}",
        ),
        (
            "import os\n\ndef total(items):\n    return sum(items)\n",
            "def total(item):\n    return sum(item)",
            "text_not_found",
            "The old text is not in the file. The nearest lines are:\n3\tdef total(items):\n4\t    return sum(items)",
        ),
        ("a\n", "zzz", "text_not_found", "The old text is not in the file. Nothing in the file resembles it"),
        ("a\n\nb\n", " \n ", "text_not_found", "The old text is not in the file. Nothing in the file resembles it"),
        ("", "a", "text_not_found", "The old text is not in the file. Nothing in the file resembles it"),
    ],
)
@pytest.mark.requirement("F32")
def test_apply_edit_says_why_it_cannot(text: str, old: str, code: str, message: str) -> None:
    with pytest.raises(ToolError) as caught:
        apply_edit(text, old, "new", every=False)

    assert (caught.value.code, caught.value.message) == (code, message)


@pytest.mark.requirement("F32")
def test_nearest_lines_shows_several_passages_cut_to_a_bound() -> None:
    text = f"alpha = 1\nother\nalpha = 12\n{'m' * 100_000}\n"

    assert nearest_lines(text, "alpha = 123") == "1\talpha = 1\n--\n3\talpha = 12"
    assert nearest_lines(text, "m" * 100_000 + "n") == f"4\t{'m' * 200}"


# --- the tool

REPLACE_ONE: dict[str, JsonValue] = {"path": "file", "edits": [{"old": "one", "new": "1"}]}


async def test_edit_file_applies_edits_in_order_each_to_the_result_before(root: Path, call: Call) -> None:
    (root / "file").write_bytes(codecs.BOM_UTF16_LE + "one\r\ntwo two\r\n".encode("utf-16-le"))

    result = await call(
        EDIT_FILE,
        path="file",
        edits=[
            {"old": "one\n", "new": "one\nthree\n"},
            {"old": "three", "new": "3"},
            {"old": "two", "new": "2", "all": True},
            {"old": "2  2", "new": "2 and 2"},
        ],
    )

    assert result == ToolResult(
        content="Edited file\n- line 1\n- line 2\n- line 3 and after, 2 places\n"
        "- line 3: matched white space aside, and indented like the file",
        metadata={"path": "file", "changed": True},
    )
    assert (root / "file").read_bytes() == codecs.BOM_UTF16_LE + "one\r\n3\r\n2 and 2\r\n".encode("utf-16-le")


async def test_edit_file_applies_all_edits_or_none(root: Path, call: Call) -> None:
    (root / "file").write_text("one two")

    result = await call(EDIT_FILE, path="file", edits=[{"old": "one", "new": "1"}, {"old": "one", "new": "2"}])

    assert (result.code, (root / "file").read_text()) == ("text_not_found", "one two")
    assert result.content.startswith("Error [text_not_found]: edits.1: The old text is not in the file")


async def test_edit_file_that_changes_nothing_writes_nothing(root: Path, call: Call) -> None:
    (root / "file").write_text("one")
    before = (root / "file").stat()

    result = await call(EDIT_FILE, path="file", edits=[{"old": "one", "new": "one"}])

    assert result == ToolResult(content="file is unchanged\n- line 1", metadata={"path": "file", "changed": False})
    assert (root / "file").stat().st_ino == before.st_ino


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing", "Error [file_not_found]: File not found: missing. Create it with write_file"),
        (".", "Error [is_directory]: . is a directory"),
        ("binary", "Error [binary_file]: binary is not a text file (NUL characters)"),
        ("../elsewhere", "Error [outside_workspace]: Path is outside the workspace: {outside}"),
    ],
)
async def test_edit_file_refuses_what_it_cannot_edit(root: Path, call: Call, path: str, message: str) -> None:
    (root / "binary").write_bytes(b"one\0")
    (root.parent / "elsewhere").write_text("one")

    result = await call(EDIT_FILE, **{**REPLACE_ONE, "path": path})

    assert result.content == message.format(outside=root.parent / "elsewhere")
    assert (root.parent / "elsewhere").read_text() == "one"


@pytest.mark.requirement("F34")
async def test_edit_file_refuses_to_overwrite_unsaved_text(root: Path, documents: OpenDocuments, call: Call) -> None:
    (root / "file").write_text("one")
    documents[root / "file"] = Document(text="one typed", version=2, unsaved=True)

    result = await call(EDIT_FILE, **REPLACE_ONE)

    assert (result.code, (root / "file").read_text()) == ("unsaved_changes", "one")


@pytest.mark.requirement("F34")
async def test_edit_file_changes_a_file_that_is_open_and_saved(
    root: Path, documents: OpenDocuments, call: Call
) -> None:
    (root / "file").write_text("one")
    documents[root / "file"] = Document(text="one", version=1, unsaved=False)

    await call(EDIT_FILE, **REPLACE_ONE)

    assert (root / "file").read_text() == "1"


@pytest.mark.requirement("F34")
@pytest.mark.parametrize(
    ("written", "ending"),
    [(Written.SAVED, ""), (Written.HELD, "\nIt is in the editor, not saved yet: programs still find the old file")],
)
async def test_edit_file_changes_unsaved_text_in_the_editor(
    root: Path, documents: OpenDocuments, call: Call, written: Written, ending: str
) -> None:
    (root / "file").write_text("one")
    documents[root / "file"] = Document(text="one typed", version=2, unsaved=True, typed=True)
    documents.written = written

    result = await call(EDIT_FILE, **REPLACE_ONE)

    assert result.content == f"Edited file\n- line 1{ending}"
    assert documents[root / "file"].text == "1 typed"
    assert (root / "file").read_text() == "one"


@pytest.mark.requirement("F34", "F33")
async def test_edit_file_that_stays_stale_ends_with_the_fresh_text(
    root: Path, documents: OpenDocuments, call: Call
) -> None:
    (root / "file").write_text("one")
    documents[root / "file"] = Document(text="one typed", version=2, unsaved=True)
    documents.written = Written.STALE

    result = await call(EDIT_FILE, **REPLACE_ONE)

    assert (result.code, documents[root / "file"].text) == ("stale_file", "one typed")


async def test_edit_file_says_what_it_would_do(root: Path, context: ToolContext) -> None:
    (root / "file").write_bytes(b"one\r\n")
    prepared = EDIT_FILE.prepare("1", REPLACE_ONE)
    path = context.workspace.resolve("file")

    action = prepared.action(context.workspace)

    assert (action.tool, action.access, action.paths, action.command) == ("edit_file", Access.WRITE, (path,), None)
    assert await prepared.preview(context) == FileChange(
        path=path, before="one\r\n", after="1\r\n", before_digest=content_digest(b"one\r\n")
    )
    assert (root / "file").read_bytes() == b"one\r\n"


@pytest.mark.requirement("A40")
async def test_edit_file_writes_exactly_what_was_approved(root: Path, context: ToolContext) -> None:
    (root / "file").write_text("one\n")
    prepared = EDIT_FILE.prepare("1", REPLACE_ONE)
    shown = await prepared.preview(context)
    assert shown is not None
    approved = replace(shown, after="another hunk\n")

    await prepared.run(replace(context, change=approved))

    assert (root / "file").read_text() == "another hunk\n"


@pytest.mark.requirement("F33")
async def test_edit_file_of_a_file_changed_since_shows_the_fresh_text(root: Path, context: ToolContext) -> None:
    (root / "file").write_text("zero\none\n")
    prepared = EDIT_FILE.prepare("1", REPLACE_ONE)
    shown = await prepared.preview(context)
    (root / "file").write_text("first\nzero\none!\n")

    with pytest.raises(ToolError) as caught:
        await prepared.run(replace(context, change=shown))

    assert caught.value.code == "stale_file"
    assert caught.value.message == (
        "file has changed since this change to it was made. Read it again. It now reads:\n3\tone!"
    )
    assert decode((root / "file").read_bytes()).text == "first\nzero\none!\n"


@pytest.mark.requirement("F33")
async def test_edit_file_of_a_file_touched_but_not_changed_succeeds(root: Path, context: ToolContext) -> None:
    (root / "file").write_text("one")
    prepared = EDIT_FILE.prepare("1", REPLACE_ONE)
    shown = await prepared.preview(context)
    (root / "file").unlink()
    (root / "file").write_text("one")

    await prepared.run(replace(context, change=shown))

    assert (root / "file").read_text() == "1"


@pytest.mark.requirement("F23")
async def test_edit_file_refuses_a_path_that_leads_elsewhere_than_was_approved(
    root: Path, context: ToolContext
) -> None:
    (root / "file").write_text("one")
    (root / "other").write_text("one")
    prepared = EDIT_FILE.prepare("1", REPLACE_ONE)
    shown = await prepared.preview(context)
    (root / "file").unlink()
    (root / "file").symlink_to("other")

    with pytest.raises(ToolError) as caught:
        await prepared.run(replace(context, change=shown))

    assert (caught.value.code, (root / "other").read_text()) == ("stale_file", "one")
