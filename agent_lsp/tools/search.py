"""``search``: lines of files that match a regular expression, by ripgrep."""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from pydantic import Field

from agent_lsp.approvals import Action
from agent_lsp.errors import ToolError
from agent_lsp.messages import ToolResult
from agent_lsp.tools.base import Params, Tool, ToolContext
from agent_lsp.tools.files import MAX_FILE_BYTES, decode, resolve_inside, split_lines, status_of
from agent_lsp.tools.globs import Glob, compile_pattern
from agent_lsp.tools.ripgrep import FAILED, below, find_ripgrep, glob_arguments, run_ripgrep
from agent_lsp.tools.walk import SLOW_NOTE, walk_files
from agent_lsp.workspace import Access, ResolvedPath, Workspace

if TYPE_CHECKING:
    from re2 import _Regexp as Pattern

MAX_MATCHES = 1_000
MAX_CHARACTERS = 100_000
MAX_LINE = 500
_OUTPUT_BYTES = 16 * 1024 * 1024
_OUTPUT_LINE = re.compile(r"(.+?)\0(\d+)([:-])(.*)", re.DOTALL)
_CLASS_OR_ESCAPED = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\[^n]", re.DOTALL)


class Search(Params):
    """Search the files of the workspace for a regular expression, line by line.

    Hidden files are searched; .git, what .gitignore excludes, links and binary files are not. Matches are grouped by
    file: `12:` marks a matching line, `11-` a line of context. What the user has typed but not saved is searched.
    """

    pattern: str = Field(min_length=1, description="Regular expression (Rust syntax); (?i) in front ignores case")
    path: str = Field(default=".", description="The directory or file to search")
    glob: str | None = Field(default=None, description="Only files that fit, such as *.py or src/**/*.{ts,tsx}")
    context: int = Field(default=0, ge=0, le=20, description="Lines to show around each match")
    literal: bool = Field(default=False, description="Take the pattern as plain text")
    limit: int = Field(default=100, ge=1, le=MAX_MATCHES, description="The most matching lines to show")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a file in the results: a match, or context of one."""

    path: str
    number: int
    text: str
    is_match: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Lines sorted by path and number, and what should be known about them."""

    lines: list[Line]
    notes: tuple[str, ...] = ()


async def find_lines(params: Search, path: ResolvedPath, context: ToolContext, *, ripgrep: Path | None) -> Findings:
    """The matching lines and their context, by ripgrep or, where there is none, in Python."""
    _check_pattern(params)
    glob = None if params.glob is None else Glob(params.glob)
    held = _held_texts(path, glob, context)
    if ripgrep is None:
        return await anyio.to_thread.run_sync(_search, params, path, glob, context, held)
    arguments = [
        "--no-heading",
        "--with-filename",
        "--line-number",
        "--null",
        f"--max-columns={MAX_LINE}",
        "--max-columns-preview",
        f"--context={params.context}",
        f"--max-count={MAX_MATCHES}",
        *(["--fixed-strings"] if params.literal else ["--engine=auto"]),
        *glob_arguments(glob),
        f"--regexp={params.pattern}",
    ]
    result = await run_ripgrep(ripgrep, arguments, path, context, output_limit=2 * _OUTPUT_BYTES)
    if result.exit_code == FAILED and not result.stdout.head:
        message = result.stderr.readable(2_000).strip()
        raise ToolError("invalid_pattern" if "regex" in message else "search_failed", message)
    notes = [result.stderr.text().partition("\n")[0]] if result.exit_code == FAILED else []
    if result.stdout.omitted:
        notes.append("There are more matches than could be counted")
    found = [
        line
        for output in result.stdout.head.decode(errors="replace").split("\n")
        if (line := _parse(output)) and (glob is None or glob.is_names_only or glob.matches(below(line.path, path)))
    ]
    lines = [replace(line, path=line.path.removeprefix("./")) for line in found]
    may_show = functools.cache(context.may_show)  # once a file, not once a line
    shown = [line for line in lines if line.path not in held and may_show(line.path)]
    for display, text in held.items():
        output = (await run_ripgrep(ripgrep, arguments, text, context, output_limit=2 * _OUTPUT_BYTES)).stdout.text()
        shown += [replace(line, path=display) for each in output.split("\n") if (line := _parse(each)) is not None]
    return Findings(lines=sorted(shown, key=lambda line: (line.path, line.number)), notes=tuple(notes))


def _held_texts(path: ResolvedPath, glob: Glob | None, context: ToolContext) -> dict[str, str]:
    """What the editor holds unsaved of the files to be searched, by their paths as people read them (F34)."""
    held: dict[str, str] = {}
    for file, document in context.documents.unsaved():
        place = context.workspace.resolve(str(file))
        name = place.display if path.path == place.path else below(place.display, path)
        is_searched = place.inside and (path.path == place.path or path.path in place.path.parents)
        if is_searched and (glob is None or glob.matches(name)) and context.may_read(place):
            held[place.display] = document.text
    return held


def _check_pattern(params: Search) -> None:
    """Refuse what matches in no line, and what no program takes as an argument."""
    if "\n" in params.pattern or (not params.literal and "\\n" in _CLASS_OR_ESCAPED.sub("", params.pattern)):
        raise ToolError("invalid_pattern", "Files are searched line by line, so a pattern must not hold a line end")
    if "\0" in params.pattern:
        raise ToolError("invalid_pattern", "A pattern must not hold NUL characters")


def _parse(output: str) -> Line | None:
    match = _OUTPUT_LINE.fullmatch(output)
    if match is None:  # a separator, or a word about a binary file
        return None
    path, number, kind, text = match.groups()
    return Line(path=path, number=int(number), text=text.rstrip("\r"), is_match=kind == ":")


# --- without ripgrep


def _search(
    params: Search, path: ResolvedPath, glob: Glob | None, context: ToolContext, held: Mapping[str, str]
) -> Findings:
    try:
        pattern = compile_pattern(params.pattern, literal=params.literal)
    except ValueError as error:
        raise ToolError("invalid_pattern", f"Not a regular expression: {params.pattern} ({error})") from error
    lines: list[Line] = []
    for name, display in _searched_files(path, context.workspace.root):
        if display not in held and (glob is None or glob.matches(name)) and context.may_show(display):
            text = _text_of(path.path / name if name else path.path)
            lines.extend(_matches_in(text, display, pattern, params.context))
    for display, text in held.items():
        lines.extend(_matches_in(text, display, pattern, params.context))
    return Findings(lines=sorted(lines, key=lambda line: (line.path, line.number)), notes=(SLOW_NOTE,))


def _searched_files(path: ResolvedPath, root: Path) -> Iterator[tuple[str, str]]:
    """Each file's path below the searched one, and as people read it."""
    if path.path.is_file():
        yield "", path.display
        return
    prefix = "" if path.display == "." else f"{path.display}/"
    for name in walk_files(path.path, root):
        yield name, prefix + name


def _text_of(file: Path) -> str:
    """A file's text; empty where it is too large, unreadable or binary."""
    try:
        return "" if file.stat().st_size > MAX_FILE_BYTES else decode(file.read_bytes()).text
    except (OSError, ValueError):
        return ""


def _matches_in(text: str, display: str, pattern: "Pattern", context: int) -> Iterator[Line]:
    lines = [content for content, _end in split_lines(text)]
    matching = {index for index, line in enumerate(lines) if pattern.search(line.encode())}
    wanted = {near for index in matching for near in range(index - context, index + context + 1)}
    for index in sorted(wanted & set(range(len(lines)))):
        line = lines[index]
        shown = line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} [... omitted end of long line]"
        yield Line(path=display, number=index + 1, text=shown, is_match=index in matching)


# --- the tool


async def _run(params: Search, context: ToolContext) -> ToolResult:
    path = resolve_inside(context.workspace, params.path)
    if status_of(path) is None:
        raise ToolError("file_not_found", f"File not found: {path.display}")
    ripgrep = find_ripgrep(context.workspace, context.environment)
    findings = await find_lines(params, path, context, ripgrep=ripgrep)
    return ToolResult(content=_render(findings, params.limit))


def _render(findings: Findings, limit: int) -> str:
    total = sum(line.is_match for line in findings.lines)
    shown = _within_bounds(findings.lines, limit)
    count = sum(line.is_match for line in shown)
    notes = list(findings.notes)
    if not total:
        notes.append("No matches")
    if count < total:
        notes.append(f"The first {count:,} of {total:,} matching lines; narrow the pattern, the path or the glob")
    files = ("\n".join(_render_file(path, list(lines))) for path, lines in groupby(shown, key=lambda line: line.path))
    return "\n\n".join([*files, *(f"[{note}]" for note in notes)])


def _within_bounds(lines: list[Line], limit: int) -> list[Line]:
    """Lines up to the last match, and its context, that the limits leave room for."""
    matches = characters = 0
    for index, line in enumerate(lines):
        matches += line.is_match
        characters += len(line.text) + len(line.path)
        if matches > limit or characters > MAX_CHARACTERS:
            return lines[:index]
    return lines


def _render_file(path: str, lines: list[Line]) -> Iterator[str]:
    yield path
    last = lines[0].number - 1
    for line in lines:
        if line.number > last + 1 and any(not other.is_match for other in lines):
            yield "--"
        yield f"{line.number}{':' if line.is_match else '-'}{line.text}"
        last = line.number


def _action(params: Search, workspace: Workspace) -> Action:
    return Action(tool=SEARCH.name, access=SEARCH.access, paths=(workspace.resolve(params.path),))


SEARCH = Tool(name="search", params=Search, access=Access.READ, run=_run, action=_action)
