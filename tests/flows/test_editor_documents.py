"""Edits of documents that an editor holds: through the editor, verified by its text, and never past the user's."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.flows.test_language_server import CAPABILITIES, command, editor
from tests.support.jsonrpc_client import ErrorReply, NoReply, ProcessClient
from tests.support.openai_server import OpenAIServer

OLD = "first\n\U0001f600 second\nthird"
TYPED = "typed\n\U0001f600 second\nthird"
EDITED = "typed\n\U0001f600 2nd\n3rd"
EDIT = (
    "call_1",
    "edit_file",
    json.dumps({"path": "text.txt", "edits": [{"old": "second", "new": "2nd"}, {"old": "third", "new": "3rd"}]}),
)
APPLYING = {**CAPABILITIES, "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
ACCEPT: dict[str, Any] = {"settings": {"permissions": {"mode": "accept_edits"}}}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "work" / "text.txt"
    file.parent.mkdir()
    file.write_text(OLD)
    return file


class Buffer:
    """One document of a simulated editor; keeps the edits that it was asked to make."""

    def __init__(self, client: ProcessClient, file: Path) -> None:
        self.text = OLD
        self.version = 1
        self.edits: list[Any] = []
        self._client = client
        self._file = file

    async def open(self) -> None:
        item = {"uri": self._file.as_uri(), "languageId": "text", "version": 1, "text": self.text}
        await self._client.notify("textDocument/didOpen", {"textDocument": item})

    async def become(self, text: str) -> None:
        self.text, self.version = text, self.version + 1
        identifier = {"uri": self._file.as_uri(), "version": self.version}
        changes = [{"text": text}]
        await self._client.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": changes})

    async def save(self) -> None:
        self._file.write_text(self.text)
        await self._client.notify("textDocument/didSave", {"textDocument": {"uri": self._file.as_uri()}})

    def edited(self, edits: list[Any]) -> str:
        """The text with edits in it; positions are UTF-16."""
        self.edits.append(edits)
        lines = self.text.split("\n")
        text = self.text
        for edit in reversed(edits):
            start, end = (
                sum(len(line) + 1 for line in lines[: place["line"]])
                + len(lines[place["line"]].encode("utf-16-le")[: 2 * place["character"]].decode("utf-16-le"))
                if place["line"] < len(lines)
                else len(text)
                for place in (edit["range"]["start"], edit["range"]["end"])
            )
            text = text[:start] + edit["newText"] + text[end:]
        return text


def heard(server: OpenAIServer) -> str:
    """What the model heard of its call."""
    return str(server.requests[1].body["messages"][-1]["content"])


@pytest.mark.requirement("F34", "S4-documents")
@pytest.mark.parametrize("replies", [True, False])
async def test_edit_goes_through_the_editor_to_unsaved_text(
    tmp_path: Path, text: Path, server: OpenAIServer, replies: bool
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server, capabilities=APPLYING, **ACCEPT) as client:
        buffer = Buffer(client, text)

        async def apply(params: Any) -> Any:
            [change] = params["edit"]["documentChanges"]
            assert change["textDocument"] == {"uri": text.as_uri(), "version": 2}
            await buffer.become(buffer.edited(change["edits"]))
            if not replies:
                raise NoReply
            return {"applied": True}

        client.handlers["workspace/applyEdit"] = apply
        await buffer.open()
        await buffer.become(TYPED)
        result = await client.request("agent/prompt", {"prompt": "x"})

    assert buffer.text == EDITED
    assert len(buffer.edits) == 1
    assert text.read_text() == OLD
    assert "It is in the editor, not saved yet" in heard(server)
    assert result["changes"] == ["text.txt"]


@pytest.mark.requirement("F34", "S4-documents")
async def test_edit_that_the_editor_says_it_made_and_did_not_is_an_error(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")
    handlers = {"workspace/applyEdit": lambda _params: {"applied": True}}

    async with editor(tmp_path, server, capabilities=APPLYING, handlers=handlers, **ACCEPT) as client:
        await Buffer(client, text).open()
        result = await client.request("agent/prompt", {"prompt": "x"})

    assert heard(server).startswith("Error [editor_refused]: The editor did not make the change to text.txt")
    assert (text.read_text(), result["changes"]) == (OLD, [])


@pytest.mark.requirement("F34", "S4-documents")
async def test_typing_that_comes_with_the_edit_makes_it_unclear_and_not_be_made_twice(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server, capabilities=APPLYING, **ACCEPT) as client:
        buffer = Buffer(client, text)

        async def apply(params: Any) -> Any:
            [change] = params["edit"]["documentChanges"]
            await buffer.become("typed " + buffer.edited(change["edits"]))
            return {"applied": True}

        client.handlers["workspace/applyEdit"] = apply
        await buffer.open()
        await client.request("agent/prompt", {"prompt": "x"})

    assert heard(server).startswith("Error [editor_unclear]: text.txt changed while the editor made the change")
    assert len(buffer.edits) == 1


@pytest.mark.requirement("F33", "F34", "S4-documents")
async def test_stale_edit_is_made_again_on_the_fresh_text(tmp_path: Path, text: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server, capabilities=APPLYING, **ACCEPT) as client:
        buffer = Buffer(client, text)

        async def apply(params: Any) -> Any:
            [change] = params["edit"]["documentChanges"]
            if not buffer.edits:
                buffer.edits.append("refused")
                await buffer.become(TYPED)
                return {"applied": False}
            await buffer.become(buffer.edited(change["edits"]))
            return {"applied": True}

        client.handlers["workspace/applyEdit"] = apply
        await buffer.open()
        await client.request("agent/prompt", {"prompt": "x"})

    assert buffer.text == EDITED
    assert heard(server).startswith("Edited text.txt\n")


def validated(tmp_path: Path) -> None:
    """Let a validator look at the file on disk."""
    code = "import sys; sys.exit('2nd' not in open('text.txt', encoding='utf-8').read())"
    check = {"name": "check", "command": [sys.executable, "-c", code], "kind": "lint"}
    settings = tmp_path / "work" / ".agent-lsp" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"validation": {"validators": [check]}}))


@pytest.mark.requirement("S4-documents", "S4-validation")
@pytest.mark.parametrize("saves", [True, False])
async def test_validators_wait_until_the_human_has_saved(
    tmp_path: Path, text: Path, server: OpenAIServer, saves: bool
) -> None:
    validated(tmp_path)
    server.reply_tool_calls(EDIT)
    server.reply_text("done")
    if not saves:
        server.reply_text("seen")  # after the reminder, which tells what is on disk

    async with editor(tmp_path, server, capabilities=APPLYING, **ACCEPT) as client:
        buffer = Buffer(client, text)

        async def apply(params: Any) -> Any:
            await buffer.become(buffer.edited(params["edit"]["documentChanges"][0]["edits"]))
            return {"applied": True}

        client.handlers["workspace/applyEdit"] = apply
        await command(client, "agent.trust")
        await command(client, "agent.trust", {"decision": "grant"})
        await buffer.open()
        prompt = await client.ask("agent/prompt", {"prompt": "x", "workDoneToken": "t"})
        question = await client.wait_for_method("window/showMessageRequest")
        await client.wait_for(
            lambda m: m.get("params", {}).get("value", {}).get("message") == "waiting until you save text.txt"
        )
        if saves:
            await buffer.save()
            withdrawn = await client.wait_for_method("$/cancelRequest")
        else:
            await client.send({"jsonrpc": "2.0", "id": question["id"], "result": None})
        result = await client.answer(prompt)

    assert question["params"]["message"] == (
        "Programs read files on disk. Save text.txt so that they see the agent's change."
    )
    assert not saves or withdrawn["params"] == {"id": question["id"]}
    assert result["validation"]["status"] == ("green" if saves else "red")
    assert ("text.txt is not saved, and validators read the file on disk" in result["validation"]["notes"]) is not saves


@pytest.mark.requirement("F34", "S4-documents")
@pytest.mark.parametrize("unsaved", [True, False])
async def test_editor_without_edits_loses_no_unsaved_text(
    tmp_path: Path, text: Path, server: OpenAIServer, unsaved: bool
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server, capabilities=APPLYING, **ACCEPT) as client:  # announced, and then refused
        buffer = Buffer(client, text)
        await buffer.open()
        if unsaved:
            await buffer.become(TYPED)
        await client.request("agent/prompt", {"prompt": "x"})

    if unsaved:
        assert heard(server).startswith("Error [unsaved_changes]: text.txt has unsaved changes in the editor")
        assert text.read_text() == OLD
    else:
        assert text.read_text() == EDITED.replace("typed", "first")


@pytest.mark.requirement("S4-documents")
async def test_client_of_ours_edits_saves_and_tells_what_it_has_not_sent(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(("call_1", "read_file", '{"path": "text.txt"}'), EDIT)
    server.reply_text("done")
    written: list[Any] = []

    def write(params: Any) -> Any:
        written.append(params)
        return {"applied": True}

    handlers = {
        "agent/readDocument": lambda params: {"text": TYPED, "version": 7},
        "agent/writeDocument": write,
    }

    async with editor(tmp_path, server, handlers=handlers, documents=True, **ACCEPT) as client:
        await client.request("agent/prompt", {"prompt": "x"})

    [params] = written
    assert (params["uri"], params["version"], params["save"]) == (text.as_uri(), 7, True)
    assert params["edits"] == [
        {
            "range": {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 5}},
            "newText": "\U0001f600 2nd\n3rd",
        }
    ]
    assert "1\ttyped" in server.requests[1].body["messages"][-2]["content"]
    assert heard(server) == "Edited text.txt\n- line 2\n- line 3"


@pytest.mark.requirement("F34", "S4-documents")
async def test_client_of_ours_that_edits_and_fails_then_leaves_it_unclear(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server, documents=True, **ACCEPT) as client:
        buffer = Buffer(client, text)

        async def write(params: Any) -> Any:
            await buffer.become(buffer.edited(params["edits"]))
            raise ErrorReply(-32603, "failed behind the edit")

        client.handlers["agent/writeDocument"] = write
        await buffer.open()
        await client.request("agent/prompt", {"prompt": "x"})

    assert heard(server).startswith("Error [editor_unclear]")


@pytest.mark.requirement("F34", "S4-documents")
async def test_client_of_ours_leaves_the_saving_of_unsaved_text_to_the_human(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server, documents=True, **ACCEPT) as client:
        buffer = Buffer(client, text)

        async def write(params: Any) -> Any:
            await buffer.become(buffer.edited(params["edits"]))
            return {"applied": True, "saved": False}

        client.handlers["agent/writeDocument"] = write
        await buffer.open()
        await buffer.become(TYPED)
        await client.request("agent/prompt", {"prompt": "x"})

    assert (buffer.text, text.read_text()) == (EDITED, OLD)
    assert "It is in the editor, not saved yet" in heard(server)


@pytest.mark.requirement("S4-documents")
async def test_client_of_ours_that_says_it_edited_and_shows_the_old_text_is_not_believed(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(
        tmp_path, server, handlers={"agent/writeDocument": lambda _params: {"applied": True}}, documents=True, **ACCEPT
    ) as client:
        await Buffer(client, text).open()
        result = await client.request("agent/prompt", {"prompt": "x"})

    assert heard(server).startswith("Error [editor_refused]: The editor did not make the change to text.txt")
    assert result["changes"] == []


@pytest.mark.requirement("S4-documents", "S4-approvals")
async def test_typing_while_a_change_waits_asks_again_with_the_new_change(
    tmp_path: Path, text: Path, server: OpenAIServer
) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    async with editor(tmp_path, server, capabilities=APPLYING) as client:
        buffer = Buffer(client, text)

        async def apply(params: Any) -> Any:
            [change] = params["edit"]["documentChanges"]
            await buffer.become(buffer.edited(change["edits"]))
            return {"applied": True}

        client.handlers["workspace/applyEdit"] = apply
        await buffer.open()
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        first = await client.wait_for_method("window/showMessageRequest")
        await buffer.become(TYPED)
        await command(client, "agent.approvals.allow")
        second = await client.wait_for(
            lambda m: m.get("method") == "window/showMessageRequest" and m["id"] != first["id"]
        )
        shown = await command(client, "agent.approvals.list")
        await command(client, "agent.approvals.allow")
        await client.answer(prompt)

    assert first["id"] != second["id"]
    assert " typed\n" in shown[0]["diff"]
    assert buffer.text == EDITED


VALIDATED: dict[str, Any] = {
    "permissions": {"mode": "accept_edits", "answer_guard_ms": 0},
    "validation": {
        "validators": [{"name": "third", "command": "grep -q 3rd text.txt", "timeout": 10}],
        "max_rounds": 0,
    },
}


@pytest.mark.requirement("S4-documents")
async def test_going_on_without_saving_holds_until_the_save(tmp_path: Path, text: Path, server: OpenAIServer) -> None:
    """What a human decided about a text is forgotten with the save, and so is the text."""
    for call_id in ("call_1", "call_2"):
        server.reply_tool_calls((call_id, *EDIT[1:]))
        server.reply_text("done")
    asked = list[str]()

    def answer(params: Any) -> Any:
        if params["message"].startswith("Programs read files on disk."):
            asked.append(params["message"])
            return {"title": "Go on without saving"}
        return {"title": "Allow"}  # the trust in the validator

    handlers = {"window/showMessageRequest": answer}
    async with editor(tmp_path, server, capabilities=APPLYING, handlers=handlers, settings=VALIDATED) as client:
        buffer = Buffer(client, text)

        async def apply(params: Any) -> Any:
            [change] = params["edit"]["documentChanges"]
            await buffer.become(buffer.edited(change["edits"]))
            return {"applied": True}

        client.handlers["workspace/applyEdit"] = apply
        await buffer.open()
        first = await client.request("agent/prompt", {"prompt": "x"})
        await buffer.save()
        await buffer.become(OLD)
        await buffer.save()
        second = await client.request("agent/prompt", {"prompt": "x"})

    assert [result["validation"]["status"] for result in (first, second)] == ["red", "red"]
    assert len(asked) == 2


@pytest.mark.requirement("S4-documents")
async def test_validation_waits_for_the_user_to_save(tmp_path: Path, text: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(EDIT)
    server.reply_text("done")

    def answer(params: Any) -> Any:
        if params["message"].startswith("Programs read files on disk."):
            raise NoReply
        return {"title": "Allow"}  # the trust in the validator

    handlers = {"window/showMessageRequest": answer}
    async with editor(tmp_path, server, capabilities=APPLYING, handlers=handlers, settings=VALIDATED) as client:
        buffer = Buffer(client, text)

        async def apply(params: Any) -> Any:
            [change] = params["edit"]["documentChanges"]
            await buffer.become(buffer.edited(change["edits"]))
            return {"applied": True}

        client.handlers["workspace/applyEdit"] = apply
        await buffer.open()
        prompt = await client.ask("agent/prompt", {"prompt": "x"})
        question = await client.wait_for_method("window/showMessageRequest")
        await buffer.save()
        withdrawn = await client.wait_for_method("$/cancelRequest")
        result = await client.answer(prompt)

    assert "Save text.txt" in question["params"]["message"]
    assert withdrawn["params"] == {"id": question["id"]}
    assert result["validation"]["status"] == "green"
