"""Code lenses, for editors that opt in: *Ask the agent* above tests and above lines that validators found wrong."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from lsprotocol import types

from agent_lsp.lsp.code_actions import prompt_argument

_TESTS = re.compile(
    r"""^[ \t]*(?:
        (?:async[ \t]+)?def[ \t]+(?P<python>test\w*)[ \t]*\(                 # Python
        |(?:it|test)(?:\.\w+)*\([ \t]*(?P<quote>["'`])(?P<script>.*?)(?P=quote)  # JavaScript, TypeScript
        |func[ \t]+(?P<go>Test\w*)[ \t]*\(                                   # Go
        |(?:\#\[(?:\w+::)*test\b|@(?:Parameterized)?Test\b)                   # Rust, Java, Kotlin: the next line's
    )""",
    re.MULTILINE | re.VERBOSE,
)
_TITLE = "Ask the agent"
_MOST = 500  # lenses of one document


def code_lenses(uri: str, text: str, findings: Sequence[types.Diagnostic]) -> list[types.CodeLens]:
    """The lenses of a document with this text, in the order of its lines."""
    lenses = [*islice(_above_tests(uri, text), _MOST), *(_above(uri, finding) for finding in findings)]
    return sorted(lenses, key=lambda lens: lens.range.start.line)[:_MOST]


def _above_tests(uri: str, text: str) -> Iterator[types.CodeLens]:
    line, counted = 0, 0
    for match in _TESTS.finditer(text):
        line, counted = line + text.count("\n", counted, match.end()), match.end()
        name = match["python"] or match["script"] or match["go"]
        which = f"the test {name!r}" if name else "this test"
        yield _lens(
            uri, line, f"Run {which} with the project's own runner. If it fails, find out why and mend the code."
        )


def _above(uri: str, finding: types.Diagnostic) -> types.CodeLens:
    return _lens(uri, finding.range.start.line, f"Fix this problem and nothing else: {finding.message}")


def _lens(uri: str, line: int, prompt: str) -> types.CodeLens:
    span = types.Range(types.Position(line, 0), types.Position(line, 0))
    argument = prompt_argument(prompt, uri, span)
    return types.CodeLens(range=span, command=types.Command(title=_TITLE, command="agent.run", arguments=[argument]))
