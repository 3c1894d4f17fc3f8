"""What a validator's output says, as findings at their places in the workspace.

Invariant: any output gives findings or none, never an exception, in time linear in its length.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from agent_lsp.validation.findings_places import Reading
from agent_lsp.validation.findings_reports import go_text, read_json, read_xml, split_documents
from agent_lsp.validation.findings_text import read_text
from agent_lsp.validation.validator import Finding

MOST_FINDINGS = 1000
MOST_OUTPUT = 8 * 1024 * 1024
"""Characters of an output, and bytes of a report, that are looked at."""

_WITHOUT_DOCUMENTS = ("pytest", "unittest")
"""Tools that print no JSON or XML of their own; what the tests print may look like it."""


def read_findings(
    output: str, *, tool: str, root: Path, directory: Path, report: bytes | None = None
) -> tuple[Finding, ...]:
    """The findings in a tool's output, each once, sorted by path, line and column; at most MOST_FINDINGS, the first.

    ``output`` is what the tool printed, without terminal sequences; ``tool`` is whose it is, "" where nobody knows;
    ``directory`` is where it ran, to which the paths in the output are relative; ``report`` is a JUnit report, which
    is believed first. Paths outside of ``root`` and of files that are not there are left out.
    """
    reading = Reading(tool=tool, root=root, directory=directory)
    first = islice(_distinct(_read(reading, output, report)), MOST_FINDINGS)
    return tuple(sorted(first, key=lambda one: (one.path, one.line, one.column, one.message, one.code)))


def _read(reading: Reading, output: str, report: bytes | None) -> Iterator[Finding]:
    if report is not None and len(report) <= MOST_OUTPUT:
        reported = read_xml(reading, report.decode("utf-8-sig", "replace"))
        if reported:
            yield from reported
            return
    text = output.removeprefix("\ufeff")
    if len(text) > MOST_OUTPUT:  # tools begin with what is wrong, or end with it
        text = f"{text[: MOST_OUTPUT // 2]}\n{text[-MOST_OUTPUT // 2 :]}"
    if reading.tool not in _WITHOUT_DOCUMENTS:
        documents, reports, text = split_documents(text)
        for document in documents:
            yield from read_json(reading, document)
        for package, printed in go_text(documents):
            yield from read_text(reading, printed, package)
        for one in reports:
            found = read_xml(reading, one)
            if found is None:
                text += f"\n{one}"
            yield from found or ()
    yield from read_text(reading, text)


def _distinct(findings: Iterator[Finding]) -> Iterator[Finding]:
    seen: set[Finding] = set()
    for finding in findings:
        if finding not in seen:
            seen.add(finding)
            yield finding
