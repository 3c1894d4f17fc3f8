"""Configured hooks as values: the ``hooks`` section of a settings file, read entry by entry (B1 to B7).

Invariant: an entry with a mistake is left out and reported, and never keeps the others from loading (B4).
"""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from agent_lsp.hooks.matcher import ANY, Matcher, parse_alternatives, parse_matcher
from agent_lsp.workspace import Place

EVENTS = (
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "PostStopValidation",
    "Notification",
    "TaskCreated",
    "TaskCompleted",
    "SessionStart",
    "SessionEnd",
    "SubagentStop",
)
"""The events that can be configured (B3)."""

STOP = "Stop"
"""Accepted in settings too, as the established shape's Stop command hook (R13)."""

VALIDATION = "PostStopValidation"

BLOCKING_EVENTS = ("PreToolUse", "UserPromptSubmit", "TaskCreated", "TaskCompleted", STOP)
"""Where a block is heeded (B7); PostStopValidation fails softly, all others observe."""

DEFAULT_SECONDS = 60.0

HookType: TypeAlias = Literal["command", "prompt", "http"]
OnFailure: TypeAlias = Literal["ignore", "ask", "block"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredHook:
    """One hook of a settings file. ``target`` is the command, the prompt or the URL; ``timeout`` is in seconds.

    ``established`` marks an entry in the shape of other agents, ``{matcher, hooks: [...]}``: it gets their payload
    keys and tool names beside ours, and blocks as it would there.
    """

    event: str
    type: HookType
    target: str | tuple[str, ...]
    place: Place
    name: str
    matcher: Matcher = ANY
    condition: Matcher | None = None
    blocking: bool = False
    timeout: float = DEFAULT_SECONDS
    headers: tuple[tuple[str, str], ...] = ()
    on_failure: OnFailure = "ignore"
    established: bool = False

    @property
    def text(self) -> str:
        """What the hook runs, in one line, for people."""
        return self.target if isinstance(self.target, str) else shlex.join(self.target)


Report: TypeAlias = Callable[[str, str], None]
"""Hears each mistake: the dotted key of the value, and what is wrong with it."""


def parse_hooks(section: Any, place_of: Callable[[str], Place], report: Report) -> list[ConfiguredHook]:
    """Read a ``hooks`` section; ``place_of`` says where a dotted key such as ``hooks.PreToolUse.0`` stands."""
    if not isinstance(section, Mapping):
        report("hooks", "expected an object that maps events to lists of hooks")
        return []
    found: list[ConfiguredHook] = []
    for event, entries in section.items():
        key = f"hooks.{event}"
        if event not in (*EVENTS, STOP):
            report(key, f"unknown event; known are {', '.join(EVENTS)}")
        elif not isinstance(entries, list | tuple):
            report(key, "expected a list of hooks")
        else:
            for index, entry in enumerate(entries):
                found += _parse_entry(str(event), entry, f"{key}.{index}", place_of, report)
    return found


def _parse_entry(
    event: str, entry: Any, key: str, place_of: Callable[[str], Place], report: Report
) -> list[ConfiguredHook]:
    """One entry, or, in the established shape, the group of hooks under one matcher."""
    if not isinstance(entry, Mapping):
        report(key, "expected an object")
        return []
    if "hooks" not in entry:
        return _checked(event, entry, key, place_of(key), report, established=False)
    inner = entry["hooks"]
    if not isinstance(inner, list | tuple):
        report(f"{key}.hooks", "expected a list of hooks")
        return []
    group = {name: value for name, value in entry.items() if name != "hooks"}
    found: list[ConfiguredHook] = []
    for index, item in enumerate(inner):
        place = f"{key}.hooks.{index}"
        if not isinstance(item, Mapping):
            report(place, "expected an object")
            continue
        found += _checked(event, {**group, **item}, place, place_of(place), report, established=True)
    return found


class _Mistake(Exception):
    """A value that cannot be used; its key below the entry, and what is wrong."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key, self.message = key, message


def _checked(
    event: str, entry: Mapping[str, Any], key: str, place: Place, report: Report, *, established: bool
) -> list[ConfiguredHook]:
    try:
        return [_hook(event, entry, place, established=established)]
    except _Mistake as mistake:
        report(".".join(filter(None, (key, mistake.key))), f"{mistake.message}; the hook is left out")
        return []


_KEYS = frozenset(
    {"type", "command", "prompt", "url", "headers", "matcher", "if", "blocking", "timeout", "name", "on_failure"}
)
_TARGETS: dict[str, str] = {"command": "command", "prompt": "prompt", "http": "url"}


def _hook(event: str, entry: Mapping[str, Any], place: Place, *, established: bool) -> ConfiguredHook:
    unknown = sorted(set(entry) - _KEYS)
    if unknown and not established:  # what another agent's entry has beyond ours is not a mistake of its author
        raise _Mistake(unknown[0], f"unknown key; known are {', '.join(sorted(_KEYS))}")
    type_ = _one_of(entry, "type", get_args(HookType))
    if type_ is None:
        raise _Mistake("type", "is missing: command, prompt or http")
    target = _target(entry, type_)
    return ConfiguredHook(
        event=event,
        type=type_,
        target=target,
        place=place,
        name=_value(entry, "name", str, "a string") or _default_name(type_, target),
        matcher=_matcher(entry, "matcher", parse_alternatives if established else parse_matcher) or ANY,
        condition=_matcher(entry, "if", parse_matcher),
        blocking=_blocking(entry, event, established=established),
        timeout=_timeout(entry),
        headers=_headers(entry),
        on_failure=_one_of(entry, "on_failure", get_args(OnFailure)) or "ignore",
        established=established,
    )


def _value(entry: Mapping[str, Any], key: str, kind: type, expected: str) -> Any:
    value = entry.get(key)
    if value is not None and (not isinstance(value, kind) or (kind is not bool and isinstance(value, bool))):
        raise _Mistake(key, f"expected {expected}")
    return value


def _one_of(entry: Mapping[str, Any], key: str, known: tuple[Any, ...]) -> Any:
    value = entry.get(key)
    if value is not None and value not in known:
        raise _Mistake(key, f"unknown; known are {', '.join(known)}")
    return value


def _target(entry: Mapping[str, Any], type_: str) -> str | tuple[str, ...]:
    key = _TARGETS[type_]
    value = entry.get(key)
    if type_ == "command" and isinstance(value, list | tuple):
        if not value or not all(isinstance(word, str) and "\0" not in word for word in value) or not value[0]:
            raise _Mistake(key, "expected a list of strings that begins with a program")
        return tuple(value)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise _Mistake(key, "is missing or empty")
    return value


def _matcher(entry: Mapping[str, Any], key: str, parse: Callable[[str], Matcher]) -> Matcher | None:
    text = _value(entry, key, str, "a string")
    if text is None:
        return None
    try:
        return parse(text)
    except ValueError as error:
        raise _Mistake(key, str(error)) from error


def _blocking(entry: Mapping[str, Any], event: str, *, established: bool) -> bool:
    value = _value(entry, "blocking", bool, "true or false")
    return event in BLOCKING_EVENTS and (established or event == STOP if value is None else bool(value))


def _timeout(entry: Mapping[str, Any]) -> float:
    value = _value(entry, "timeout", int | float, "a number of seconds")  # type: ignore[arg-type]
    try:
        return DEFAULT_SECONDS if value is None or not value > 0 else float(value)
    except OverflowError as error:
        raise _Mistake("timeout", "expected a number of seconds") from error


def _headers(entry: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    headers = _value(entry, "headers", dict, "an object of strings") or {}
    for name, value in headers.items():
        if (
            not isinstance(value, str)
            or re.search(r"[\r\n\0]", f"{name}{value}")
            or not re.fullmatch(r"[!-9;-~]+", name)
        ):
            raise _Mistake("headers", "expected an object of strings that can stand in an HTTP header")
    return tuple(headers.items())


def _default_name(type_: str, target: str | tuple[str, ...]) -> str:
    """The beginning of what a hook runs; of a URL the host alone, because the rest may hold secrets (F76)."""
    text = target if isinstance(target, str) else " ".join(target)
    if type_ == "http":
        try:
            url = urlsplit(text)
        except ValueError:
            return "http"
        text = f"{url.scheme}://{url.hostname}" if url.hostname else "http"
    return _short(text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"
