"""The server as a process: its streams are its own, and it ends when it should, as it should, with its children."""

import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.lsp.harness import process
from tests.support.jsonrpc_client import Client, ErrorReply, frame
from tests.support.processes import wait_until_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pidfd_open is of Linux")

END = 2.0
"""Seconds within which the process has to be gone."""


async def command(client: Client, name: str, *arguments: Any) -> Any:
    return await client.request("workspace/executeCommand", {"command": f"example.{name}", "arguments": arguments})


@pytest.mark.requirement("F62")
@pytest.mark.parametrize(
    ("how", "exit_code", "work"),
    [
        ("shutdown and exit", 0, "child"),
        ("shutdown and end of input", 0, "child"),
        ("exit alone", 1, "child"),
        ("end of input", 1, "child"),
        ("end of input", 1, "shielded"),
        (signal.SIGTERM, 143, "child"),
        (signal.SIGTERM, 143, "shielded"),
        (signal.SIGTERM, 143, "thread"),
        (signal.SIGINT, 130, "child"),
        (signal.SIGHUP, 129, "child"),
    ],
)
async def test_process_ends_in_time_with_its_children(how: str | signal.Signals, exit_code: int, work: str) -> None:
    async with process() as client:
        await client.initialize()
        child = await command(client, work)
        if isinstance(how, signal.Signals):
            client.process.send_signal(how)
        if how in ("shutdown and exit", "shutdown and end of input"):
            await client.request("shutdown")
        if how in ("shutdown and exit", "exit alone"):
            await client.notify("exit")
        if how in ("end of input", "shutdown and end of input"):
            await client.close()
        assert await client.exit_code(END) == exit_code
        if child is not None:
            await wait_until_gone(child, END)


@pytest.mark.requirement("F62")
async def test_process_ends_when_the_editors_process_is_gone() -> None:
    async with await anyio.open_process(["sleep", "60"]) as editor, process() as client:
        await client.initialize(processId=editor.pid)
        child = await command(client, "child")
        editor.kill()
        await editor.wait()
        assert await client.exit_code() == 1
        await wait_until_gone(child, END)


async def test_streams_of_the_client_are_out_of_reach_for_children_and_prints() -> None:
    with tempfile.TemporaryFile() as stderr:
        async with process(stderr) as client:
            await client.initialize()
            waiting = [await client.ask("agent/echo", [number]) for number in range(50)]
            assert await command(client, "streams") == {"read": "''"}
            assert [await client.answer(id_) for id_ in waiting] == [[number] for number in range(50)]
            await client.shut_down()
            assert await client.exit_code() == 0
        stderr.seek(0)
        assert stderr.read().splitlines() == [b"careless", b"careless", b"careless child"]


@pytest.mark.requirement("F63")
@pytest.mark.parametrize(
    "announced",
    [
        pytest.param(65 * 1024 * 1024, id="too large"),
        pytest.param(10**12, id="absurd"),
        pytest.param(10**30, id="huge"),
    ],
)
async def test_oversized_message_is_refused_and_the_next_one_answered(announced: int) -> None:
    async with process() as client:
        await client.initialize()
        await client.send_bytes(b"Content-Length: %d\r\n\r\n" % announced)
        for _ in range(min(announced, 65 * 1024 * 1024) // (1024 * 1024)):
            await client.send_bytes(b"x" * 1024 * 1024)
        with pytest.raises(ErrorReply) as reply:
            await client.answer(None)
        assert (reply.value.code, reply.value.message) == (
            -32600,
            f"Invalid request: {announced} bytes in one message; 67108864 are allowed",
        )
        assert await client.request("agent/echo", [1]) == [1]


async def test_large_messages_pass_both_ways() -> None:
    text = "x" * 20_000_000
    async with process() as client:
        await client.initialize()
        assert await client.request("agent/echo", [text]) == [text]


@pytest.mark.requirement("F63")
async def test_input_from_a_file_is_answered_until_its_end() -> None:
    messages = [
        b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}',
        b'{"jsonrpc": "2.0", "id": 2, "method": "agent/echo", "params": [1]}',
        b'{"jsonrpc": "2.0", "id": 3, "method": "shutdown"}',
        b'{"jsonrpc": "2.0", "method": "exit"}',
    ]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as answers:
        given.write(b"".join(frame(message) for message in messages))
        given.seek(0)
        served = await anyio.run_process(
            [sys.executable, "-m", "tests.lsp.example_server"],
            stdin=given,
            stdout=answers,
            stderr=None,
            cwd=Path(__file__).parents[2],
            check=False,
        )
        answers.seek(0)
        assert served.returncode == 0
        assert answers.read().endswith(
            frame(b'{"jsonrpc":"2.0","id":2,"result":[1]}') + frame(b'{"jsonrpc":"2.0","id":3,"result":null}')
        )
