"""Sessions in the editor that outlive the server: begin, list, resume, read, export, undo."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.flows.test_editor_documents import APPLYING, Buffer
from tests.flows.test_language_server import command, editor
from tests.support.jsonrpc_client import ErrorReply
from tests.support.openai_server import OpenAIServer

ACCEPT: dict[str, Any] = {"settings": {"permissions": {"mode": "accept_edits"}}}
OLD = "first\n\U0001f600 second\nthird"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "work" / "text.txt"
    file.parent.mkdir()
    file.write_text(OLD)
    return file


def edit(path: str, old: str, new: str) -> tuple[str, str, str]:
    return ("call_1", "edit_file", json.dumps({"path": path, "edits": [{"old": old, "new": new}]}))


@pytest.mark.requirement("S4-session", "F61")
async def test_session_goes_on_after_the_editor_was_restarted(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("One.")
    server.reply_text("Two.")

    async with editor(tmp_path, server) as client:
        first = await client.request("agent/prompt", {"prompt": "count\nslowly"})
    async with editor(tmp_path, server) as client:
        listed = await command(client, "agent.session.list")
        resumed = await command(client, "agent.session.resume")
        second = await client.request("agent/prompt", {"prompt": "go on"})
        read = await command(client, "agent.session.transcript")

    assert [(each["sessionId"], each["title"], each["turns"], each["open"]) for each in listed] == [
        (first["sessionId"], "count", 1, False)
    ]
    assert (resumed["sessionId"], resumed["messages"], resumed["interrupted"]) == (first["sessionId"], 2, False)
    assert second["sessionId"] == first["sessionId"]
    assert [message["content"] for message in server.requests[1].body["messages"][1:]] == [
        "count\nslowly",
        "One.",
        "go on",
    ]
    assert read["markdown"] == "## Prompt\n\ncount\nslowly\n\nOne.\n\n## Prompt\n\ngo on\n\nTwo.\n"


@pytest.mark.requirement("S4-session")
async def test_prompt_with_the_id_of_a_stored_session_resumes_it(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("One.")
    server.reply_text("Two.")

    async with editor(tmp_path, server) as client:
        first = await client.request("agent/prompt", {"prompt": "a"})
    async with editor(tmp_path, server) as client:
        second = await client.request("agent/prompt", {"prompt": "b", "sessionId": first["sessionId"]})

    assert second["sessionId"] == first["sessionId"]
    assert len(server.requests[1].body["messages"]) == 4


@pytest.mark.requirement("S4-session")
async def test_new_session_is_where_prompts_go(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("One.")
    server.reply_text("Two.")

    async with editor(tmp_path, server) as client:
        first = await client.request("agent/prompt", {"prompt": "a"})
        begun = await command(client, "agent.session.new")
        second = await client.request("agent/prompt", {"prompt": "b"})
        listed = await command(client, "agent.session.list")
        exported = await command(client, "agent.session.export", {"sessionId": first["sessionId"]})
        as_json = await command(client, "agent.session.export", {"sessionId": first["sessionId"], "format": "json"})

    assert second["sessionId"] == begun["sessionId"] != first["sessionId"]
    assert {each["sessionId"]: each["current"] for each in listed} == {
        begun["sessionId"]: True,
        first["sessionId"]: False,
    }
    assert exported["markdown"].startswith("# a\n")
    assert as_json["json"]["turns"][0]["messages"] == [
        {"type": "user", "content": "a"},
        {"type": "assistant", "content": "One."},
    ]


@pytest.mark.requirement("S4-session", "F64")
async def test_session_that_another_editor_has_open_is_refused(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_text("One.")

    async with editor(tmp_path, server) as one:
        first = await one.request("agent/prompt", {"prompt": "a"})
        async with editor(tmp_path, server) as other:
            listed = await command(other, "agent.session.list")
            with pytest.raises(ErrorReply, match="is open in another process"):
                await other.request("agent/prompt", {"prompt": "b", "sessionId": first["sessionId"]})
            read = await command(other, "agent.session.transcript", {"sessionId": first["sessionId"]})

    assert [each["elsewhere"] for each in listed] == [True]
    assert "One." in read["markdown"]


@pytest.mark.requirement("S4-undo")
async def test_undo_puts_files_back_and_tells_the_model(tmp_path: Path, text: Path, server: OpenAIServer) -> None:
    new = ("call_2", "write_file", json.dumps({"path": "deep/er/new.txt", "content": "new\n"}))
    server.reply_tool_calls(edit("text.txt", "second", "2nd"), new)
    server.reply_text("Done.")
    server.reply_text("I see.")

    async with editor(tmp_path, server, **ACCEPT) as client:
        first = await client.request("agent/prompt", {"prompt": "a"})
        changed = text.read_text()
        undone = await command(client, "agent.undo", {"sessionId": first["sessionId"]})
        with pytest.raises(ErrorReply, match="There is nothing to undo in this session"):
            await command(client, "agent.undo")
        await client.request("agent/prompt", {"prompt": "b"})

    assert changed == OLD.replace("second", "2nd")
    assert text.read_text() == OLD
    assert not (tmp_path / "work" / "deep").exists()
    assert undone["turnId"] == first["turnId"]
    assert {(each["path"], each["what"]) for each in undone["restored"]} == {
        ("text.txt", "changed"),
        ("deep/er/new.txt", "deleted"),
        ("deep/er", "deleted"),
        ("deep", "deleted"),
    }
    assert (undone["refused"], undone["notCovered"]) == ([], [])
    told = server.requests[2].body["messages"][-2]["content"]
    assert "The user has undone changes of yours" in told
    assert "text.txt" in told


@pytest.mark.requirement("S4-undo")
async def test_undo_after_a_restart_refuses_what_the_user_changed_since(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    (text.parent / "other.txt").write_text("old\n")
    other = ("call_2", "edit_file", json.dumps({"path": "other.txt", "edits": [{"old": "old", "new": "new"}]}))
    server.reply_tool_calls(edit("text.txt", "second", "2nd"), other)
    server.reply_text("Done.")

    async with editor(tmp_path, server, **ACCEPT) as client:
        first = await client.request("agent/prompt", {"prompt": "a"})
    (text.parent / "other.txt").write_text("new\nmine\n")
    async with editor(tmp_path, server) as client:
        undone = await command(client, "agent.undo", {"sessionId": first["sessionId"], "turnId": first["turnId"]})

    assert text.read_text() == OLD
    assert (text.parent / "other.txt").read_text() == "new\nmine\n"
    assert [each["path"] for each in undone["restored"]] == ["text.txt"]
    [refused] = undone["refused"]
    assert (refused["path"], refused["reason"]) == ("other.txt", "it was changed since")
    assert refused["diff"] == "--- a/other.txt\n+++ b/other.txt\n@@ -1 +1,2 @@\n new\n+mine\n"


@pytest.mark.requirement("S4-undo", "F34")
async def test_undo_of_an_open_document_goes_through_the_editor(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(edit("text.txt", "second", "2nd"))
    server.reply_text("Done.")

    async with editor(tmp_path, server, capabilities=APPLYING, **ACCEPT) as client:
        buffer = Buffer(client, text)

        async def apply(params: Any) -> Any:
            [change] = params["edit"]["documentChanges"]
            await buffer.become(buffer.edited(change["edits"]))
            return {"applied": True}

        client.handlers["workspace/applyEdit"] = apply
        await buffer.open()
        await buffer.become(OLD + "\ntyped")
        await client.request("agent/prompt", {"prompt": "a"})
        edited = buffer.text
        undone = await command(client, "agent.undo")
        after_undo = buffer.text
        await buffer.become(edited + "\nmore")

    assert edited == OLD.replace("second", "2nd") + "\ntyped"
    assert after_undo == OLD + "\ntyped"
    assert [(each["path"], each["unsaved"]) for each in undone["restored"]] == [("text.txt", True)]
    assert text.read_text() == OLD


@pytest.mark.requirement("S4-undo", "F34")
async def test_undo_never_takes_what_was_typed_since(tmp_path: Path, text: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(edit("text.txt", "second", "2nd"))
    server.reply_text("Done.")

    async with editor(tmp_path, server, **ACCEPT) as client:
        await client.request("agent/prompt", {"prompt": "a"})
        buffer = Buffer(client, text)
        buffer.text = text.read_text()
        await buffer.open()
        await buffer.become(buffer.text + "\ntyped")
        undone = await command(client, "agent.undo")

    [refused] = undone["refused"]
    assert refused["reason"] == "the editor holds unsaved changes of it"
    assert "+typed" in refused["diff"]
    assert text.read_text() == OLD.replace("second", "2nd")


BYPASS: dict[str, Any] = {"settings": {"permissions": {"mode": "bypass"}, "validation": {"enabled": False}}}


def shell(command: str) -> tuple[str, str, str]:
    return ("call_1", "shell", json.dumps({"command": command}))


@pytest.mark.requirement("S4-undo", "F34")
async def test_undo_of_a_command_puts_back_the_file_below_an_open_document(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    """The editor has not read the file anew: it shows the old text, which is again that of the file."""
    server.reply_tool_calls(shell("echo theirs > text.txt"))
    server.reply_text("Done.")

    async with editor(tmp_path, server, **BYPASS) as client:
        await Buffer(client, text).open()
        await client.request("agent/prompt", {"prompt": "a"})
        changed = text.read_text()
        undone = await command(client, "agent.undo")

    assert (changed, text.read_text()) == ("theirs\n", OLD)
    assert [(each["path"], each["unsaved"]) for each in undone["restored"]] == [("text.txt", False)]
    assert undone["refused"] == []


@pytest.mark.requirement("S4-undo", "F34")
async def test_file_that_the_user_saved_while_a_command_ran_is_the_users(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    os.mkfifo(begun)
    os.mkfifo(go_on)
    server.reply_tool_calls(shell(f"echo theirs > other.txt; echo > {begun}; cat {go_on}"))
    server.reply_text("Done.")

    async with editor(tmp_path, server, **BYPASS) as client:
        buffer = Buffer(client, text)
        await buffer.open()
        prompt = await client.ask("agent/prompt", {"prompt": "a"})
        await anyio.to_thread.run_sync(begun.read_bytes)
        await buffer.become("mine\n")
        await buffer.save()
        await command(client, "agent.status")  # the server has heard of it
        await anyio.to_thread.run_sync(go_on.write_text, "x")
        await client.answer(prompt)
        undone = await command(client, "agent.undo")

    assert text.read_text() == "mine\n"
    assert not (text.parent / "other.txt").exists()
    assert [(each["path"], each["reason"]) for each in undone["refused"]] == [
        ("text.txt", "somebody else changed it between, or during, changes of the agent")
    ]


@pytest.mark.requirement("S4-undo")
async def test_undo_waits_for_no_running_turn(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(shell("echo x > a; echo begun; sleep 60"))

    async with editor(tmp_path, server, events=True, **BYPASS) as client:
        prompt = await client.ask("agent/prompt", {"prompt": "a"})
        await client.wait_for(lambda message: message.get("params", {}).get("event", {}).get("type") == "tool_output")
        with pytest.raises(ErrorReply, match="A turn is running; cancel it"):
            await command(client, "agent.undo")
        await command(client, "agent.cancel")
        result = await client.answer(prompt)
        undone = await command(client, "agent.undo")

    assert result["changes"] == ["a"]
    assert [(each["path"], each["what"]) for each in undone["restored"]] == [("a", "deleted")]
    assert not (tmp_path / "work" / "a").exists()


@pytest.mark.requirement("S4-session")
@pytest.mark.parametrize(
    ("name", "argument", "message"),
    [
        ("agent.session.resume", {"sessionId": "../x"}, "There is no session ../x in "),
        ("agent.session.resume", {"sessionId": 3}, "sessionId must be a string"),
        ("agent.session.resume", None, "There is no session to continue in "),
        ("agent.session.export", {"format": "pdf"}, "There is no session to continue in "),
        ("agent.undo", {"sessionId": "nobody"}, "There is no session nobody in "),
        ("agent.undo", None, "There is no session to continue in "),
    ],
)
async def test_session_that_is_not_there_gets_a_clear_error(
    tmp_path: Path, server: OpenAIServer, name: str, argument: Any, message: str
) -> None:
    async with editor(tmp_path, server) as client:
        with pytest.raises(ErrorReply, match=message):
            await command(client, name, argument)
        assert await command(client, "agent.session.list") == []
