"""Reads one settings file: JSON with comments and trailing commas, each value with its line and column."""

import contextlib
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_lsp.workspace import Place

MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """A file that could be read. ``places`` maps dotted keys, list indexes included, to where their value stands."""

    values: Mapping[str, Any]
    places: Mapping[str, Place] = field(default_factory=dict)
    duplicates: tuple[tuple[str, Place], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableFile:
    """A file that is there and cannot be used."""

    place: Place
    message: str


def read_settings_file(path: Path) -> SettingsFile | UnreadableFile | None:
    """Read a file; None where there is none."""
    try:
        text = _text(path)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        return UnreadableFile(place=Place(source=str(path)), message=_first_line(error))
    if not text.strip():
        return SettingsFile(values={})
    return _parse(text, str(path))


def _text(path: Path) -> str:
    """The text of a file. A workspace brings its own files, and one may be a link to what has no end or waits."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a regular file")
        if status.st_size > MAX_BYTES:
            raise OSError("larger than 1 MiB")
        with os.fdopen(descriptor, encoding="utf-8-sig", closefd=False) as file:
            return file.read(MAX_BYTES)
    finally:
        os.close(descriptor)


def _parse(text: str, source: str) -> SettingsFile | UnreadableFile:
    from json5.loader import DefaultLoader, ModelLoader, loads  # only where a settings file exists
    from json5.utils import JSON5DecodeError

    try:
        # JSON has these two characters in strings; JSON5 as json-five reads it has not.
        model = loads(text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"), loader=ModelLoader())
        _decode_strings(model.value)
        values = DefaultLoader().load(model)
    except JSON5DecodeError as error:
        return UnreadableFile(place=_error_place(error, source), message="not valid JSON")
    except RecursionError:
        return UnreadableFile(place=Place(source=source), message="nested too deeply")
    except ValueError as error:  # such as a number with thousands of digits
        return UnreadableFile(place=Place(source=source), message=_first_line(error))
    if not isinstance(values, dict):
        return UnreadableFile(place=Place(source=source, line=1, column=1), message="expected an object")
    if (bad := _not_json(values)) is not None:
        return UnreadableFile(place=Place(source=source), message=f"{bad} is not a JSON number")
    places: dict[str, Place] = {}
    duplicates = []
    for key, node in _walk(model.value, ""):
        place = Place(source=source, line=node.lineno, column=node.col_offset + 1)
        if key in places:
            duplicates.append((key, place))
        places[key] = place
    return SettingsFile(values=values, places=places, duplicates=tuple(duplicates))


def _decode_strings(node: Any) -> None:
    """Give each string of a tree its JSON value; json-five decodes escapes twice and leaves surrogates in two."""
    from json5.model import DoubleQuotedString, JSONArray, JSONObject

    if isinstance(node, JSONObject):
        for pair in node.key_value_pairs:
            _decode_strings(pair.key)
            _decode_strings(pair.value)
    elif isinstance(node, JSONArray):
        for value in node.values:
            _decode_strings(value)
    elif isinstance(node, DoubleQuotedString):
        with contextlib.suppress(ValueError):  # what JSON does not know, such as \x41, JSON5 does
            node.characters = json.loads(node.raw_value)


def _error_place(error: Exception, source: str) -> Place:
    """Where json-five stumbled; it says so in its message alone."""
    found = re.search(r"line (\d+) column (\d+)", str(error))
    return Place(source=source, line=int(found[1]), column=int(found[2])) if found else Place(source=source)


def _walk(node: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Each value below a node of json-five's tree, with its dotted key."""
    from json5.model import JSONArray, JSONObject

    if isinstance(node, JSONObject):
        for pair in node.key_value_pairs:
            key = f"{prefix}{getattr(pair.key, 'name', None) or getattr(pair.key, 'characters', '')}"
            yield key, pair.value
            yield from _walk(pair.value, f"{key}.")
    elif isinstance(node, JSONArray):
        for index, value in enumerate(node.values):
            yield f"{prefix}{index}", value
            yield from _walk(value, f"{prefix}{index}.")


def _not_json(value: Any) -> float | None:
    """The first number in a value that JSON does not have."""
    match value:
        case float() if not math.isfinite(value):
            return value
        case dict():
            return next((bad for item in value.values() if (bad := _not_json(item)) is not None), None)
        case list():
            return next((bad for item in value if (bad := _not_json(item)) is not None), None)
    return None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
