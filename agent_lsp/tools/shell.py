"""``shell``: one command line, run at the workspace root."""

import signal
import sys
from functools import cache
from pathlib import Path

from pydantic import Field

from agent_lsp.approvals import Action
from agent_lsp.errors import ToolError
from agent_lsp.messages import ToolResult
from agent_lsp.processes import Program, ProgramResult, run_program
from agent_lsp.tools.base import Params, Tool, ToolContext
from agent_lsp.workspace import Access, Workspace

DEFAULT_SECONDS = 120.0
MAX_SECONDS = 600.0
MAX_CHARACTERS = 30_000


class Shell(Params):
    """Run a command line in a non-interactive shell (bash where there is one) at the workspace root.

    There is no input and no terminal. Standard output and error come back together, the middle left out where they
    are long, and the exit code. What the command leaves running in the background is ended with it. Use the file
    tools rather than the shell to read, search and change files.
    """

    command: str = Field(min_length=1, description="The command line")
    timeout: float = Field(
        default=DEFAULT_SECONDS, gt=0, le=MAX_SECONDS, description="Seconds after which the command is ended"
    )


@cache
def _shell() -> tuple[str, ...]:
    if sys.platform == "win32":
        return ("cmd", "/d", "/c")
    return ("/bin/bash", "-c") if Path("/bin/bash").exists() else ("/bin/sh", "-c")


async def _run(params: Shell, context: ToolContext) -> ToolResult:
    program = Program(
        command=(*_shell(), params.command),
        cwd=context.workspace.root,
        environment=context.environment,
        timeout=params.timeout,
        merge_stderr=True,
    )
    try:
        result = await run_program(program, on_output=context.output)
    except (OSError, ValueError) as error:  # a command longer than the system takes, or with a NUL in it
        raise ToolError("start_failed", f"The command cannot be started: {error}") from error
    return _report(result, params.timeout)


def _report(result: ProgramResult, timeout: float) -> ToolResult:
    output = result.stdout.readable(MAX_CHARACTERS).rstrip("\n")
    return ToolResult(
        content="\n".join(filter(None, [output, _ending(result, timeout)])),
        is_error=result.exit_code != 0,
        code="timeout" if result.timed_out else "exit_code" if result.exit_code else None,
        metadata={"exit_code": result.exit_code, "timed_out": result.timed_out},
    )


def _ending(result: ProgramResult, timeout: float) -> str:
    if result.exit_code is None:
        return f"Timed out after {timeout:g} s; the command and what it had started were ended"
    if result.exit_code < 0:
        return f"Exit code: {result.exit_code} ({signal.strsignal(-result.exit_code)})"
    return f"Exit code: {result.exit_code}"


def _action(params: Shell, workspace: Workspace) -> Action:
    return Action(tool=SHELL.name, access=SHELL.access, command=params.command)


SHELL = Tool(name="shell", params=Shell, access=Access.EXECUTE, run=_run, action=_action)
