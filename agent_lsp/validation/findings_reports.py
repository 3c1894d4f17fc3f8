"""Findings in structured output: JSON of linters and compilers, SARIF, JUnit and Checkstyle XML.

Invariant: nothing in a document is trusted to have the type that its format says; what has another is left out.
"""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import TypeAlias

from agent_lsp.validation.findings_places import Reading
from agent_lsp.validation.findings_text import read_text
from agent_lsp.validation.findings_traces import read_failure
from agent_lsp.validation.validator import Finding

Object: TypeAlias = dict[str, object]

_START = re.compile(r"^(?:\[\s*+[{\]]|\{\s*+[\"}])", re.MULTILINE)
_XML = re.compile(r"^[ \t]*+(?:<\?xml[^<>]*+>\s*+)?+<(?P<root>testsuites?|checkstyle)\b", re.MULTILINE)
_MOST_FAILURES = 64
_DOCTYPE = re.compile(r"\A(?>\s+|<\?.*?\?>|<!--.*?-->)*+<!DOCTYPE", re.DOTALL)
_LINT_BODY = re.compile(r"\s*+line (?P<line>\d{1,9}), col (?P<column>\d{1,9}), ")


def split_documents(text: str) -> tuple[list[object], list[str], str]:
    """The JSON documents and the XML reports that begin a line, and the text without them."""
    documents: list[object] = []
    rest: list[str] = []
    position, failures = 0, 0
    while start := _START.search(text, position):
        rest.append(text[position : start.start()])
        end = text.find("\n", start.start()) + 1 or len(text)
        try:
            document, position = _decode(text, start.start(), end, within_line=failures >= _MOST_FAILURES)
            documents.append(document)
        except (RecursionError, ValueError):  # also nested too deeply, or a number too long
            failures += 1
            rest.append(text[start.start() : end])
            position = end
    reports, plain = _split_xml("".join(rest) + text[position:])
    return documents, reports, plain


def _decode(text: str, start: int, end: int, *, within_line: bool) -> tuple[object, int]:
    """A document that is one line, or goes on below it. The time of a failure grows with the text before it, which
    is why but a few longer ones are tried.
    """
    decoder = json.JSONDecoder()
    line = text[start:end]
    try:
        document, length = decoder.raw_decode(line)
        return document, start + length
    except ValueError:
        if within_line:
            raise
        return decoder.raw_decode(text, start)


def _split_xml(text: str) -> tuple[list[str], str]:
    reports: list[str] = []
    rest: list[str] = []
    position = 0
    while start := _XML.search(text, position):
        tag = f"</{start['root']}>"
        end = text.find(tag, start.end())
        if end < 0:
            break
        rest.append(text[position : start.start()])
        position = end + len(tag)
        reports.append(text[start.start() : position].strip())
    return reports, "".join(rest) + text[position:]


def read_xml(reading: Reading, text: str) -> list[Finding] | None:
    """The findings of a JUnit or Checkstyle report; None where it is broken or refused.

    A document type is refused before parsing: the reports have none, and its entities could be made to grow without
    end or to read other files. Without one, the standard library's parser is safe.
    """
    if _DOCTYPE.match(text):
        return None
    try:
        root = ET.fromstring(text)  # noqa: S314 - a document type was refused above
    except (ET.ParseError, ValueError):
        return None
    found: list[Finding] = []
    for suite in root.iter("testsuite"):
        for case in suite.findall("testcase"):
            for failure in (*case.findall("failure"), *case.findall("error")):
                found += _read_case(reading, suite, case, failure)
    for file in root.iter("file"):
        for error in file.findall("error"):
            found += reading.found(
                file.get("name", ""),
                _digits(error.get("line", "")),
                error.get("message", ""),
                column=_digits(error.get("column", "")),
                code=error.get("source", "").removeprefix("eslint.rules."),
                severity=error.get("severity", "error"),
            )
    return found


def _read_case(reading: Reading, suite: ET.Element, case: ET.Element, failure: ET.Element) -> list[Finding]:
    """A failed test at its assertion, else wherever else the report says that it is."""
    message, body = failure.get("message", ""), failure.text or ""
    name, owner = case.get("name", ""), case.get("classname", "")
    if owner == "mypy":
        return list(read_text(reading, body))
    if name.startswith(("org.ruff.", "org.eslint.")):
        place = _LINT_BODY.match(body)
        line, column = (int(place["line"]), int(place["column"])) if place else (0, 0)
        code = name.split(".", 2)[2]
        return list(reading.found(suite.get("name", ""), line, message, column=column, code=code))
    return (
        list(read_failure(reading, body, message))
        or list(read_text(reading, body, owner))[:1]
        or list(reading.found(case.get("file", ""), 0, message or body))
        or list(_read_by_name(reading, owner, message or body or name))
    )


def _read_by_name(reading: Reading, owner: str, message: str) -> Iterator[Finding]:
    """A test whose report has but a dotted name: of a file, or of a class in one."""
    for name in (owner, owner.rpartition(".")[0]):
        path = reading.locate(f"{name.replace('.', '/')}.py") or reading.locate(name)
        if path:
            yield from reading.placed(path, 0, message)
            return


def read_json(reading: Reading, document: object) -> Iterator[Finding]:
    """The findings of one JSON document: a list or an object of any known tool, or anything with path and message."""
    for item in _objects([document] if isinstance(document, dict) else document):
        if "runs" in item:
            for run in _objects(item["runs"]):
                yield from _read_sarif(reading, run)
        elif "generalDiagnostics" in item:
            for diagnostic in _objects(item["generalDiagnostics"]):
                yield from _read_any(reading, diagnostic, "pyright")
        elif "messages" in item and "filePath" in item:
            yield from _read_eslint(reading, item)
        elif item.get("reason") == "compiler-message" or "$message_type" in item:
            yield from _read_rustc(reading, _object(item.get("message")) or item)
        elif "testResults" in item:
            yield from _read_jest(reading, item)
        else:
            for diagnostic in _objects(item.get("diagnostics")) or [item]:
                yield from _read_any(reading, diagnostic)


def go_text(documents: list[object]) -> Iterator[tuple[str, str]]:
    """Each package that ``go test -json`` ran, and what it printed as text."""
    packages: dict[str, list[str]] = {}
    for item in _objects(documents):
        if item.get("Action") == "output":
            packages.setdefault(_text(item, "Package"), []).append(_text(item, "Output"))
    for package, pieces in packages.items():
        yield package, "".join(pieces)


def _read_any(reading: Reading, item: Object, by: str = "") -> Iterator[Finding]:
    """ruff, mypy, pyright, pylint and others: they differ in names and in whether they count from 0."""
    place = _object(item.get("location"))
    start = _object(_object(item.get("range")).get("start"))
    begin = _object(_object(place.get("range")).get("start")) or _object(_object(place.get("positions")).get("begin"))
    where = start or begin or (place if "row" in place or "line" in place else item)
    from_zero = "character" in start
    line, column = _number(where, "line", "row"), _number(where, "column", "character", "col")
    counted_from_zero = from_zero or ("hint" in item and "end_column" in item) or "message-id" in item
    if "end_location" in item:
        by = "ruff"
    elif "hint" in item:
        by = "mypy"
    code = _text(item, "code", "rule", "ruleId", "check_name", "message-id") or _text(
        _object(item.get("code")), "value"
    )
    message = _text(item, "message", "description", "text") or _text(_object(item.get("message")), "text")
    yield from reading.found(
        _text(item, "file", "filename", "path", "filePath", "uri") or _text(place, "path"),
        line + from_zero,
        message.removeprefix(f"{code}: "),
        column=column + counted_from_zero,
        code=code,
        severity=_text(item, "severity", "level", "type") or "error",
        by=by,
    )


def _read_eslint(reading: Reading, item: Object) -> Iterator[Finding]:
    for message in _objects(item["messages"]):
        yield from reading.found(
            _text(item, "filePath"),
            _number(message, "line"),
            _text(message, "message"),
            column=_number(message, "column"),
            code=_text(message, "ruleId"),
            severity="warning" if message.get("severity") == 1 else "error",
            by="eslint",
        )


def _read_rustc(reading: Reading, message: Object) -> Iterator[Finding]:
    for span in _objects(message.get("spans")):
        if span.get("is_primary") is True:
            yield from reading.found(
                _text(span, "file_name"),
                _number(span, "line_start"),
                _text(message, "message"),
                column=_number(span, "column_start"),
                code=_text(_object(message.get("code")), "code"),
                severity=_text(message, "level"),
                by="cargo",
            )
            return


def _read_jest(reading: Reading, item: Object) -> Iterator[Finding]:
    for suite in _objects(item["testResults"]):
        failures = [
            failure
            for test in _objects(suite.get("assertionResults"))
            for failure in _strings(test.get("failureMessages"))
        ]
        for failure in failures:
            yield from read_failure(reading, failure)
        if not failures and suite.get("status") == "failed":
            yield from reading.found(_text(suite, "name"), 0, _text(suite, "message"))


def _read_sarif(reading: Reading, run: Object) -> Iterator[Finding]:
    driver = _object(_object(run.get("tool")).get("driver"))
    bases = _object(run.get("originalUriBaseIds"))
    for result in _objects(run.get("results")):
        if result.get("suppressions") or result.get("kind", "fail") != "fail":
            continue
        location = next(iter(_objects(result.get("locations"))), {})
        place = _object(location.get("physicalLocation"))
        artifact, region = _object(place.get("artifactLocation")), _object(place.get("region"))
        base = _text(_object(bases.get(_text(artifact, "uriBaseId"))), "uri")
        yield from reading.found(
            base.rstrip("/") + "/" + _text(artifact, "uri") if base else _text(artifact, "uri"),
            _number(region, "startLine"),
            _text(_object(result.get("message")), "text"),
            column=_number(region, "startColumn"),
            code=_text(result, "ruleId"),
            severity=_text(result, "level") or "warning",  # as the standard says
            by=_text(driver, "name").lower(),
        )


def _objects(value: object) -> list[Object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _object(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _text(item: Object, *keys: str) -> str:
    """The first of the keys that has a text."""
    return next((value for key in keys if isinstance(value := item.get(key), str)), "")


def _number(item: Object, *keys: str) -> int:
    """The first of the keys that has a number."""
    return next((value for key in keys if isinstance(value := item.get(key), int)), 0)


def _digits(text: str) -> int:
    return int(text) if len(text) < 10 and text.isascii() and text.isdecimal() else 0
