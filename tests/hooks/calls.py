"""Prepared calls for the tests of hooks."""

from agent_lsp.approvals import Action
from agent_lsp.messages import ToolResult
from agent_lsp.tools.base import AnyTool, Params, PreparedCall, Tool, ToolContext
from agent_lsp.workspace import Access


class CommandParams(Params):
    """Run a command."""

    command: str


async def _run(_params: CommandParams, _context: ToolContext) -> ToolResult:
    return ToolResult(content="")


def command_tool(access: Access = Access.EXECUTE, name: str = "shell") -> AnyTool:
    return Tool(
        name=name,
        params=CommandParams,
        access=access,
        run=_run,
        action=lambda _params, _workspace: Action(tool=name, access=access),
    )


SHELL = command_tool()


def prepared(command: str = "echo ok", tool: AnyTool = SHELL) -> PreparedCall:
    return tool.prepare("call_1", {"command": command})
