"""``read_file``: text with line numbers, within bounds, unsaved editor text first."""

import difflib
from dataclasses import dataclass
from itertools import islice
from typing import Self

import anyio.to_thread
from pydantic import Field, model_validator

from agent_lsp.approvals import Action
from agent_lsp.errors import ToolError
from agent_lsp.messages import ToolResult
from agent_lsp.tools.base import Params, Tool, ToolContext
from agent_lsp.tools.files import LINE, count_lines, load, resolve_inside
from agent_lsp.workspace import Access, ResolvedPath, Workspace

MAX_LINES = 2_000
MAX_CHARACTERS = 100_000
MAX_LINE_CHARACTERS = 2_000


class ReadFile(Params):
    """Read a text file of the workspace.

    Each line comes as its number, a tab, and its text. At most 2,000 lines or 100,000 characters come at once; a note
    at the end says what was left out and how to get it. What the user has typed but not saved is included.
    """

    path: str = Field(description="The file, relative to the workspace root or absolute")
    start_line: int | None = Field(default=None, ge=1, description="First line to read, counted from 1; default 1")
    end_line: int | None = Field(default=None, ge=1, description="Last line to read, inclusive; default the last")

    @model_validator(mode="after")
    def _lines_in_order(self) -> Self:
        if self.end_line is not None and self.end_line < (self.start_line or 1):
            raise ValueError("end_line must not be before start_line")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    text: str
    notes: tuple[str, ...] = ()


async def _run(params: ReadFile, context: ToolContext) -> ToolResult:
    path = resolve_inside(context.workspace, params.path)
    source = await _source(path, context)
    content = await anyio.to_thread.run_sync(_render, source, params, path)
    return ToolResult(content=content, metadata={"path": path.display})


async def _source(path: ResolvedPath, context: ToolContext) -> _Source:
    document = await context.documents.get(path.path)
    if document is not None and document.unsaved:
        return _Source(text=document.text, notes=("This is the text in the editor; it is not saved yet",))
    file = await load(path)
    if file is None:
        raise await anyio.to_thread.run_sync(_not_found, path)
    return _Source(text=file.text, notes=() if file.codec == "utf-8" else (f"Encoded as {file.codec}",))


def _not_found(path: ResolvedPath) -> ToolError:
    try:
        siblings = [sibling.name for sibling in path.path.parent.iterdir()]
    except OSError:
        siblings = []
    similar = difflib.get_close_matches(path.path.name, siblings)
    hint = f". Files of similar names there: {', '.join(similar)}" if similar else ""
    return ToolError("file_not_found", f"File not found: {path.display}{hint}")


def _render(source: _Source, params: ReadFile, path: ResolvedPath) -> str:
    total = count_lines(source.text)
    start, end = params.start_line or 1, min(params.end_line or total, total)
    if start > max(total, 1):
        raise ToolError("out_of_range", f"{path.display} has {total:,} lines; line {start:,} is past its end")
    shown = _numbered_lines(source.text, start, min(end, start + MAX_LINES - 1))
    notes = list(source.notes)
    if not source.text:
        notes.append("The file is empty")
    last = start + len(shown) - 1
    if last < end:
        notes.append(f"Lines {start:,} to {last:,} of {total:,}; go on with start_line {last + 1}")
    return "\n".join([*shown, *(f"[{note}]" for note in notes)])


def _numbered_lines(text: str, start: int, end: int) -> list[str]:
    """The lines of a range as far as the character bound goes; the first always."""
    lines: list[str] = []
    characters = 0
    for number, match in enumerate(islice(LINE.finditer(text), start - 1, end), start):
        content = match.group().rstrip("\r\n")
        line = f"{number}\t{_shorten(content, number)}"
        characters += len(line) + 1
        if characters > MAX_CHARACTERS and lines:
            break
        lines.append(line)
    return lines


def _shorten(line: str, number: int) -> str:
    if len(line) <= MAX_LINE_CHARACTERS:
        return line
    cut = len(line) - MAX_LINE_CHARACTERS
    return (
        f"{line[:MAX_LINE_CHARACTERS]} [… {cut:,} more characters in line {number}; search for what you need in it …]"
    )


def _action(params: ReadFile, workspace: Workspace) -> Action:
    return Action(tool=READ_FILE.name, access=READ_FILE.access, paths=(workspace.resolve(params.path),))


READ_FILE = Tool(name="read_file", params=ReadFile, access=Access.READ, run=_run, action=_action)
