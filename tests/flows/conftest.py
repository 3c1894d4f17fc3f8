"""What the scenarios share."""

from collections.abc import Iterator

import pytest

from tests.support.openai_server import OpenAIServer


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """A model server on the loopback interface, without any answer yet."""
    with OpenAIServer() as server:
        yield server
