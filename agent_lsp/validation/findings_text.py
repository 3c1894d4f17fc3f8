"""Findings of linters, type checkers and compilers in text, as problem matchers of editors know them.

Invariant: a line is read on its own or with the few above it, in time linear in its length.
"""

import re
from collections.abc import Iterator, Sequence

from agent_lsp.validation.findings_places import Reading
from agent_lsp.validation.findings_pytest import read_pytest
from agent_lsp.validation.findings_traces import (
    GO_LOG,
    LONGEST_LINE,
    PATH,
    read_go,
    read_panics,
    read_stacks,
    read_tracebacks,
)
from agent_lsp.validation.validator import Finding

_MOST_LINES = 400_000
_WORD = r"(?P<severity>fatal error|error|warning|information|info|note|hint|help|remark)"
_LINE = r"(?P<line>\d{1,9})"
_COLUMN = r"(?P<column>\d{1,9})"

_ANNOTATION = re.compile(r"\s*+::(?P<severity>error|warning)\s++(?P<options>.*?)::(?P<message>.*)")
_PLACED = re.compile(  # mypy, ruff, flake8, gcc, rustc, javac, go, and whoever prints "path:line: message"
    rf"\s*+(?:vet: |(?:ERROR|Error|error): )?+{PATH}:{_LINE}(?::{_COLUMN}(?:-\d{{1,9}})?)?(?::\d{{1,9}}:\d{{1,9}})?"
    r":(?: |(?!\d))(?P<message>\S.*)"
)
_KOTLIN = re.compile(rf"(?P<severity>[ew]): file://{PATH}:{_LINE}:{_COLUMN} (?P<message>.*)")
_WITHOUT_LINE = re.compile(rf"{PATH}: (?P<severity>error|warning): (?P<message>.*)")
_DASHED = re.compile(rf"\s*+{PATH}:{_LINE}:{_COLUMN} - {_WORD}(?: (?P<code>TS\d{{1,9}}))?: (?P<message>.*)")
_PARENTHESES = re.compile(
    rf"\s*+(?P<path>\S.*?)\({_LINE}(?:,{_COLUMN})?(?:,\d+,\d+)?\) ?: {_WORD} (?P<code>[A-Z]+\d{{1,9}}): (?P<message>.*)"
)
_MAVEN = re.compile(
    rf"\[(?P<severity>ERROR|WARNING)\]\s++{PATH}:\[{_LINE}(?:,{_COLUMN})?\] (?:error: )?(?P<message>.*)"
)
_ARROW = re.compile(rf"\s*+--> {PATH}:{_LINE}:{_COLUMN}$")
_HEADER = re.compile(rf"{_WORD}(?:\[(?P<code>[\w:.-]+)\])?: (?P<message>.*)")
_RULE = re.compile(
    r"(?P<code>(?P<letters>[A-Z]{1,5})\d{1,5}|invalid-syntax|[a-z]+(?:-[a-z]+)+(?=:|(?: \[\*\]) ))"
    r"(?::? \[\*\]|:)? (?P<message>.*)"
)
_BRACKETED = re.compile(r"\[(?P<code>[\w-]++)(?:\([\w-]++\))?+[^\]]*+\] (?P<message>.*)")
_ROW = re.compile(rf"\s+{_LINE}:{_COLUMN}\s+(?P<message>\S.*)")
_STYLISH = re.compile(r"(?P<severity>error|warning)\s+(?P<message>\S.*)")
_PYRIGHT_RULE = re.compile(r"\((?P<code>report\w+)\)$")
_MYPY_CODE = re.compile(r"\[(?P<code>[a-z][a-z0-9-]*)\]$")
_FLAG = re.compile(r"\[(?P<code>-W[\w=+#-]+)(?:,[^\]]*)?\]$")
_UNIX = re.compile(r"\[(?P<severity>Error|Warning)(?:/(?P<code>[\w@/.-]+))?\]$")
_WARNS = re.compile(r"\w*Warning: ")
_UNFORMATTED = re.compile(r"(?:[Ww]ould reformat:? |\[warn\] |Diff in )(?P<path>[^:\n]+)(?::(?P<line>\d{1,9}):)?$")
_ENTERING = re.compile(r"\w+(?:\[\d+\])?: (?P<what>Entering|Leaving) directory ['`](?P<path>[^'\n]+)'")


def read_text(reading: Reading, text: str, package: str = "") -> Iterator[Finding]:
    """What any of the known tools said. ``package`` is that of Go tests, where it stands elsewhere."""
    lines = [line[:LONGEST_LINE].rstrip() for line in text.splitlines()]
    if len(lines) > _MOST_LINES:
        lines = lines[: _MOST_LINES // 2] + lines[-_MOST_LINES // 2 :]
    found, lines = read_pytest(reading, lines)
    yield from found
    yield from _read_places(reading, lines)
    yield from _read_arrows(reading, lines)
    yield from _read_tables(reading, lines)
    yield from read_tracebacks(reading, lines)
    yield from read_panics(reading, lines)
    yield from read_go(reading, lines, package)
    yield from read_stacks(reading, lines)


def _read_places(reading: Reading, lines: Sequence[str]) -> Iterator[Finding]:
    """Lines that say place and message at once."""
    directories: list[str] = []
    for number, line in enumerate(lines):
        if unformatted := _UNFORMATTED.match(line):
            yield from reading.found(unformatted["path"], int(unformatted["line"] or 0), "Is not formatted")
        if ":" not in line or GO_LOG.match(line):
            continue
        bases = directories[-1:]
        if match := _DASHED.match(line):
            yield from _read_dashed(reading, match, lines[number + 1 : number + 20])
        elif match := _PARENTHESES.match(line) or _MAVEN.match(line) or _KOTLIN.match(line):
            yield from reading.found(
                match["path"],
                int(match["line"]),
                match["message"],
                column=int(match["column"] or 0),
                code=match.groupdict().get("code") or "",
                severity="warning" if match["severity"] == "w" else match["severity"],
                bases=bases,
            )
        elif match := _ANNOTATION.match(line):
            yield from _read_annotation(reading, match)
        elif match := _ENTERING.match(line):
            directories = [*directories, match["path"]][-20:] if match["what"] == "Entering" else directories[:-1]
        elif match := _PLACED.match(line):
            more = lines[number + 1 : number + 6] if reading.tool == "mypy" else ()
            yield from _read_placed(reading, match, more, bases)
        elif match := _WITHOUT_LINE.match(line):
            yield from reading.found(match["path"], 0, match["message"], severity=match["severity"], bases=bases)


def _read_dashed(reading: Reading, match: re.Match[str], below: Sequence[str]) -> Iterator[Finding]:
    """tsc's pretty form, and pyright's, whose message goes on below and has the rule at its end."""
    message, code = match["message"], match["code"] or ""
    if not code:
        for line in below:
            if _PYRIGHT_RULE.search(message) or not line[:1].isspace() or _DASHED.match(line):
                break
            message += f"\n{line.strip()}"
        if rule := _PYRIGHT_RULE.search(message):
            message, code = message[: rule.start()], rule["code"]
    yield from reading.found(
        match["path"],
        int(match["line"]),
        message,
        column=int(match["column"]),
        code=code,
        severity=match["severity"],
        by="tsc" if match["code"] else "pyright",
    )


def _read_placed(
    reading: Reading, match: re.Match[str], below: Sequence[str], bases: Sequence[str]
) -> Iterator[Finding]:
    path = reading.locate(match["path"], bases)
    if not path:
        return
    severity, code, message = _split_message(match["message"])
    if not code and _HEADER.match(match["message"]):
        for number, line in enumerate(below):  # mypy --pretty wraps, and the code comes last
            if line.startswith("    ") or _PLACED.match(line):
                break
            if _MYPY_CODE.match(line, max(line.rfind("["), 0)):
                message = " ".join((message, *map(str.strip, below[: number + 1])))
                severity, code, message = _split_message(f"{severity}: {message}")
                break
    yield from reading.placed(
        path, int(match["line"]), message, column=int(match["column"] or 0), code=code, severity=severity
    )


def _split_message(message: str) -> tuple[str, str, str]:
    """Severity, code and the rest of a message; each tool puts them elsewhere."""
    last = max(message.rfind("["), 0)
    if header := _HEADER.match(message):
        severity, code, message = header["severity"], header["code"] or "", header["message"]
        last = max(message.rfind("["), 0)
        if not code and (end := _MYPY_CODE.match(message, last) or _FLAG.match(message, last)):
            return severity, end["code"], message[: end.start()].rstrip()
        return severity, code, message
    if rule := _RULE.match(message) or _BRACKETED.match(message):
        return "error", rule["code"], rule["message"]
    if unix := _UNIX.match(message, last):
        return unix["severity"], unix["code"] or "", message[: unix.start()].rstrip()
    return "warning" if _WARNS.match(message) else "error", "", message


def _read_annotation(reading: Reading, match: re.Match[str]) -> Iterator[Finding]:
    """A workflow command of GitHub; the tools repeat the place in front of the message."""
    options = dict(option.strip().partition("=")[::2] for option in match["options"].split(","))
    message = _unescaped(match["message"]).split("\n", 1)[0]
    if repeated := _PLACED.match(message):
        message = repeated["message"]
    _, code, message = _split_message(message)
    line, column = (int(value) if value[:9].isdecimal() and len(value) < 10 else 0 for value in _place(options))
    path = _unescaped(options.get("file", ""))
    yield from reading.found(path, line, message, column=column, code=code, severity=match["severity"])


def _place(options: dict[str, str]) -> tuple[str, str]:
    return options.get("line", ""), options.get("col", "")


def _unescaped(text: str) -> str:
    for escape, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, character)
    return text


def _read_arrows(reading: Reading, lines: Sequence[str]) -> Iterator[Finding]:
    """Ruff's and rustc's full form: a message, and below it an arrow to its place. Remarks have arrows too."""
    header = ("", "", "")
    for number, line in enumerate(lines):
        if match := _HEADER.match(line):
            header = (match["severity"], match["code"] or "", match["message"])
        elif match := _ARROW.match(line):
            above = lines[number - 1] if number else ""
            if rule := None if _HEADER.match(above) else _RULE.match(above):
                header = ("error", rule["code"], rule["message"])
            severity, code, message = header
            yield from reading.found(
                match["path"],
                int(match["line"]),
                message,
                column=int(match["column"]),
                code=code,
                severity=severity,
                by="ruff" if rule else "",
            )
            header = ("", "", "")


def _read_tables(reading: Reading, lines: Sequence[str]) -> Iterator[Finding]:
    """A path alone on its line, and below it rows of line, column and message: eslint, and ruff's grouped form."""
    path = ""
    for line in lines:
        if line and not line[0].isspace():
            path = line.removesuffix(":")
        elif path and (match := _ROW.match(line)):
            message = match["message"]
            if stylish := _STYLISH.match(message):
                parts = re.split(r"\s{2,}", stylish["message"])
                ruled = len(parts) > 1 and " " not in parts[-1]
                severity, code = stylish["severity"], parts.pop() if ruled else ""
                message = " ".join(parts)
            else:
                severity, code, message = _split_message(message)
            yield from reading.found(
                path,
                int(match["line"]),
                message,
                column=int(match["column"]),
                code=code,
                severity=severity,
                by="eslint" if stylish else "ruff",
            )
