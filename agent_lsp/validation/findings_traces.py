"""Failed tests in text: tracebacks of Python, stacks of JavaScript and Java, panics of Rust and Go, Go's test log.

Invariant: a failure is placed at the innermost frame that is the project's own; a failure without one is placed at
its test file, or is left out.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agent_lsp.validation.findings_places import Reading, headline
from agent_lsp.validation.validator import Finding

LONGEST_LINE = 4000
"""What is looked at of one line."""

PATH = r"(?P<path>(?:[A-Za-z]:(?=[\\/]))?[^:\s][^:\n]*+)"
"""A path up to the first colon, or the second after a drive. It is possessive, as are the spaces before it, so that
no line takes more than linear time."""

_PYTHON_FRAME = re.compile(r'(?:E\s)?\s*+File "(?P<path>[^"\n]+)", line (?P<line>\d{1,9})')
_PYTEST_FRAME = re.compile(rf"{PATH}:(?P<line>\d{{1,9}}):(?: in \S.*|| [\w.]+)$")
_SCRIPT_FRAME = re.compile(r"\s*+(?:\u276f|at)\s++(?P<where>.*?):(?P<line>\d{1,9}):(?P<column>\d{1,9})\)?$")
_JAVA_FRAME = re.compile(r"\s*at (?P<name>[^\s()]+)\((?P<file>\w+\.(?:java|kt|scala|groovy)):(?P<line>\d{1,9})\)")
_JAVA_SOURCES = ("src/test/java", "src/main/java", "src/test/kotlin", "src/main/kotlin", "src", "test", ".")
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_SUITE = re.compile(r"\s*FAIL\s+(?P<path>\S+)")
_ALONE = re.compile(rf"\s*+{PATH}:(?P<line>\d{{1,9}})$")
_RAISED = re.compile(r"\s*(?:Uncaught )?[\w.$]*(?:Error|Exception)\b")
_PANIC = re.compile(rf"{PATH}:(?P<line>\d{{1,9}}):(?P<column>\d{{1,9}}):?$")
_GO_PACKAGE = re.compile(r"(?:FAIL|ok {0,2}|---)\t(?P<package>\S+)(?:\t|\s*$)")
GO_LOG = re.compile(r"\s+(?P<path>[^:\s]+\.go):(?P<line>\d{1,9}): ?(?P<message>.*)")
_GO_ERROR = re.compile(r"\s*Error:\s+(?P<message>\S.*)")
_GO_FRAME = re.compile(rf"\t{PATH}:(?P<line>\d{{1,9}}) \+0x")


class Frame(NamedTuple):
    """A place in a stack; ``path`` is relative to the workspace."""

    path: str
    line: int
    column: int = 0


def read_failure(reading: Reading, body: str, message: str = "") -> Iterator[Finding]:
    """One failed test from its text alone, as in a JUnit report; ``message`` is used where the text has none."""
    lines = [line[:LONGEST_LINE].rstrip() for line in body.splitlines()]
    errors = _pytest_message(lines)
    if frame := _last_python_frame(reading, lines):
        raised = [line for line in lines if _RAISED.match(line)]
        message = errors or headline(message) or (raised[-1] if raised else headline(body))
    else:
        frame = next(filter(None, (_stack_frame(reading, line) for line in lines)), None)
        message = headline(message) or headline(body)
    if frame:
        yield from reading.placed(frame.path, frame.line, message, column=frame.column)


def _last_python_frame(reading: Reading, lines: Sequence[str]) -> Frame | None:
    for line in reversed(lines):
        match = _PYTHON_FRAME.match(line) or _PYTEST_FRAME.match(line)
        if match and (path := reading.locate_own(match["path"])):
            return Frame(path, int(match["line"]))
    return None


def _pytest_message(lines: Sequence[str]) -> str:
    """The first of the last group of ``E`` lines: that of the exception that the last frames belong to."""
    group: list[str] = []
    for line, before in zip(lines, ("", *lines), strict=False):
        if line.startswith("E  "):
            if before != "E" and not before.startswith("E  "):
                group = []
            group.append(line[1:])
    if group and group[0].strip().startswith('File "'):  # of a SyntaxError, whose message stands last
        return group[-1].strip()
    return headline("\n".join(group))


def read_tracebacks(reading: Reading, lines: Sequence[str]) -> Iterator[Finding]:
    """Python's own tracebacks, as unittest prints them; of a chain of exceptions, the last."""
    inside = False
    frame: Frame | None = None
    waiting: list[Finding] = []
    for line in lines:
        if match := _PYTHON_FRAME.match(line):
            frame = (Frame(path, int(match["line"])) if (path := reading.locate_own(match["path"])) else None) or frame
            inside = True
        elif line.startswith("Traceback (most recent call last)"):
            yield from waiting
            inside, frame, waiting = True, None, []
        elif inside and line and not line[0].isspace():
            yield from waiting
            waiting = list(reading.placed(frame.path, frame.line, line)) if frame else []
            inside, frame = False, None
        elif line.startswith(_CHAINED):
            waiting = []
    yield from waiting


class _Block:
    """What has been read of one failed test of JavaScript."""

    def __init__(self, suite: str = "") -> None:
        self.suite = suite
        self.lines: list[str] = []
        self.alone: Frame | None = None
        self.open = bool(suite)

    def add(self, line: str) -> None:
        if len(self.lines) < 10:
            self.lines.append(line)


def read_stacks(reading: Reading, lines: Sequence[str]) -> Iterator[Finding]:
    """Failed tests of vitest and jest, and stacks of Node and Java: the first frame that is the project's own."""
    block = _Block()
    raised = ""
    for line in lines:
        suite = _SUITE.match(line)
        if (suite and (path := reading.locate(suite["path"]))) or (block.suite and line.startswith("  ● ")):
            yield from _unplaced(reading, block)
            block, raised = _Block(path if suite else block.suite), ""
        elif frame := _stack_frame(reading, line):
            message = headline("\n".join(block.lines)) if block.open else raised
            yield from reading.placed(frame.path, frame.line, message, column=frame.column)
            block.open, raised = False, ""
        elif _RAISED.match(line):
            raised = line
            if block.open and block.alone and block.lines:
                yield from reading.placed(block.alone.path, block.alone.line, line)
                block.open = False
            block.add(line)
        elif block.open and (match := _ALONE.match(line)) and (path := reading.locate_own(match["path"])):
            block.alone = Frame(path, int(match["line"]))
        else:
            block.add(line)
    yield from _unplaced(reading, block)


def _unplaced(reading: Reading, block: _Block) -> Iterator[Finding]:
    if block.open:
        yield from reading.placed(block.suite, 0, headline("\n".join(block.lines)))


def _stack_frame(reading: Reading, line: str) -> Frame | None:
    if java := _JAVA_FRAME.match(line):
        package = java["name"].rpartition("/")[2].split(".")[:-2]
        path = reading.locate_own(java["file"], ["/".join((source, *package)) for source in _JAVA_SOURCES])
        return Frame(path, int(java["line"])) if path else None
    if script := _SCRIPT_FRAME.match(line):
        where = script["where"]
        for spelling in dict.fromkeys((where.rpartition("(")[2], where, where.rpartition(" ")[2])):
            if path := reading.locate_own(spelling):
                return Frame(path, int(script["line"]), int(script["column"]))
    return None


def read_panics(reading: Reading, lines: Sequence[str]) -> Iterator[Finding]:
    """Panics of Rust, at the place that they name."""
    for number, line in enumerate(lines):
        if not line.startswith("thread "):
            continue
        message, _, place = line.partition(" panicked at ")[2].rpartition("', ")  # as Rust wrote it up to 1.72
        if match := _PANIC.match(place):
            message = message.removeprefix("'") or headline("\n".join(lines[number + 1 : number + 5]))
            yield from reading.found(
                match["path"], int(match["line"]), message, column=int(match["column"]), by="cargo"
            )


def read_go(reading: Reading, lines: Sequence[str], package: str = "") -> Iterator[Finding]:
    """Go's test log, which names files without their directory, and panics of Go.

    The package stands below its tests; without the module's name, each of its ends may be the directory.
    """
    panic = ""
    packages = _packages(lines, package)
    for number, (line, bases) in enumerate(zip(lines, packages, strict=True)):
        if line.startswith("panic: "):
            panic = panic or line.removesuffix(" [recovered]")
        elif panic and (match := _GO_FRAME.match(line)):
            if path := reading.locate_own(match["path"]):
                yield from reading.placed(path, int(match["line"]), panic, by="go")
                panic = ""
        elif match := GO_LOG.match(line):
            below = filter(None, map(_GO_ERROR.match, lines[number + 1 : number + 8]))
            message = match["message"] or next((error["message"] for error in below), "")
            yield from reading.found(match["path"], int(match["line"]), message, by="go", bases=bases)


def _packages(lines: Sequence[str], package: str) -> list[tuple[str, ...]]:
    """For each line the directories in which the package may be whose tests it belongs to."""
    bases = _directories(package)
    found = []
    for line in reversed(lines):
        if match := _GO_PACKAGE.match(line):
            bases = _directories(match["package"])
        found.append(bases)
    return found[::-1]


def _directories(package: str) -> tuple[str, ...]:
    parts = package.split("/")[:40]
    return tuple("/".join(parts[start:]) for start in range(len(parts))) if package else ()
