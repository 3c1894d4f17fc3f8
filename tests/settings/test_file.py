"""A settings file says what JSON says: a string has the value that any other reader of the file would find."""

import json
from pathlib import Path

import pytest

from agent_lsp.settings.file import SettingsFile, read_settings_file

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
