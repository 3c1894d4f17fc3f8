"""Real editors, without a screen, on the real server with a scripted model behind it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import marked_processes
from tests.editors.project import Project, make_project
from tests.support.openai_server import OpenAIServer

END_LIMIT = 4.0
"""Seconds after an editor in which all that it started has ended."""


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, server: OpenAIServer) -> Iterator[Project]:
    """A project; a test whose editor leaves a process behind fails."""
    project = make_project(tmp_path, server)
    mark = tmp_path.name + str(time.time_ns())
    project.environment["AGENT_LSP_TEST"] = mark
    yield project
    limit = time.monotonic() + END_LIMIT
    while (left := marked_processes(mark)) and time.monotonic() < limit:
        time.sleep(0.02)  # nobody tells the end of another's child
    assert left == []
