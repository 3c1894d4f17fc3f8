"""What other language servers report reaches the model. ``agent-lsp serve`` as a process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows.test_language_server import editor
from tests.support.jsonrpc_client import ProcessClient
from tests.support.openai_server import OpenAIServer

ASK = ("call_1", "diagnostics", '{"path": "a.py"}')


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        server.reply_tool_calls(ASK)
        server.reply_text("done")
        yield server


def diagnostic(line: int, message: str, source: str = "pyright") -> dict[str, Any]:
    place = {"line": line, "character": 4}
    return {"range": {"start": place, "end": place}, "message": message, "source": source, "severity": 1}


async def look(client: ProcessClient, file: Path, *diagnostics: dict[str, Any]) -> Any:
    """Ask for the code actions at a line, as an editor does when the cursor comes there."""
    place = diagnostics[0]["range"]
    params = {"textDocument": {"uri": file.as_uri()}, "range": place, "context": {"diagnostics": [*diagnostics]}}
    return await client.request("textDocument/codeAction", params)


@pytest.mark.requirement("S3-diagnostics", "S4-code-actions")
async def test_diagnostics_seen_with_code_actions_are_told_and_can_be_fixed(
    tmp_path: Path, server: OpenAIServer
) -> None:
    file = tmp_path / "work" / "a.py"

    async with editor(tmp_path, server) as client:
        item = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": "a\nb\nc\n"}
        await client.notify("textDocument/didOpen", {"textDocument": item})
        first = await look(client, file, diagnostic(0, "first"), diagnostic(0, "ours", "agent-lsp"))
        await look(client, file, diagnostic(2, "second"))
        await look(client, file, diagnostic(2, "third"))
        await client.request("agent/prompt", {"prompt": "x"})

    assert server.requests[1].body["messages"][-1]["content"] == (
        "a.py:1:5: error: first (pyright)\na.py:3:5: error: third (pyright)"
    )
    assert first[0]["title"] == "Ask the agent to fix: first"
    argument = first[0]["command"]["arguments"][0]
    assert argument["prompt"] == "Fix this problem and nothing else: first (pyright)"
    assert argument["context"][0]["uri"] == file.as_uri()


@pytest.mark.requirement("S3-diagnostics")
async def test_client_of_ours_is_asked_for_diagnostics(tmp_path: Path, server: OpenAIServer) -> None:
    file = tmp_path / "work" / "a.py"
    asked: list[Any] = []

    def report(params: Any) -> Any:
        asked.append(params)
        found = [diagnostic(1, "found"), {"message": "no range"}, diagnostic(1, "ours", "agent-lsp")]
        return [{"uri": file.as_uri(), "version": 3, "diagnostics": found}, "nonsense"]

    handlers = {"agent/diagnostics": report}
    async with editor(tmp_path, server, handlers=handlers, diagnostics=True) as client:
        item = {"uri": file.as_uri(), "languageId": "python", "version": 4, "text": "a\nb\n"}
        await client.notify("textDocument/didOpen", {"textDocument": item})
        await client.request("agent/prompt", {"prompt": "x"})

    assert asked == [{"uri": file.as_uri()}]
    assert server.requests[1].body["messages"][-1]["content"] == (
        "a.py:2:5: error: found (pyright) [the text has changed since]"
    )
