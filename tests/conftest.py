"""What every test shares."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_lsp.processes import child_environment
from tests.support.processes import MARK_VARIABLE, processes_with

_MARK = MARK_VARIABLE


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, as the program does."""
    return "asyncio"


@pytest.fixture(autouse=True)
def own_directories(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the settings and the state of whoever runs it."""
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path_factory.getbasetemp() / variable.lower()))


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """An environment for child processes; a test that leaves one of them alive fails."""
    mark = secrets.token_hex(8)
    yield child_environment(os.environ) | {_MARK: mark}
    assert marked_processes(mark) == []


def marked_processes(mark: str) -> list[str]:
    """The command lines of living processes that have the mark in their environment."""
    return list(processes_with(mark).values())


def is_running(pid: int) -> bool:
    """Whether a process lives; a zombie that nobody has collected does not."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False
