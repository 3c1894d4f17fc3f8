"""Every registration of the language server, and nothing else: commands, requests, notifications.

Handlers annotate their arguments as Any: pygls hands the server itself to a first parameter annotated as object.
What a prompt needs is imported after ``initialized``, in a thread, so that ``initialize`` is answered at once.
"""

import importlib
import logging
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from lsprotocol import types

from agent_lsp import __version__
from agent_lsp.lsp.code_actions import KINDS, resolve
from agent_lsp.lsp.commands import Commands
from agent_lsp.lsp.front import Front
from agent_lsp.lsp.server import AgentServer, run
from agent_lsp.lsp.sessions import SessionCommands


def serve_stdio(*, log_level: str, log_file: Path | None) -> int:
    """Serve the editor at the standard streams until it leaves; returns the exit code."""
    logging.basicConfig(
        level=log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        handlers=[_log_handler(log_file)],
    )
    return run(make_server())


def _log_handler(file: Path | None) -> logging.Handler:
    if file is None:
        return logging.StreamHandler(sys.stderr)
    return logging.FileHandler(file, encoding="utf-8", errors="backslashreplace")  # as the standard error has it


def make_server() -> AgentServer:
    """A server with everything registered."""
    server = AgentServer("agent-lsp", __version__)
    front = Front(server)
    _register_life(server, front)
    _register_documents(server, front)
    _register_commands(server, front)
    return server


def _register_life(server: AgentServer, front: Front) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        front.configure(params)

    @server.feature(types.INITIALIZED)
    def initialized(_params: types.InitializedParams) -> None:
        front.prepare()
        server.start_job(_preload, "preload")

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        front.change_folders(params.event)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        await front.settings.change(params.settings)

    @server.feature(types.SHUTDOWN)
    def shutdown(_params: None) -> None:
        front.close()


def _register_documents(server: AgentServer, front: Front) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        front.document_opened(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        front.document_saved(params.text_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(_params: types.DidChangeWatchedFilesParams) -> None:
        front.check_settings()

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        front.document_changed(params.text_document.uri)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=list(KINDS), resolve_provider=True),  # pygls does not set it
    )
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        return front.code_actions(params)

    @server.feature(types.CODE_ACTION_RESOLVE)
    def code_action_resolve(action: types.CodeAction) -> types.CodeAction:
        return resolve(action)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        return front.code_lenses(params.text_document.uri)

    @server.feature(types.WORKSPACE_TEXT_DOCUMENT_CONTENT)
    async def text_document_content(params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        return await front.content(params)


def _register_commands(server: AgentServer, front: Front) -> None:
    @server.feature("agent/prompt")
    async def prompt(params: Any) -> dict[str, Any]:
        return await front.prompt(params)

    commands = Commands(server, front)
    sessions = SessionCommands(front)
    handlers: dict[str, Callable[[object], Any]] = {
        "agent.run": front.run,
        "agent.cancel": commands.cancel,
        "agent.mode": commands.mode,
        "agent.status": commands.status,
        "agent.approvals.list": commands.list_approvals,
        "agent.approvals.answer": commands.answer_approval,
        "agent.approvals.part": commands.decide_part,
        "agent.approvals.show": commands.show_approval,
        "agent.approvals.allow": partial(commands.answer_oldest, "allow"),
        "agent.approvals.deny": partial(commands.answer_oldest, "deny"),
        "agent.validate": commands.validate,
        "agent.hooks": commands.hooks,
        "agent.hooks.open": commands.open_hook,
        "agent.hooks.dismiss": commands.dismiss_block,
        "agent.trust": commands.trust,
        "agent.session.new": sessions.new,
        "agent.session.list": sessions.list,
        "agent.session.resume": sessions.resume,
        "agent.session.transcript": sessions.transcript,
        "agent.session.export": sessions.export,
        "agent.undo": sessions.undo,
    }
    for name, handler in handlers.items():
        server.command(name)(_taking_one(handler))


def _taking_one(handler: Callable[[object], Any]) -> Callable[..., Any]:
    return lambda *arguments: handler(_first(arguments))


def _first(arguments: tuple[object, ...]) -> object:
    """A command's one argument object; commands without arguments get an empty one."""
    return arguments[0] if arguments and arguments[0] is not None else {}


async def _preload() -> None:
    """Import the model's client library, off the loop (P4)."""
    await anyio.to_thread.run_sync(importlib.import_module, "openai")
