"""``diagnostics``: what the editor's own language servers report."""

from pathlib import Path

from pydantic import Field

from agent_lsp.approvals import Action, visible
from agent_lsp.messages import ToolResult
from agent_lsp.tools.base import Params, Tool, ToolContext
from agent_lsp.tools.files import resolve_inside
from agent_lsp.workspace import Access, FileProblems, ResolvedPath, Workspace

MAX_PROBLEMS = 200
MAX_MESSAGE = 500  # characters


class Diagnostics(Params):
    """Read the errors and warnings that the user's editor shows now.

    They come from the language servers of the editor, and are as complete as the editor tells: for open files, mostly.
    Each is `path:line:column: severity: message (source code)`. Files whose text has changed since are marked; what a
    change of another file has mended may still be listed.
    """

    path: str | None = Field(default=None, description="A file, relative to the workspace root; default all files")


async def _run(params: Diagnostics, context: ToolContext) -> ToolResult:
    path = None if params.path is None else resolve_inside(context.workspace, params.path)
    reports = await context.documents.problems(None if path is None else path.path)
    shown = [(place, report) for report in reports if (place := _place(report.path, context)) is not None]
    lines = [line for place, report in shown for line in _lines(place, report)]
    if not lines:
        return ToolResult(content=f"The editor reports nothing{'' if path is None else f' for {path.display}'}")
    if len(lines) > MAX_PROBLEMS:
        lines = [*lines[:MAX_PROBLEMS], f"[{len(lines) - MAX_PROBLEMS:,} more; ask for one file]"]
    return ToolResult(content="\n".join(lines))


def _place(path: Path, context: ToolContext) -> ResolvedPath | None:
    """The file as the model may see it; None outside of the workspace, or where a rule denies it."""
    place = context.workspace.resolve(str(path))
    return place if place.inside and context.may_read(place) else None


def _lines(place: ResolvedPath, report: FileProblems) -> list[str]:
    mark = "" if report.is_current else " [the text has changed since]"
    lines = []
    for problem in report.problems:
        who = " ".join(filter(None, (problem.source, problem.code)))
        message = visible(problem.message[:MAX_MESSAGE]).replace("\n", " ")
        where = f"{place.display}:{problem.line}:{problem.column}"
        lines.append(f"{where}: {problem.severity}: {message}{f' ({who})' if who else ''}{mark}")
    return lines


def _action(params: Diagnostics, workspace: Workspace) -> Action:
    paths = () if params.path is None else (workspace.resolve(params.path),)
    return Action(tool=DIAGNOSTICS.name, access=DIAGNOSTICS.access, paths=paths)


DIAGNOSTICS = Tool(name="diagnostics", params=Diagnostics, access=Access.READ, run=_run, action=_action)
