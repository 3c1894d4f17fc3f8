"""Processes that are not our children: which of them a test has to answer for, and their end."""

import os
import sys
from pathlib import Path

import anyio

MARK_VARIABLE = "AGENT_LSP_TEST"


def processes_with(mark: str) -> dict[int, str]:
    """Ids and command lines of living processes that have the mark in their environment; zombies have neither."""
    if sys.platform != "linux":
        return {}
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    found = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal():
            try:
                if wanted in (directory / "environ").read_bytes().split(b"\0"):
                    found[int(directory.name)] = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # gone while we looked, or another user's
    return found


async def wait_until_gone(process_id: int, timeout: float) -> None:
    """Wait for the end of a process; raises TimeoutError after ``timeout`` seconds. Linux alone."""
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return
    try:
        with anyio.fail_after(timeout):
            await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)
