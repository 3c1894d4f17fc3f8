"""Frames survive every way of cutting, damaging and exaggerating them; neither side can block the server."""

import os
import socket
import tempfile
from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_lsp.lsp.transport import FrameParser, FrameWriter, OversizedFrame, read_chunks
from tests.support.jsonrpc_client import frame

NEXT = frame(b"next")


def parse(stream: bytes, *, max_frame: int = 1000) -> list[bytes | OversizedFrame]:
    return list(FrameParser(max_frame).feed(stream))


@pytest.mark.requirement("F63")
@pytest.mark.parametrize(
    ("stream", "frames"),
    [
        pytest.param(frame(b"one"), [b"one"], id="plain"),
        pytest.param(b"content-length: 3\r\n\r\none", [b"one"], id="lower case"),
        pytest.param(b"CONTENT-LENGTH:3\r\n\r\none", [b"one"], id="upper case, no space"),
        pytest.param(b"Content-Length: 3\n\none", [b"one"], id="line feeds"),
        pytest.param(b"Content-Length \t:\t3 \r\n\r\none", [b"one"], id="blanks"),
        pytest.param(b"Content-Type: x\r\nContent-Length: 3\r\n\r\none", [b"one"], id="another header before"),
        pytest.param(b"Content-Length: 3\r\nContent-Type: x; charset=utf-8\r\n\r\none", [b"one"], id="another after"),
        pytest.param(b"Content-Length: 0\r\n\r\n", [b""], id="empty"),
        pytest.param(b"garbage\r\n\r\n\0\xff" + frame(b"one"), [b"one"], id="garbage"),
        pytest.param(b"garbage" * 10_000 + frame(b"one"), [b"one"], id="much garbage"),
        pytest.param(b"Content-Length: x\r\n\r\n{}", [], id="no number"),
        pytest.param(b"Content-Length: -3\r\n\r\n{}", [], id="negative"),
        pytest.param(b"Content-Length: 99", [], id="header cut in its line"),
        pytest.param(b"Content-Length: 99\r\n", [], id="header cut after its line"),
        pytest.param(b"Content-Length: 99\r\nX: ", [], id="header cut in another line"),
        pytest.param(b"Content-Length: 2\r\n\r\n{'a': 1}", [b"{'"], id="too short"),
        pytest.param(b"Content-Length: 1001\r\n\r\n", [OversizedFrame(1001)], id="too large, still to come"),
        pytest.param(b"Content-Length: 1001\r\n\r\n" + b"x" * 1001, [OversizedFrame(1001)], id="too large"),
        pytest.param(b"Content-Length: 1000000000000\r\n\r\n{}", [OversizedFrame(10**12)], id="absurd"),
    ],
)
def test_parser_reads_frame_and_is_in_step_for_the_next(stream: bytes, frames: Sequence[bytes]) -> None:
    assert parse(stream + NEXT) == [*frames, b"next"]


@pytest.mark.requirement("F63")
@pytest.mark.parametrize(
    "announced",
    [
        pytest.param(3, id="ends inside the next header"),
        pytest.param(30, id="ends inside the next content"),
        pytest.param(500, id="longer than all there is"),
    ],
)
@pytest.mark.parametrize("line_end", [b"\r\n", b"\n"])
def test_frame_whose_length_was_too_large_ends_at_the_next_header(announced: int, line_end: bytes) -> None:
    stream = b"Content-Length: %d\r\n\r\n{}" % announced + NEXT.replace(b"\r\n", line_end) + NEXT
    assert parse(stream) == [b"{}", b"next", b"next"]


@pytest.mark.requirement("F63")
def test_header_that_a_too_large_length_has_cut_is_found_when_its_rest_comes() -> None:
    parser = FrameParser()
    assert list(parser.feed(b"Content-Length: 12\r\n\r\n{}Content-Len")) == [b"{}Content-Le"]
    assert list(parser.feed(b"gth: 4\r\n\r\nnext")) == [b"next"]


@given(
    contents=st.lists(st.binary(max_size=40)),
    line_end=st.sampled_from([b"\r\n", b"\n"]),
    cuts=st.lists(st.integers(min_value=1, max_value=60)),
)
def test_parser_does_not_depend_on_how_the_stream_is_cut(
    contents: list[bytes], line_end: bytes, cuts: list[int]
) -> None:
    stream = b"".join(b"Content-Length: %d%b%b%b" % (len(c), line_end, line_end, c) for c in contents)
    parser, found, position = FrameParser(), list[bytes | OversizedFrame](), 0
    for cut in [*cuts, len(stream)]:
        found += parser.feed(stream[position : position + cut])
        position += cut
    assert found == contents


def test_parser_keeps_little_of_what_is_not_a_frame() -> None:
    parser = FrameParser()
    for _ in range(100):
        assert list(parser.feed(b"x" * 100_000)) == []
    assert len(parser._buffer) < 10_000


async def read_all(descriptor: int) -> bytes:
    return b"".join([chunk async for chunk in read_chunks(descriptor)])


@pytest.mark.parametrize("size", [0, 10, 300_000])
async def test_reader_reads_regular_file_to_its_end(size: int) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * size)
        file.seek(0)
        assert len(await read_all(file.fileno())) == size


async def test_reader_ends_at_once_on_the_null_device() -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        assert await read_all(null) == b""
    finally:
        os.close(null)


async def test_reader_reads_pipe_until_the_writer_closes_it() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"some")
    os.close(writing)
    try:
        assert await read_all(reading) == b"some"
    finally:
        os.close(reading)


async def test_reader_takes_a_broken_connection_for_the_end() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.send(b"unread")
        ours.send(b"unread")
        theirs.close()
        assert await read_all(ours.fileno()) in (b"unread", b"")


async def test_writer_sends_everything_in_order_to_a_slow_reader() -> None:
    ours, theirs = socket.socketpair()
    contents = [bytes([number]) * 100_000 for number in range(50)]
    with ours, theirs:
        async with anyio.create_task_group() as tasks:
            writer = FrameWriter(theirs.fileno())
            tasks.start_soon(writer.run)
            for content in contents:
                writer.write(content)
            parser, found = FrameParser(), list[bytes | OversizedFrame]()
            async for chunk in read_chunks(ours.fileno()):
                found += parser.feed(chunk)
                if len(found) == len(contents):
                    break
            await writer.drain(0)
            tasks.cancel_scope.cancel()
    assert found == contents


async def test_writer_writes_regular_file() -> None:
    with tempfile.TemporaryFile() as file:
        async with anyio.create_task_group() as tasks:
            writer = FrameWriter(file.fileno())
            tasks.start_soon(writer.run)
            writer.write(b"one")
            await writer.drain(0)
            tasks.cancel_scope.cancel()
        file.seek(0)
        assert file.read() == frame(b"one")


async def test_writer_makes_those_wait_who_drain_and_nobody_else() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        async with anyio.create_task_group() as tasks:
            writer = FrameWriter(theirs.fileno())
            tasks.start_soon(writer.run)
            for _ in range(50):
                writer.write(b"x" * 100_000)
            with anyio.move_on_after(0.05) as patience:
                await writer.drain()
            assert patience.cancelled_caught
            await anyio.to_thread.run_sync(ours.recv, 4_500_000, 256)
            await writer.drain()
            tasks.cancel_scope.cancel()


async def test_writer_gives_up_a_client_that_never_reads() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = FrameWriter(theirs.fileno(), max_unsent=3_000_000)

        async def write() -> None:
            for _ in range(5):
                writer.write(b"x" * 1_000_000)
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            with pytest.raises(BrokenPipeError, match="does not read"):
                await writer.run()
        writer.write(b"ignored")
        await writer.drain(0)


async def test_writer_reports_a_client_that_is_gone() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.close()
        writer = FrameWriter(theirs.fileno())
        writer.write(b"x")
        with pytest.raises(BrokenPipeError):
            await writer.run()
        await writer.drain(0)
