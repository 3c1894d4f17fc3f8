"""The mirror holds what the editor holds: edits against a model, line endings, encodings, what is unsaved."""

import os
import re
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from agent_lsp.lsp.documents import EditorDocuments, all_lines, file_name, path_of
from agent_lsp.workspace import Document

ENCODINGS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
UNIT = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
PIECES = st.sampled_from(["a", "é", "e\u0301", "\U0001f600", "\n", "\r\n", "\r", "\t", "\x0c", "\x85", "\u2028", "中"])
TEXTS = st.lists(PIECES, max_size=12).map("".join)


def position(text: str, index: int, encoding: str) -> types.Position:
    """The model: the position of an index that is not inside a \\r\\n."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))]
    line = max(number for number, start in enumerate(starts) if start <= index)
    units = len(text[starts[line] : index].encode(ENCODINGS[encoding])) // UNIT[encoding]
    return types.Position(line=line, character=units)


def opened(text: str, uri: str = "untitled:a", encoding: str = "utf-16") -> EditorDocuments:
    documents = EditorDocuments()
    documents.position_encoding = encoding
    documents.open(types.TextDocumentItem(uri=uri, language_id="x", version=1, text=text))
    return documents


def change(documents: EditorDocuments, span: tuple[int, int, int, int], text: str, uri: str = "untitled:a") -> None:
    first, start, last, end = span
    with attrs.validators.disabled():  # as what clients send is read
        place = types.Range(start=types.Position(first, start), end=types.Position(last, end))
    edit = types.TextDocumentContentChangePartial(range=place, text=text)
    documents.change(types.VersionedTextDocumentIdentifier(uri=uri, version=2), [edit])


def text_of(documents: EditorDocuments, uri: str = "untitled:a") -> str:
    return documents._by_uri[uri].text


@given(text=TEXTS, encoding=st.sampled_from(sorted(ENCODINGS)), data=st.data())
def test_edits_give_the_text_of_a_plain_model(text: str, encoding: str, data: st.DataObject) -> None:
    documents = opened(text, encoding=encoding)
    for version in range(2, 6):
        indexes = [i for i in range(len(text) + 1) if text[max(i - 1, 0) : i + 1] != "\r\n"]
        start, end = sorted([data.draw(st.sampled_from(indexes)), data.draw(st.sampled_from(indexes))])
        inserted = data.draw(TEXTS)
        span = types.Range(position(text, start, encoding), position(text, end, encoding))
        edit = types.TextDocumentContentChangePartial(range=span, text=inserted)
        documents.change(types.VersionedTextDocumentIdentifier(uri="untitled:a", version=version), [edit])
        text = text[:start] + inserted + text[end:]
        assert text_of(documents) == text
        assert documents._by_uri["untitled:a"]._lines == all_lines(text)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a\n", ""]),
        ("a\r\nb\rc\n\nd", ["a\r\n", "b\r", "c\n", "\n", "d"]),
        ("a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g", ["a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g"]),
    ],
)
def test_lines_end_where_the_protocol_says(text: str, lines: list[str]) -> None:
    assert all_lines(text) == lines


@pytest.mark.parametrize(
    ("text", "span", "inserted", "expected"),
    [
        pytest.param("ab\ncd", (0, 99, 0, 99), "X", "abX\ncd", id="past a line's end"),
        pytest.param("ab\r\ncd", (0, 3, 0, 4), "X", "abX\r\ncd", id="inside a line ending"),
        pytest.param("ab\ncd", (1, 0, 99, 0), "X", "ab\nX", id="past the last line"),
        pytest.param("ab\ncd", (99, 5, 99, 9), "X", "ab\ncdX", id="far past the end"),
        pytest.param("ab\ncd", (1, 2, 0, 1), "X", "ab\ncdX", id="end before start"),
        pytest.param("ab\ncd", (-1, 7, 0, 1), "X", "Xb\ncd", id="before the first line"),
        pytest.param("ab\ncd", (1, -3, 1, -1), "X", "ab\nXcd", id="before a line's start"),
        pytest.param("é\ncd", (0, 2**32, 10**400, 10**400), "X", "éX", id="huge numbers"),
        pytest.param("\U0001f600b", (0, 1, 0, 2), "", "b", id="start inside a surrogate pair"),
        pytest.param("\ud800b", (0, 1, 0, 2), "", "\ud800", id="after a lone surrogate"),
        pytest.param("a\rb\nc", (1, 0, 1, 1), "", "a\r\nc", id="two line endings become one"),
    ],
)
def test_odd_ranges_are_clamped(text: str, span: tuple[int, int, int, int], inserted: str, expected: str) -> None:
    documents = opened(text)
    change(documents, span, inserted)
    assert text_of(documents) == expected
    assert documents._by_uri["untitled:a"]._lines == all_lines(expected)


def test_change_leaves_the_callers_positions_alone() -> None:
    documents = opened("ab\ncd")
    span = types.Range(types.Position(5, 5), types.Position(9, 9))
    edit = types.TextDocumentContentChangePartial(range=span, text="X")
    documents.change(types.VersionedTextDocumentIdentifier(uri="untitled:a", version=2), [edit])
    assert span == types.Range(types.Position(5, 5), types.Position(9, 9))


def test_full_change_replaces_the_text(tmp_path: Path) -> None:
    path = tmp_path / "a"
    documents = opened("one", path.as_uri())
    whole = types.TextDocumentContentChangeWholeDocument(text="two\n")
    documents.change(types.VersionedTextDocumentIdentifier(uri=path.as_uri(), version=7), [whole])
    assert documents.get(path) == Document(text="two\n", version=7, unsaved=True, typed=True)


def test_change_of_a_document_that_is_not_open_is_ignored() -> None:
    documents = EditorDocuments()
    change(documents, (0, 0, 0, 0), "x", "file:///nowhere")
    assert documents.get(Path("/nowhere")) is None


@pytest.mark.requirement("F34")
@pytest.mark.parametrize(
    ("on_disk", "text", "unsaved"),
    [
        pytest.param(b"one\n", "one\n", False, id="same"),
        pytest.param(b"one\r\ntwo\r\n", "one\ntwo\n", False, id="line endings"),
        pytest.param(b"\xef\xbb\xbfone\n", "one\n", False, id="byte order mark"),
        pytest.param(b"caf\xe9\n", "café\n", False, id="other encoding"),
        pytest.param("café\n".encode("utf-16"), "café\n", False, id="UTF-16"),
        pytest.param(b"one\n", "two\n", True, id="restored unsaved text"),
        pytest.param(b"caf\xe9\n", "café typed\n", True, id="restored unsaved text of another encoding"),
        pytest.param(b"\x82\xa0\n", "\u3042\n", True, id="an encoding that cannot be told"),
        pytest.param(None, "one\n", True, id="no file"),
        pytest.param(None, "", False, id="no file, no text"),
    ],
)
def test_document_just_opened_is_unsaved_if_it_differs_from_its_file(
    tmp_path: Path, on_disk: bytes | None, text: str, unsaved: bool
) -> None:
    path = tmp_path / "a"
    if on_disk is not None:
        path.write_bytes(on_disk)
    assert opened(text, path.as_uri()).get(path) == Document(text=text, version=1, unsaved=unsaved, typed=unsaved)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_document_that_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert opened("one\n", path.as_uri()).get(path) == Document(text="one\n", version=1, unsaved=True, typed=True)


@pytest.mark.requirement("F34")
def test_document_is_unsaved_from_a_change_until_it_is_saved_or_undone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("one\n")
    uri = path.as_uri()
    documents = opened("one\n", uri)
    seen = list[bool | None]()

    def see() -> None:
        document = documents.get(path)
        seen.append(None if document is None else document.unsaved)

    change(documents, (0, 0, 0, 0), "X", uri)
    see()
    change(documents, (0, 0, 0, 1), "", uri)
    see()
    change(documents, (0, 0, 0, 0), "Y", uri)
    documents.save(uri)
    see()
    documents.close(uri)
    see()
    assert seen == [True, False, False, None]


def test_document_is_found_under_its_resolved_path_and_keeps_the_editors_uri(tmp_path: Path) -> None:
    (tmp_path / "real é").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "real é")
    real = (tmp_path / "real é").resolve()
    documents = opened("x", (tmp_path / "link").as_uri())
    assert documents.get(real) == Document(text="x", version=1, unsaved=False)
    assert documents.uri(real) == (tmp_path / "link").as_uri()
    documents.close((tmp_path / "link").as_uri())
    assert documents.uri(real) == real.as_uri()


def test_same_file_opened_under_two_uris_stays_open_until_both_are_closed(tmp_path: Path) -> None:
    path = tmp_path / "a b"
    first, second = path.as_uri(), path.as_uri().replace("%20", " ")
    documents = opened("one", first)
    documents.open(types.TextDocumentItem(uri=second, language_id="x", version=5, text="two"))
    assert documents.get(path) == Document(text="two", version=5, unsaved=True, typed=True)
    documents.close(second)
    assert documents.get(path) == Document(text="one", version=1, unsaved=True, typed=True)


@pytest.mark.parametrize(
    ("uri", "windows", "name"),
    [
        ("file:///a/b%20c", False, "/a/b c"),
        ("file:///a/%C3%A9%23%3F", False, "/a/é#?"),
        ("file:///a/%FF", False, "/a/\udcff"),
        ("file:/a", False, "/a"),
        ("file://localhost/a", False, "/a"),
        ("file://elsewhere/a", False, None),
        ("file://elsewhere/a", True, "//elsewhere/a"),
        ("file:///c%3A/a", True, "c:/a"),
        ("file:///C:/a", True, "C:/a"),
        ("file:///c%3A/a", False, "/c:/a"),
        ("untitled:Untitled-1", False, None),
        ("vscode-notebook-cell:/a.ipynb#1", False, None),
        ("file://[bad", False, None),
        ("", False, None),
    ],
)
def test_uri_names_a_file(uri: str, windows: bool, name: str | None) -> None:
    assert file_name(uri, windows=windows) == name


def test_uri_with_nul_has_no_path() -> None:
    assert path_of("file:///a%00b") is None


@pytest.mark.requirement("F34")
@pytest.mark.parametrize(
    ("on_disk", "unsaved"), [(b"two\n", False), (b"two\r\n", False), (b"2\n", True), (b"\xff", True)]
)
def test_file_that_the_editor_reads_anew_is_not_unsaved(tmp_path: Path, on_disk: bytes, unsaved: bool) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n")
    documents = opened("one\n", path.as_uri())
    path.write_bytes(on_disk)
    documents.change(
        types.VersionedTextDocumentIdentifier(version=2, uri=path.as_uri()),
        [types.TextDocumentContentChangeWholeDocument(text="two\n")],
    )

    assert documents.get(path) == Document(text="two\n", version=2, unsaved=unsaved, typed=unsaved)
