"""Every registration of the language server, and nothing else: commands, requests, notifications.

Handlers annotate their arguments as Any: pygls hands the server itself to a first parameter annotated as object.
What a prompt needs is imported after ``initialized``, in a thread, so that ``initialize`` is answered at once.
"""

import importlib
import logging
import sys
from pathlib import Path
from typing import Any

import anyio.to_thread
from lsprotocol import types

from agent_lsp import __version__
from agent_lsp.lsp.front import Front
from agent_lsp.lsp.server import AgentServer, run


def serve_stdio(*, log_level: str, log_file: Path | None) -> int:
    """Serve the editor at the standard streams until it leaves; returns the exit code."""
    logging.basicConfig(
        level=log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        handlers=[logging.FileHandler(log_file, encoding="utf-8") if log_file else logging.StreamHandler(sys.stderr)],
    )
    return run(make_server())


def make_server() -> AgentServer:
    """A server with everything registered."""
    server = AgentServer("agent-lsp", __version__)
    front = Front(server)

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        front.configure(params)

    @server.feature(types.INITIALIZED)
    def initialized(_params: types.InitializedParams) -> None:
        server.start_job(_preload, "preload")
        server.start_job(front.pull_settings, "settings")

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        await front.change_settings(params.settings)

    @server.feature("agent/prompt")
    async def prompt(params: Any) -> dict[str, Any]:
        return await front.prompt(params)

    @server.command("agent.run")
    async def run_prompt(*arguments: Any) -> dict[str, str]:
        return await front.run(_first(arguments))

    @server.command("agent.cancel")
    def cancel(*arguments: Any) -> dict[str, bool]:
        return front.cancel(_first(arguments))

    @server.command("agent.mode")
    async def mode(*arguments: Any) -> dict[str, str]:
        return await front.mode(_first(arguments))

    @server.command("agent.status")
    def status(*_arguments: Any) -> dict[str, Any]:
        return front.status()

    @server.command("agent.approvals.list")
    def list_approvals(*_arguments: Any) -> list[dict[str, Any]]:
        return front.list_approvals()

    @server.command("agent.approvals.answer")
    async def answer_approval(*arguments: Any) -> dict[str, bool]:
        return await front.answer_approval(_first(arguments))

    return server


def _first(arguments: tuple[object, ...]) -> object:
    """A command's one argument object; commands without arguments get an empty one."""
    return arguments[0] if arguments and arguments[0] is not None else {}


async def _preload() -> None:
    """Import what the first prompt needs, off the loop (P4)."""
    for module in ("agent_lsp.lsp.prompts", "openai"):
        await anyio.to_thread.run_sync(importlib.import_module, module)
