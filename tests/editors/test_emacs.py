"""Emacs with the file of examples/emacs."""

import shutil
from collections.abc import Sequence
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

PROGRAM = shutil.which("emacs")

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Emacs on this machine (November 2026)")


OURS = ("-Q", "-l", str(EXAMPLES / "emacs" / "agent-lsp.el"))
PACKAGES = ("-q", "-f", "package-initialize")
"""Options for an Emacs with the example, and for one with what is installed beside it, and no more."""


def play(
    project: Project, scenario: str, *answers: str, file: str = "doubling.py", options: Sequence[str] = OURS
) -> dict[str, Any]:
    command = ["emacs", "--batch", *options, file, "-l", str(SCENARIOS / "emacs.el")]
    return project.play(command, scenario, "".join(f"{answer}\n" for answer in answers))


@pytest.mark.requirement("S6", "S4-run", "S4-ask")
def test_question_is_shown_allowed_refused_and_left_waiting(project: Project, server: OpenAIServer) -> None:
    server.reply_tool_calls(FIX)
    server.reply_text("Fixed.")
    server.reply_tool_calls(SPOIL)
    server.reply_text("Not done.")
    server.reply_tool_calls(SPOIL)
    server.reply_text("Still not done.")

    answers = ["Show change", "Allow", "Deny", "C-g", "edit_file: doubling.py", "Deny"]
    seen = play(project, "questions", *answers)

    assert seen["allowed"]["text"] == seen["refused"] == project.source.read_text() == RIGHT
    assert not seen["allowed"]["modified"]
    assert "+    return number * 2" in seen["allowed"]["change"]
    assert [question["titles"][0] for question in seen["asked"]] == [
        *["Show change"] * 4,
        "edit_file: doubling.py",
        "Show change",
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

    answers = ["C-g", "Allow this part", "Leave this part out", "C-g", "Allow edit_file"]
    seen = play(project, "actions", *answers)

    assert seen["waiting"] == [[2, 13], [13]]
    offered = [question["titles"] for question in seen["asked"] if question["prompt"] == "Action: "]
    assert [titles[0] for titles in offered] == ["Show change"] * 3
    assert all("Deny edit_file: doubling.py" in titles for titles in offered)
    assert seen["partly"] == RIGHT + LIMIT
    assert seen["whole"] == project.source.read_text() == RIGHT + RAISED
    server.assert_consumed()


@pytest.mark.requirement("S6", "F34", "S4-documents")
def test_edit_joins_unsaved_text_is_saved_and_is_one_undo_step(project: Project, server: OpenAIServer) -> None:
    server.reply_tool_calls(FIX)
    server.reply_text("Fixed.")

    seen = play(project, "edit", "Allow")

    assert seen["edited"] == project.source.read_text() == RIGHT + TYPED
    assert not seen["modified"]
    assert seen["undone"] == WRONG + TYPED
    server.assert_consumed()


@pytest.mark.requirement("S6", "S4-validation", "S4-trust")
def test_failing_test_is_seen_and_mended(project: Project, server: OpenAIServer) -> None:
    with_failing_test(project)
    server.reply_tool_calls(FIX)
    server.reply_text("Fixed.")

    seen = play(project, "validation", "Trust all of it", "Ask the agent to fix", "Allow", file="test_double.py")

    assert seen["red"] == [5]
    assert project.source.read_text() == RIGHT
    server.assert_consumed()


@pytest.mark.requirement("S6", "S4-cancel")
def test_cancel_stops_the_answer_and_quitting_stops_everything(project: Project, server: OpenAIServer) -> None:
    server.reply_text("This takes", end=End.HANG)
    server.reply_tool_calls(("call_1", "shell", '{"command": "sleep 60"}'))

    assert play(project, "cancel")["running"]

    server.wait_for_client_to_leave()
    server.assert_consumed()


@pytest.mark.requirement("S6", "S4-run", "S4-ask", "S4-validation", "S4-cancel")
def test_plain_eglot_shows_a_failing_test_has_it_mended_and_cancels(project: Project, server: OpenAIServer) -> None:
    with_failing_test(project)
    server.reply_tool_calls(FIX)
    server.reply_text("Fixed.")
    server.reply_tool_calls(("call_1", "shell", '{"command": "touch started; sleep 60"}'))

    answers = ["Show output", "Ask the agent to fix this: ", "Show change", "Allow"]
    seen = play(project, "eglot", *answers, file="test_double.py", options=PACKAGES)

    if not seen["connected"]:
        pytest.skip("no Eglot in this Emacs (November 2026)")
    assert seen["red"] == [5]
    assert [question["titles"][0] for question in seen["asked"][2:]] == ["Show change"] * 2
    assert project.source.read_text() == RIGHT
    server.assert_consumed()


@pytest.mark.requirement("S6", "F34", "S4-documents")
def test_plain_eglot_makes_an_edit_that_the_user_can_undo(project: Project, server: OpenAIServer) -> None:
    server.reply_tool_calls(FIX)
    server.reply_text("Fixed.")

    seen = play(project, "eglot-edit", "Allow", "y", options=PACKAGES)

    if not seen["connected"]:
        pytest.skip("no Eglot in this Emacs (November 2026)")
    assert (seen["edited"], seen["undone"]) == (RIGHT, WRONG)
    assert project.source.read_text() == WRONG
    server.assert_consumed()
