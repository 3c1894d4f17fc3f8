"""A settings file says what JSON says: a string has the value that any other reader of the file would find."""

import json
import os
import sys
from pathlib import Path

import pytest

from agent_lsp.settings.file import MAX_BYTES, SettingsFile, UnreadableFile, read_settings_file
from agent_lsp.workspace import Place

ESCAPED = ["a\\nb", 'a\\"b', "C:\\temp", "\\\\d", "it's", "grün", "\t", "/", "\\'", "{}", "//", "/* */"]
ESCAPED += ["\\u0041", "\\x41", "grep '\\u00e9'", "\U0001f600", "\u2028", "a\u2029b"]
PLAIN = ["grün", "\U0001f600", "\x7f", "\u2028", "a\u2029b"]


def value(tmp_path: Path, raw: str) -> object:
    """What a file's one value is read as."""
    file = tmp_path / "settings.json"
    file.write_text(f'{{"key": {raw}}}', encoding="utf-8")
    read = read_settings_file(file)
    assert isinstance(read, SettingsFile)
    return read.values["key"]


@pytest.mark.requirement("S2-errors")
@pytest.mark.parametrize("text", ESCAPED)
def test_escaped_string_has_its_json_value(tmp_path: Path, text: str) -> None:
    assert value(tmp_path, json.dumps(text)) == text


@pytest.mark.requirement("S2-errors")
@pytest.mark.parametrize("text", PLAIN)
def test_plain_string_has_its_json_value(tmp_path: Path, text: str) -> None:
    assert value(tmp_path, json.dumps(text, ensure_ascii=False)) == text


def why_unreadable(file: Path) -> str:
    read = read_settings_file(file)
    assert isinstance(read, UnreadableFile)
    assert read.place == Place(source=str(file))
    return read.message


@pytest.mark.requirement("S2-errors")
@pytest.mark.parametrize("target", ["/dev/zero", "fifo", "."])
@pytest.mark.skipif(sys.platform == "win32", reason="has other devices")
def test_only_a_regular_file_is_read(tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    file = tmp_path / "settings.json"
    file.symlink_to(target)

    assert why_unreadable(file) == "not a regular file"


@pytest.mark.requirement("S2-errors")
def test_a_terminal_is_not_read(tmp_path: Path) -> None:
    master, slave = os.openpty()
    file = tmp_path / "settings.json"
    file.symlink_to(os.ttyname(slave))

    assert why_unreadable(file) == "not a regular file"
    os.close(master)
    os.close(slave)


@pytest.mark.requirement("S2-errors")
def test_a_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}".ljust(MAX_BYTES))
    assert read_settings_file(file) == SettingsFile(values={})

    file.write_text("{}".ljust(MAX_BYTES + 1))
    assert why_unreadable(file) == "larger than 1 MiB"
