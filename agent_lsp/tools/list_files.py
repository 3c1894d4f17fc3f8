"""``list_files``: the files of the workspace that ``.gitignore`` does not hide."""

import heapq
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import anyio.from_thread
import anyio.to_thread
from pydantic import Field

from agent_lsp.approvals import Action
from agent_lsp.errors import ToolError
from agent_lsp.messages import ToolResult
from agent_lsp.tools.base import Params, Tool, ToolContext
from agent_lsp.tools.files import resolve_inside, status_of
from agent_lsp.tools.globs import Glob
from agent_lsp.tools.ripgrep import FAILED, below, find_ripgrep, glob_arguments, run_ripgrep
from agent_lsp.tools.walk import SLOW_NOTE, walk_files
from agent_lsp.workspace import Access, ResolvedPath, Workspace

MAX_FILES = 1_000
_OUTPUT_BYTES = 64 * 1024 * 1024


class ListFiles(Params):
    """List the files of the workspace, sorted by path.

    Hidden files are included; .git, what .gitignore excludes, links and bare directories are not. At most 1,000 files
    are shown, with a note that says how many there are.
    """

    pattern: str | None = Field(
        default=None,
        description="Glob, such as *.py (a name at any depth), src/**/*.{ts,tsx} or docs/ (a path below `path`)",
    )
    path: str = Field(default=".", description="The directory to list, relative to the workspace root or absolute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Paths as people read them, in any order, and what should be known about them."""

    paths: list[str]
    notes: tuple[str, ...] = ()


async def list_paths(
    directory: ResolvedPath, glob: Glob | None, context: ToolContext, *, ripgrep: Path | None
) -> Listing:
    """The files below a directory, by ripgrep or, where there is none, in Python."""
    if ripgrep is None:
        return await anyio.to_thread.run_sync(_walk, directory, glob, context)
    arguments = ["--files", "--null", *glob_arguments(glob)]
    result = await run_ripgrep(ripgrep, arguments, directory, context, output_limit=2 * _OUTPUT_BYTES)
    notes = [result.stderr.text().partition("\n")[0]] if result.exit_code == FAILED else []
    if result.stdout.omitted:
        notes.append("There are more files than could be counted")
    paths = result.stdout.head.decode(errors="replace").split("\0")[:-1]
    found = (
        path.removeprefix("./")
        for path in paths
        if glob is None or glob.is_names_only or glob.matches(below(path, directory))
    )
    return Listing(paths=await anyio.to_thread.run_sync(_shown, found, context), notes=tuple(notes))


def _walk(directory: ResolvedPath, glob: Glob | None, context: ToolContext) -> Listing:
    prefix = "" if directory.display == "." else f"{directory.display}/"
    found = walk_files(directory.path, context.workspace.root)
    paths = (f"{prefix}{path}" for path in found if glob is None or glob.matches(path))
    return Listing(paths=_shown(paths, context), notes=(SLOW_NOTE,))


def _shown(paths: Iterable[str], context: ToolContext) -> list[str]:
    """The paths that the rules let be shown; in a worker thread, because there may be a million of them."""
    shown: list[str] = []
    for path in paths:
        anyio.from_thread.check_cancelled()
        if context.may_show(path):
            shown.append(path)
    return shown


async def _run(params: ListFiles, context: ToolContext) -> ToolResult:
    directory = resolve_inside(context.workspace, params.path)
    status = status_of(directory)
    if status is None or not stat.S_ISDIR(status.st_mode):
        raise ToolError("not_a_directory", f"{directory.display} is not a directory")
    glob = None if params.pattern is None else Glob(params.pattern)
    ripgrep = find_ripgrep(context.workspace, context.environment)
    listing = await list_paths(directory, glob, context, ripgrep=ripgrep)
    return ToolResult(content=_render(listing), metadata={"count": len(listing.paths)})


def _render(listing: Listing) -> str:
    shown = heapq.nsmallest(MAX_FILES, listing.paths)
    notes = list(listing.notes)
    if not shown:
        notes.append("No files found")
    if len(shown) < len(listing.paths):
        notes.append(f"The first {len(shown):,} of {len(listing.paths):,} files; narrow the pattern or the path")
    return "\n".join([*shown, *(f"[{note}]" for note in notes)])


def _action(params: ListFiles, workspace: Workspace) -> Action:
    return Action(tool=LIST_FILES.name, access=LIST_FILES.access, paths=(workspace.resolve(params.path),))


LIST_FILES = Tool(name="list_files", params=ListFiles, access=Access.READ, run=_run, action=_action)
