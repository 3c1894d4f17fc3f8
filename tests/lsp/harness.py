"""The example server, served in this process or in one of its own."""

import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import IO

import anyio

from agent_lsp.lsp.server import AgentServer, serve
from tests.lsp import example_server
from tests.support.jsonrpc_client import Client, ProcessClient, connect, spawn


@asynccontextmanager
async def serving(server: AgentServer) -> AsyncIterator[Client]:
    """Serve a client in this process over a socket, until the block ends."""
    ours, theirs = socket.socketpair()
    with theirs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, server, theirs.fileno(), theirs.fileno())
            async with connect(ours) as client:
                yield client


def process(stderr: IO[bytes] | None = None) -> AbstractAsyncContextManager[ProcessClient]:
    """Start the example server as a process."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", example_server.__name__]
    return spawn(command, cwd=root, env=dict(os.environ), stderr=stderr)
