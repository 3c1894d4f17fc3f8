"""What the editor's own language servers report, as far as the editor tells us.

A client of ours is asked. Of the others we know what they send along with a request for code actions.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lsprotocol import types

from agent_lsp.lsp.diagnostics import SOURCE
from agent_lsp.lsp.documents import EditorDocuments
from agent_lsp.workspace import FileProblems, Problem

_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
_FILES_KEPT = 200


class SeenProblems:
    """Diagnostics of others, by document, from what clients send with requests for code actions."""

    def __init__(self, documents: EditorDocuments) -> None:
        self._documents = documents
        self._seen: dict[Path, tuple[int | None, tuple[Problem, ...]]] = {}

    def note(self, params: types.CodeActionParams) -> None:
        """Take what stands at the place of a request; what was known of other places stays while the text does.

        Nothing at a place says nothing: a request for one kind of action may come without them.
        """
        path, span = self._documents.path(params.text_document.uri), params.range
        if path is None or not params.context.diagnostics:
            return
        version = self._documents.version(path)
        before, known = self._seen.pop(path, (version, ()))
        kept = known if before == version else ()
        elsewhere = (each for each in kept if not span.start.line <= each.line - 1 <= span.end.line)
        here = (_problem(each) for each in params.context.diagnostics if each.source != SOURCE)
        found = tuple(sorted({*elsewhere, *here}, key=lambda each: (each.line, each.column, each.message)))
        if found:
            self._seen[path] = version, found
        while len(self._seen) > _FILES_KEPT:
            del self._seen[next(iter(self._seen))]

    def of(self, path: Path | None) -> tuple[FileProblems, ...]:
        """What is known of one file, or of all."""
        return tuple(
            FileProblems(path=place, problems=problems, is_current=self._documents.version(place) == version)
            for place, (version, problems) in self._seen.items()
            if path in (None, place)
        )


def read_problems(answer: object, documents: EditorDocuments) -> tuple[FileProblems, ...]:
    """What a client of ours answered; of what has another shape, nothing."""
    reports = answer if isinstance(answer, list) else []
    return tuple(report for each in reports if (report := _report(each, documents)) is not None)


def _report(report: object, documents: EditorDocuments) -> FileProblems | None:
    match report:
        case {"uri": str(uri), "diagnostics": list(diagnostics), **rest} if (path := documents.path(uri)) is not None:
            version, held = rest.get("version"), documents.version(path)
            problems = tuple(_plain_problems(diagnostics))
            return FileProblems(path=path, problems=problems, is_current=None in (version, held) or version == held)
    return None


def _plain_problems(diagnostics: Iterable[object]) -> Iterable[Problem]:
    for each in diagnostics:
        match each:
            case {"range": {"start": {"line": int(line), "character": int(character)}}, "message": str(message)} if (
                isinstance(each, Mapping) and each.get("source") != SOURCE
            ):
                yield _named(line, character, message, each.get("severity"), each.get("source"), each.get("code"))


def _problem(diagnostic: types.Diagnostic) -> Problem:
    start = diagnostic.range.start
    severity = None if diagnostic.severity is None else diagnostic.severity.value
    return _named(start.line, start.character, diagnostic.message, severity, diagnostic.source, diagnostic.code)


def _named(line: int, character: int, message: str, severity: Any, source: Any, code: Any) -> Problem:
    return Problem(
        line=line + 1,
        column=character + 1,
        message=message,
        severity=_SEVERITIES.get(severity, "error"),
        source="" if source is None else str(source),
        code="" if code is None else str(code),
    )
