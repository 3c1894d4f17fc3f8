"""Findings in what pytest prints, in each of its traceback styles.

Invariant: of pytest's text only failures, errors and the summary are read; what the tests printed and the warnings
are no findings, and no other reader sees them.
"""

import re
from collections.abc import Iterator, Sequence

from agent_lsp.validation.findings_places import Reading
from agent_lsp.validation.findings_traces import PATH, read_failure
from agent_lsp.validation.validator import Finding

_MOST = 1000
_SECTION = re.compile(r"={3,}+ (?P<title>.*\S) ={3,}$")
_TITLE = re.compile(r"_{3,}+ (?P<title>.*\S) _{3,}$")
_CAPTURED = re.compile(r"-{3,}+ Captured ")
_FINAL = re.compile(r"(?:=+ )?\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?)\b.* in \d")
_PRINTED = "-"
_CONFTEST = "ImportError while loading conftest "
_SUMMARY = re.compile(r"(?P<what>FAILED|ERROR) (?P<path>[^:\n]+?)(?:::(?P<node>\S.*?))?(?: - (?P<message>.*))?$")
_SHORT = re.compile(rf"{PATH}:(?P<line>\d{{1,9}}): (?P<message>.*)")
_OUTSIDE, _READ, _SKIPPED, _LISTED = range(4)
_SECTIONS = {
    "FAILURES": _READ,
    "ERRORS": _READ,
    "short test summary info": _LISTED,
    "test session starts": _SKIPPED,
    "warnings summary": _SKIPPED,
}


def read_pytest(reading: Reading, lines: Sequence[str]) -> tuple[list[Finding], list[str]]:
    """The findings of pytest, and the lines that are not pytest's."""
    outside: list[str] = []
    summary: list[str] = []
    blocks: list[tuple[str, list[str]]] = []
    state = _OUTSIDE
    for line in lines:
        section = _SECTION.match(line)
        if _FINAL.match(line):
            state = _OUTSIDE
        elif section:
            state = _SECTIONS.get(section["title"], _SKIPPED if state != _OUTSIDE else _OUTSIDE)
            blocks.append(("", []))
        elif line.startswith(_CONFTEST):
            state = _READ
            blocks.append((_CONFTEST, []))
        elif state == _READ:
            _add(blocks, line)
        elif state == _LISTED:
            summary.append(line)
        elif state == _OUTSIDE:
            outside.append(line)
    return _findings(reading, blocks, summary), outside


def _add(blocks: list[tuple[str, list[str]]], line: str) -> None:
    if title := _TITLE.match(line):
        blocks.append((title["title"], []))
    elif _CAPTURED.match(line):
        blocks.append((_PRINTED, []))
    elif blocks[-1][0] == _PRINTED and line.startswith("E   "):  # the style without titles has nothing else
        blocks.append(("", []))
    else:
        blocks[-1][1].append(line)


def _findings(reading: Reading, blocks: Sequence[tuple[str, list[str]]], summary: Sequence[str]) -> list[Finding]:
    found: list[Finding] = []
    seen: set[str] = set()
    for title, lines in blocks:
        if len(found) >= _MOST:
            break
        if title == _PRINTED:
            continue
        failed = list(read_failure(reading, "\n".join(lines)) if title else _read_short(reading, lines))
        found += failed
        seen.update(finding.message.split("\n", 1)[0] for finding in failed)
        if failed:
            seen.add(title.rpartition(" at setup of ")[2].rpartition(" at teardown of ")[2])
    for line in summary:
        found += _read_summary(reading, line, seen)
    return [Finding(path=one.path, line=one.line, message=one.message, tool=reading.tool or "pytest") for one in found]


def _read_short(reading: Reading, lines: Sequence[str]) -> Iterator[Finding]:
    """The style with one line a failure, which has no titles."""
    for line in lines:
        if (match := _SHORT.match(line)) and (path := reading.locate_own(match["path"])):
            yield from reading.placed(path, int(match["line"]), match["message"])


def _read_summary(reading: Reading, line: str, seen: set[str]) -> Iterator[Finding]:
    """A line of the summary, for what was not read above: it knows no line."""
    if match := _SUMMARY.match(line):
        node, message = (match["node"] or "").replace("::", "."), match["message"] or ""
        title = node or f"ERROR collecting {match['path']}"
        if title not in seen and message not in seen:
            default = f"{node} failed" if node else "Collection failed"
            yield from reading.found(match["path"], 0, message or default)
