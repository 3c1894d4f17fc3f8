"""A workspace of several folders, added and removed while the server runs. ``agent-lsp serve`` as a process."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.flows.test_language_server import command, editor
from tests.support.jsonrpc_client import ProcessClient
from tests.support.openai_server import OpenAIServer

ACCEPT: dict[str, Any] = {"settings": {"permissions": {"mode": "accept_edits"}}}


def folder(path: Path) -> dict[str, str]:
    path.mkdir(exist_ok=True)
    return {"uri": path.as_uri(), "name": path.name}


async def change(client: ProcessClient, *, added: Sequence[Any] = (), removed: Sequence[Any] = ()) -> None:
    event = {"added": [*added], "removed": [*removed]}
    await client.notify("workspace/didChangeWorkspaceFolders", {"event": event})


def writes(server: OpenAIServer, file: Path | str) -> None:
    """The next prompt writes a file and ends."""
    server.reply_tool_calls(("call_1", "write_file", json.dumps({"path": str(file), "content": "x"})))
    server.reply_text("done")


@pytest.mark.requirement("S4-folders")
async def test_folders_that_come_and_go_are_where_the_agent_may_write(tmp_path: Path, server: OpenAIServer) -> None:
    root, other = folder(tmp_path / "work"), folder(tmp_path / "other")

    async with editor(tmp_path, server, **ACCEPT) as client:
        await change(client, added=[other, {"uri": "untitled:x", "name": "x"}])
        writes(server, tmp_path / "other" / "first")
        await client.request("agent/prompt", {"prompt": "x"})
        status = await command(client, "agent.status")
        await change(client, removed=[other, {"uri": "file:///never-there", "name": "n"}])
        writes(server, tmp_path / "other" / "second")
        await client.request("agent/prompt", {"prompt": "x"})

    assert status["folders"] == [str(tmp_path / "work"), str(tmp_path / "other")]
    assert (tmp_path / "other" / "first").read_text() == "x"
    assert not (tmp_path / "other" / "second").exists()
    assert str(tmp_path / "other") in server.requests[0].body["messages"][0]["content"]
    assert "outside the workspace" in server.requests[3].body["messages"][-1]["content"]
    assert root["name"] == "work"


@pytest.mark.requirement("S4-folders")
async def test_removed_root_is_left_for_the_next_folder(tmp_path: Path, server: OpenAIServer) -> None:
    root, other = folder(tmp_path / "work"), folder(tmp_path / "other")

    async with editor(tmp_path, server, **ACCEPT) as client:
        writes(server, "in-root")
        first = await client.request("agent/prompt", {"prompt": "x"})
        await change(client, added=[other], removed=[root])
        writes(server, "in-other")
        second = await client.request("agent/prompt", {"prompt": "x"})

    assert first["sessionId"] != second["sessionId"]
    assert (tmp_path / "work" / "in-root").exists()
    assert (tmp_path / "other" / "in-other").exists()
