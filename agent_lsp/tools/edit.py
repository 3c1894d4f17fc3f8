"""``edit_file``: exact replacements in one file, all of them or none."""

from dataclasses import dataclass, replace
from functools import partial

import anyio.to_thread
from pydantic import Field

from agent_lsp.approvals import Action, FileChange
from agent_lsp.errors import ToolError
from agent_lsp.messages import ToolResult
from agent_lsp.tools.base import Params, Tool, ToolContext
from agent_lsp.tools.files import TextFile, load_for_change, resolve_inside, save
from agent_lsp.tools.matching import Edited, apply_edit, nearest_lines
from agent_lsp.workspace import Access, ResolvedPath, Workspace


class Edit(Params):
    """One replacement."""

    old: str = Field(min_length=1, description="The text to replace, exactly as it is in the file, in one place only")
    new: str = Field(description="The text to put there; empty to delete")
    all: bool = Field(default=False, description="Replace every place where old stands")


class EditFile(Params):
    """Replace passages of a text file.

    Each `old` is the file's text without line numbers and must stand in exactly one place, unless `all` is set; give
    enough lines around it. The edits apply in order, each to the result of the one before; if one fails, nothing is
    written. Line ends are taken from the file, whatever the edit has.
    """

    path: str = Field(description="The file, relative to the workspace root or absolute")
    edits: tuple[Edit, ...] = Field(min_length=1, description="The replacements, in order")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A file, the text that the edits make of it, and what each of them did."""

    file: TextFile
    after: str
    steps: tuple[Edited, ...]


async def _plan(path: ResolvedPath, params: EditFile, context: ToolContext) -> _Plan:
    file = await load_for_change(path, context)
    if file is None:
        raise ToolError("file_not_found", f"File not found: {path.display}. Create it with write_file")
    steps = await anyio.to_thread.run_sync(_apply, file.text, params.edits)
    return _Plan(file=file, after=steps[-1].text, steps=steps)


def _apply(text: str, edits: tuple[Edit, ...]) -> tuple[Edited, ...]:
    steps: list[Edited] = []
    for index, edit in enumerate(edits):
        try:
            step = apply_edit(text, edit.old, edit.new, every=edit.all)
        except ToolError as error:
            place = f"edits.{index}: " if len(edits) > 1 else ""
            raise ToolError(error.code, f"{place}{error.message}") from error
        steps.append(step)
        text = step.text
    return tuple(steps)


async def _preview(params: EditFile, context: ToolContext) -> FileChange:
    path = resolve_inside(context.workspace, params.path)
    plan = await _plan(path, params, context)
    return FileChange(path=path, before=plan.file.text, after=plan.after, before_digest=plan.file.digest)


_TRIES = 3


async def _run(params: EditFile, context: ToolContext) -> ToolResult:
    """Edit, on fresh text where it changed meanwhile; but what a human saw is made of that text alone (A40)."""
    path = resolve_inside(context.workspace, params.path)
    for tries_left in reversed(range(_TRIES if context.change is None else 1)):
        try:
            return await _edit(path, params, context)
        except ToolError as error:
            if error.code != "stale_file":
                raise
            if not tries_left:
                raise await _with_fresh_text(error, path, params, context) from error
    raise AssertionError("every try returns or raises")


async def _edit(path: ResolvedPath, params: EditFile, context: ToolContext) -> ToolResult:
    plan = await _plan(path, params, context)
    after = plan.after if context.change is None else context.change.after or ""
    changed = after != plan.file.text
    note = await save(path, after, previous=plan.file, documents=context.documents) if changed else None
    steps = _report(plan) if after == plan.after else ()  # of a part, nobody knows which steps it holds
    lines = [f"Edited {path.display}" if changed else f"{path.display} is unchanged", *steps]
    content = "\n".join([*lines, *filter(None, (note,))])
    return ToolResult(content=content, metadata={"path": path.display, "changed": changed})


def _report(plan: _Plan) -> list[str]:
    return [
        f"- line {step.line:,}"
        + (f" and after, {step.count:,} places" if step.count > 1 else "")
        + (": matched white space aside, and indented like the file" if step.loose else "")
        for step in plan.steps
    ]


async def _with_fresh_text(error: ToolError, path: ResolvedPath, params: EditFile, context: ToolContext) -> ToolError:
    """A stale edit shows what is there now, so that the next one can succeed (F33)."""
    file = await load_for_change(path, replace(context, change=None))
    if file is None:
        return ToolError(error.code, f"{error.message}. It is gone now")
    find = partial(nearest_lines, file.text)
    passages = [await anyio.to_thread.run_sync(find, edit.old) for edit in params.edits]
    if not any(passages):  # what is to be replaced still stands there
        return error
    return ToolError(error.code, "\n".join([f"{error.message}. It now reads:", *filter(None, passages)]))


def _action(params: EditFile, workspace: Workspace) -> Action:
    return Action(tool=EDIT_FILE.name, access=EDIT_FILE.access, paths=(workspace.resolve(params.path),))


EDIT_FILE = Tool(name="edit_file", params=EditFile, access=Access.WRITE, run=_run, action=_action, preview=_preview)
