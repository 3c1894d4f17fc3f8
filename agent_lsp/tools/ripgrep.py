"""The ripgrep program: where it is found, and how it is run.

Invariant: the program is the one installed with this package or one from PATH, never one that the workspace put
there; neither a configuration file nor a glob can make it search what ``.gitignore`` hides.
"""

import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from agent_lsp.errors import ToolError
from agent_lsp.processes import Program, ProgramResult, run_program
from agent_lsp.tools.base import ToolContext
from agent_lsp.tools.globs import Glob
from agent_lsp.workspace import ResolvedPath, Workspace

SECONDS = 60.0
FAILED = 2
_NAME = "rg.exe" if sys.platform == "win32" else "rg"
_FLAGS = ("--no-config", "--color=never", "--hidden", "--glob=!.git", "--no-require-git")


def find_ripgrep(workspace: Workspace, environment: Mapping[str, str], scripts: Path | None = None) -> Path | None:
    """The program among this installation's ``scripts``, else the first on PATH that lies outside the workspace."""
    own = (scripts or Path(sysconfig.get_path("scripts"))) / _NAME
    if own.is_file():
        return own
    for directory in filter(os.path.isabs, environment.get("PATH", "").split(os.pathsep)):
        candidate = Path(directory, _NAME)
        if os.access(candidate, os.X_OK) and not workspace.contains(candidate.resolve()):
            return candidate
    return None


async def run_ripgrep(
    ripgrep: Path, arguments: list[str], searched: ResolvedPath | str, context: ToolContext, *, output_limit: int
) -> ProgramResult:
    """Search a path or a text. Runs at the workspace root, so that paths in the output are relative to it.

    Raises ToolError on a time-out.
    """
    stdin = searched.encode("utf-8", "replace") if isinstance(searched, str) else b""
    target = "-" if isinstance(searched, str) else _target(searched, context)
    result = await run_program(
        Program(
            command=(str(ripgrep), *_FLAGS, *arguments, "--", target),
            cwd=context.workspace.root,
            stdin=stdin,
            environment=context.environment,
            timeout=SECONDS,
            output_limit=output_limit,
        )
    )
    if result.timed_out:
        raise ToolError("timeout", f"No end after {SECONDS:.0f} s; narrow the path or the glob")
    return result


def _target(path: ResolvedPath, context: ToolContext) -> str:
    return "./" if path.path == context.workspace.root else path.display


def glob_arguments(glob: Glob | None) -> list[str]:
    """Let ripgrep leave out files by name. As a file type: its own globs would override ``.gitignore``."""
    names = glob.names if glob is not None else ()
    if not names or any(":" in name for name in names):
        return []
    return [*(f"--type-add=wanted:{name}" for name in names), "--type=wanted"]


def below(path: str, directory: ResolvedPath) -> str:
    """A path of the output relative to the directory searched."""
    return path.removeprefix("./" if directory.display == "." else f"{directory.display.rstrip('/')}/")
