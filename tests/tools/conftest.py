"""A workspace in a temporary directory, and a way to call a tool as the agent does."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from agent_lsp.errors import ToolError
from agent_lsp.messages import JsonValue, ToolResult
from agent_lsp.tools.base import AnyTool, ToolContext
from agent_lsp.tools.registry import parse_arguments
from agent_lsp.workspace import Document, Workspace

Call: TypeAlias = Callable[..., Awaitable[ToolResult]]


class OpenDocuments(dict[Path, Document]):
    """What an editor holds, by resolved path."""


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
