"""Text files lose nothing, and are replaced whole or not at all."""

import codecs
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_lsp.errors import ToolError
from agent_lsp.tools.files import count_lines, decode, line_number, load, save, split_lines
from agent_lsp.workspace import Workspace


@pytest.mark.parametrize(
    ("content", "text", "codec", "mark"),
    [
        (b"", "", "utf-8", b""),
        ("grün\n".encode(), "grün\n", "utf-8", b""),
        (codecs.BOM_UTF8 + b"a\r\n", "a\r\n", "utf-8", codecs.BOM_UTF8),
        (codecs.BOM_UTF16_LE + "ü\n".encode("utf-16-le"), "ü\n", "utf-16-le", codecs.BOM_UTF16_LE),
        (codecs.BOM_UTF16_BE + "ü\n".encode("utf-16-be"), "ü\n", "utf-16-be", codecs.BOM_UTF16_BE),
        (codecs.BOM_UTF32_LE + "ü\n".encode("utf-32-le"), "ü\n", "utf-32-le", codecs.BOM_UTF32_LE),
        (codecs.BOM_UTF32_BE + "ü\n".encode("utf-32-be"), "ü\n", "utf-32-be", codecs.BOM_UTF32_BE),
        (b"\x93quoted\x94 caf\xe9", "“quoted” café", "cp1252", b""),
        (b"caf\xe9 \x81", "café \x81", "latin-1", b""),
        (b"page\x0cbreak \xe9 \x1b[0m", "page\x0cbreak é \x1b[0m", "cp1252", b""),
    ],
)
@pytest.mark.requirement("F30")
def test_decode_recognises_encodings(content: bytes, text: str, codec: str, mark: bytes) -> None:
    file = decode(content)

    assert (file.text, file.codec, file.mark) == (text, codec, mark)


@pytest.mark.parametrize(
    "content",
    [
        b"text with a \0 in it",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"\x7fELF\x02\xff",
        "no mark".encode("utf-16-le"),
        codecs.BOM_UTF16_LE + b"\x00\xd8",
        codecs.BOM_UTF16_LE + b"odd",
        codecs.BOM_UTF8 + b"\xff",
    ],
)
@pytest.mark.requirement("F30", "F36")
def test_decode_refuses_what_is_not_text(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"NUL|control|codec"):
        decode(content)


@given(st.binary() | st.binary().map(lambda content: content.translate(None, bytes(range(32)))))
@pytest.mark.requirement("F30")
def test_decode_loses_nothing(content: bytes) -> None:
    try:
        file = decode(content)
    except ValueError:
        return
    assert file.encode(file.text) == content


@given(st.text(alphabet="ab\r\n\x0b\x0c\x1c\x85\u2028"))
@pytest.mark.requirement("F30")
def test_split_lines_ends_lines_at_lf_crlf_and_cr_alone(text: str) -> None:
    lines = split_lines(text)

    assert "".join(content + end for content, end in lines) == text
    assert len(lines) == count_lines(text)
    assert {end for _content, end in lines[:-1]} <= {"\r\n", "\n", "\r"}
    starts = [len("".join(content + end for content, end in lines[:index])) for index in range(len(lines))]
    assert [line_number(text, start) for start in starts] == list(range(1, len(lines) + 1))


# --- writing


def contents(directory: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in directory.iterdir()}


@pytest.mark.requirement("F31")
async def test_save_keeps_the_mode_and_leaves_nothing_beside(root: Path) -> None:
    script = root / "script"
    script.write_bytes(codecs.BOM_UTF8 + b"old")
    script.chmod(0o751)
    path = Workspace(root).resolve("script")

    await save(path, "new ü", previous=await load(path))

    assert stat.S_IMODE(script.stat().st_mode) == 0o751
    assert contents(root) == {"script": codecs.BOM_UTF8 + "new ü".encode()}


@pytest.mark.requirement("F31")
async def test_save_replaces_the_file_rather_than_its_content(root: Path) -> None:
    file = root / "file"
    file.write_text("old")
    path = Workspace(root).resolve("file")

    with file.open() as reader:
        await save(path, "new", previous=await load(path))

        assert (reader.read(), file.read_text()) == ("old", "new")


@pytest.mark.requirement("F31")
async def test_save_keeps_hard_links(root: Path) -> None:
    (root / "one").write_text("old and longer")
    (root / "two").hardlink_to(root / "one")
    path = Workspace(root).resolve("one")

    await save(path, "new", previous=await load(path))

    assert (root / "one").samefile(root / "two")
    assert contents(root) == {"one": b"new", "two": b"new"}


# Saves a file with a hard link, while no file can grow beyond a number of bytes from the second write on.
SAVE_ON_A_DISK_THAT_FILLS_UP = """
import anyio, os, resource, sys
from pathlib import Path
from agent_lsp.errors import ToolError
from agent_lsp.tools.files import load, save
from agent_lsp.workspace import Workspace

def fill_the_disk(event, arguments):
    if event == "open" and arguments[0] == "one" and arguments[2] & os.O_WRONLY:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))

async def main():
    path = Workspace(Path(sys.argv[1])).resolve("one")
    try:
        await save(path, "new and much longer", previous=await load(path))
    except ToolError as error:
        print(error.code, error.message, sep=": ")

sys.addaudithook(fill_the_disk)
anyio.run(main)
"""


def save_on_a_disk_that_fills_up(root: Path, room: int) -> str:
    """What the tool says, and a file ``one`` with a link ``two`` that it has tried to write."""
    (root / "one").write_text("old text")
    (root / "two").hardlink_to(root / "one")
    command = [sys.executable, "-c", SAVE_ON_A_DISK_THAT_FILLS_UP, str(root), str(room)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
@pytest.mark.requirement("F31")
def test_save_leaves_the_old_content_where_the_disk_is_full(root: Path) -> None:
    said = save_on_a_disk_that_fills_up(root, room=10)

    assert said == "unwritable_file: one cannot be written: File too large\n"
    assert contents(root) == {"one": b"old text", "two": b"old text"}


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
@pytest.mark.requirement("F31")
def test_save_keeps_the_new_content_where_the_old_cannot_be_put_back(root: Path) -> None:
    said = save_on_a_disk_that_fills_up(root, room=4)

    [kept] = set(contents(root)) - {"one", "two"}
    assert said == (
        "unwritable_file: one cannot be written: File too large, and the old content could not be put back; "
        f"the new one is in {root / kept}\n"
    )
    assert (root / kept).read_bytes() == b"new and much longer"


@pytest.mark.requirement("F31")
async def test_save_writes_through_a_link_to_its_target(root: Path) -> None:
    (root / "target").write_text("old")
    (root / "link").symlink_to("target")
    path = Workspace(root).resolve("link")

    await save(path, "new", previous=await load(path))

    assert (root / "link").is_symlink()
    assert (root / "target").read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.requirement("F31")
async def test_save_keeps_the_owner(root: Path) -> None:
    file = root / "file"
    file.write_text("old")
    os.chown(file, 12345, 23456)
    path = Workspace(root).resolve("file")

    await save(path, "new", previous=await load(path))

    assert (file.stat().st_uid, file.stat().st_gid, file.read_text()) == (12345, 23456, "new")


@pytest.mark.requirement("F31")
async def test_save_makes_directories_and_a_file_that_obeys_the_umask(root: Path) -> None:
    expected = root / "plain"
    expected.write_text("")

    await save(Workspace(root).resolve("a/b/new"), "text", previous=None)

    assert (root / "a/b/new").read_text() == "text"
    assert (root / "a/b/new").stat().st_mode == expected.stat().st_mode


@pytest.mark.requirement("F33")
async def test_save_refuses_a_file_that_changed_since(root: Path) -> None:
    file = root / "file"
    file.write_text("old")
    path = Workspace(root).resolve("file")
    previous = await load(path)
    file.write_text("OLD")

    with pytest.raises(ToolError) as caught:
        await save(path, "new", previous=previous)

    assert caught.value.code == "stale_file"
    assert contents(root) == {"file": b"OLD"}


@pytest.mark.requirement("F33")
async def test_save_refuses_a_file_that_has_appeared(root: Path) -> None:
    path = Workspace(root).resolve("file")
    (root / "file").write_text("appeared")

    with pytest.raises(ToolError) as caught:
        await save(path, "new", previous=None)

    assert caught.value.code == "stale_file"
    assert (root / "file").read_text() == "appeared"


@pytest.mark.parametrize("swapped", ["directory", "directory/file"])
@pytest.mark.requirement("F23")
async def test_save_follows_no_link_that_appeared_after_resolving(root: Path, tmp_path: Path, swapped: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("secret")
    (root / "directory").mkdir()
    path = Workspace(root).resolve("directory/file")
    if swapped == "directory":
        (root / "directory").rmdir()
    (root / swapped).symlink_to(outside if swapped == "directory" else outside / "file")

    with pytest.raises(ToolError) as caught:
        await save(path, "new", previous=None)

    assert caught.value.code == "unwritable_file"
    assert (outside / "file").read_text() == "secret"


@pytest.mark.requirement("F23")
async def test_load_follows_no_link_that_appeared_after_resolving(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("secret")
    directly, through_directory = (Workspace(root).resolve(spelling) for spelling in ("file", "directory/file"))
    (root / "file").symlink_to(tmp_path / "file")
    (root / "directory").symlink_to(tmp_path)

    assert await load(through_directory) is None
    with pytest.raises(ToolError) as caught:
        await load(directly)
    assert caught.value.code == "unreadable_file"


@pytest.mark.requirement("F30")
async def test_save_refuses_characters_that_the_encoding_lacks(root: Path) -> None:
    (root / "file").write_bytes(b"caf\xe9")
    path = Workspace(root).resolve("file")

    with pytest.raises(ToolError) as caught:
        await save(path, "one\ntwo → three", previous=await load(path))

    assert caught.value.code == "cannot_encode"
    assert caught.value.message == "file is encoded as cp1252, which has no '→' (line 2)"
    assert (root / "file").read_bytes() == b"caf\xe9"


@pytest.mark.parametrize(("name", "code"), [("directory", "is_directory"), ("pipe", "unreadable_file")])
@pytest.mark.requirement("F36")
async def test_load_refuses_what_is_not_a_file(root: Path, name: str, code: str) -> None:
    (root / "directory").mkdir()
    os.mkfifo(root / "pipe")

    with pytest.raises(ToolError) as caught:
        await load(Workspace(root).resolve(name))

    assert caught.value.code == code
