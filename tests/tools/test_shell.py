"""Commands run at the workspace root, and say how they ended."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent_lsp.approvals import Action
from agent_lsp.messages import ToolResult
from agent_lsp.tools.base import ToolContext
from agent_lsp.tools.shell import SHELL
from agent_lsp.workspace import Access, Workspace
from tests.tools.conftest import Call


@pytest.mark.parametrize(
    ("command", "content", "exit_code"),
    [
        ("pwd; cat", "ROOT\nExit code: 0", 0),
        ("true", "Exit code: 0", 0),
        ("echo out; echo err >&2; exit 3", "out\nerr\nExit code: 3", 3),
        ("kill -KILL $$", "Exit code: -9 (Killed)", -9),
        ("no-such-program", "/bin/bash: line 1: no-such-program: command not found\nExit code: 127", 127),
        ("printf '\\033[1mbold\\033[0m\\n1%%\\r2%%\\n\\377'", "bold\n2%\n\ufffd\nExit code: 0", 0),
        ("echo $CI $NO_COLOR $TERM $PAGER; echo ${BASH_ENV-unset}", "1 1 dumb cat\nunset\nExit code: 0", 0),
        ("sleep 300 & echo done", "done\nExit code: 0", 0),
    ],
)
@pytest.mark.requirement("S3", "F40", "F41")
async def test_shell_reports_output_and_exit_code(
    root: Path, call: Call, command: str, content: str, exit_code: int
) -> None:
    result = await call(SHELL, command=command)

    assert result == ToolResult(
        content=content.replace("ROOT", str(root)),
        is_error=exit_code != 0,
        code="exit_code" if exit_code else None,
        metadata={"exit_code": exit_code, "timed_out": False},
    )


@pytest.mark.requirement("F40")
async def test_shell_reports_a_timeout_with_what_was_printed(call: Call) -> None:
    result = await call(SHELL, command="echo waiting; sleep 300", timeout=0.5)

    assert result == ToolResult(
        content="waiting\nTimed out after 0.5 s; the command and what it had started were ended",
        is_error=True,
        code="timeout",
        metadata={"exit_code": None, "timed_out": True},
    )


@pytest.mark.requirement("F41")
async def test_shell_keeps_head_and_tail_of_long_output(call: Call) -> None:
    result = await call(SHELL, command="echo begin; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end")

    assert result.content.startswith("begin\nxxx")
    assert result.content.endswith("xxx\nend\nExit code: 0")
    assert " cut …]" in result.content
    assert len(result.content) < 30_100


async def test_shell_streams_output(context: ToolContext) -> None:
    pieces: list[str] = []

    await SHELL.prepare("1", {"command": "echo one; echo two >&2"}).run(replace(context, output=pieces.append))

    assert "".join(pieces) == "one\ntwo\n"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo \0", "embedded null byte"),
        ("echo " + "x" * 4_000_000, "[Errno 7] Argument list too long: '/bin/bash'"),
    ],
    ids=["nul", "too-long"],
)
async def test_shell_says_why_a_command_cannot_start(call: Call, command: str, reason: str) -> None:
    assert await call(SHELL, command=command) == ToolResult.error(
        "start_failed", f"The command cannot be started: {reason}"
    )


def test_shell_action_carries_the_command(root: Path) -> None:
    action = SHELL.prepare("1", {"command": "make test"}).action(Workspace(root))

    assert action == Action(tool="shell", access=Access.EXECUTE, command="make test")
