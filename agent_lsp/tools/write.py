"""``write_file``: a whole file, new or in the place of an old one."""

from pydantic import Field

from agent_lsp.approvals import Action, FileChange, content_digest
from agent_lsp.messages import ToolResult
from agent_lsp.tools.base import Params, Tool, ToolContext
from agent_lsp.tools.files import (
    LINE_END,
    TextFile,
    count_lines,
    load_for_change,
    resolve_inside,
    save,
    uniform_line_end,
    unsaved,
)
from agent_lsp.workspace import Access, Workspace


class WriteFile(Params):
    """Create a file, or replace all of its content.

    Directories on the way are made. An existing file keeps its encoding, and its line ends where they are all CRLF.
    To change a part of a file use edit_file.
    """

    path: str = Field(description="The file, relative to the workspace root or absolute")
    content: str = Field(description="The complete new content")


async def _preview(params: WriteFile, context: ToolContext) -> FileChange:
    path = resolve_inside(context.workspace, params.path)
    file = await load_for_change(path, context)
    return FileChange(
        path=path,
        before=None if file is None else file.text,
        after=_adapt(params.content, file),
        before_digest=content_digest(None if file is None else file.content),
    )


def _adapt(content: str, file: TextFile | None) -> str:
    """The content in the shape of the file it replaces: its line end, if that is not LF, and one byte order mark."""
    if file is None:
        return content
    if file.mark:
        content = content.removeprefix("\ufeff")
    line_end = uniform_line_end(file.text)
    return LINE_END.sub(line_end, content) if line_end and line_end != "\n" else content


async def _run(params: WriteFile, context: ToolContext) -> ToolResult:
    path = resolve_inside(context.workspace, params.path)
    file = await load_for_change(path, context)
    after = _adapt(params.content, file) if context.change is None else context.change.after or ""
    document = None if file is None else file.document
    if document is not None and document.typed and context.change is None:  # nobody saw what would be lost (F34)
        raise unsaved(path)
    if file is not None and file.text == after:
        return ToolResult(
            content=f"{path.display} has this content already", metadata={"path": path.display, "changed": False}
        )
    note = await save(path, after, previous=file, documents=context.documents)
    verb = "Created" if file is None else "Replaced"
    count = count_lines(after)
    notes = [f"{count:,} line{'' if count == 1 else 's'}"]
    if uniform_line_end(after) != uniform_line_end(params.content):
        notes.append("in the line ends of the old file")
    content = "\n".join(filter(None, (f"{verb} {path.display} ({', '.join(notes)})", note)))
    return ToolResult(content=content, metadata={"path": path.display, "changed": True})


def _action(params: WriteFile, workspace: Workspace) -> Action:
    return Action(tool=WRITE_FILE.name, access=WRITE_FILE.access, paths=(workspace.resolve(params.path),))


WRITE_FILE = Tool(name="write_file", params=WriteFile, access=Access.WRITE, run=_run, action=_action, preview=_preview)
