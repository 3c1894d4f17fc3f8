"""A workspace in a temporary directory, and a way to call a tool as the agent does."""

import json
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import TypeAlias

import pytest

from agent_lsp.errors import ToolError
from agent_lsp.messages import JsonValue, ToolResult
from agent_lsp.tools.base import AnyTool, ToolContext
from agent_lsp.tools.registry import parse_arguments
from agent_lsp.workspace import Document, FileProblems, ResolvedPath, Workspace, Written

Call: TypeAlias = Callable[..., Awaitable[ToolResult]]


class OpenDocuments:
    """What an editor holds, by resolved path. It takes edits as ``written`` says, and keeps them as unsaved text."""

    def __init__(self) -> None:
        self.written = Written.CANNOT
        self.reported: list[FileProblems] = []
        self._open: dict[Path, Document] = {}

    def __setitem__(self, path: Path, document: Document) -> None:
        self._open[path] = document

    def __getitem__(self, path: Path) -> Document:
        return self._open[path]

    async def get(self, path: Path) -> Document | None:
        return self._open.get(path)

    def unsaved(self) -> tuple[tuple[Path, Document], ...]:
        return tuple((path, document) for path, document in self._open.items() if document.unsaved)

    async def write(self, path: ResolvedPath, document: Document, text: str) -> Written:
        if self.written in (Written.SAVED, Written.HELD):
            version = document.version + 1
            self[path.path] = Document(text=text, version=version, unsaved=self.written is Written.HELD)
        return self.written

    def saves(self) -> dict[Path, int]:
        return {}

    async def until_saved(self, paths: Collection[Path], waiting: Callable[[tuple[str, ...]], None]) -> tuple[str, ...]:
        return ()

    async def problems(self, path: Path | None) -> tuple[FileProblems, ...]:
        return tuple(report for report in self.reported if path in (None, report.path))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    directory.mkdir()
    return directory


@pytest.fixture
def documents() -> OpenDocuments:
    return OpenDocuments()


@pytest.fixture
def context(root: Path, environment: dict[str, str], documents: OpenDocuments) -> ToolContext:
    return ToolContext(call_id="1", workspace=Workspace(root), environment=environment, documents=documents)


@pytest.fixture
def call(context: ToolContext) -> Call:
    """Prepare and run a call with arguments as JSON; a ToolError becomes the result that the model would read."""

    async def call_tool(tool: AnyTool, **arguments: JsonValue) -> ToolResult:
        try:
            return await tool.prepare("1", parse_arguments(json.dumps(arguments))).run(context)
        except ToolError as error:
            return ToolResult.error(error.code, error.message)

    return call_tool
