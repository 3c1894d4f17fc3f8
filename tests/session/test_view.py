"""What the model is shown of a long session, and what it cost, after a restart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_lsp.messages import AssistantMessage, ToolCall, ToolMessage, Usage, UserMessage
from agent_lsp.models.scripted import ScriptedModel, Step, calls, says
from agent_lsp.session.assemble import SessionOptions, open_session
from agent_lsp.session.records import message_of, message_record
from agent_lsp.session.session import Session
from tests.support.harness import RecordingApprover

LINES = "a line that fills the room\n" * 200
_opened: list[Session] = []


@pytest.fixture(autouse=True)
def _close_all() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().history.close()


def opened(root: Path, script: list[Step], resume: str | None = None) -> tuple[Session, ScriptedModel]:
    model = ScriptedModel(script)
    options = SessionOptions(
        root=root, approver=RecordingApprover(), model=model, resume=resume, validate=False, environ={}
    )
    session = open_session(options)
    _opened.append(session)
    return session, model


@pytest.mark.requirement("F53", "F61")
async def test_a_session_goes_on_with_the_shorter_view_and_keeps_the_whole_record(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(LINES)
    used = Usage(input_tokens=5, output_tokens=1, cost=0.5)
    reads: list[Step] = [calls(("read_file", {"path": "a.txt", "start_line": line})) for line in range(1, 5)]
    session, model = opened(tmp_path, [*reads, says("done", usage=used)])
    model.input_limit = 6_000
    finished = await session.run("read it")
    assert finished.error is None
    view, record = tuple(session.transcript.view), tuple(session.transcript)
    assert view != record
    session.history.close()

    again, model = opened(tmp_path, [says("more", usage=used)], resume=session.id)
    assert tuple(again.transcript) == record
    assert tuple(again.transcript.view) == view
    finished = await again.run("go on")
    assert model.requests[0].messages == (*view, UserMessage(content="go on"))
    assert finished.session_usage == used + used


def test_a_call_is_kept_with_what_its_server_wants_back() -> None:
    call = ToolCall(
        id="1", name="read", arguments="{}", provider_id="p", extra='{"google": {"thought_signature": "s"}}'
    )
    for message in (AssistantMessage(tool_calls=(call,)), ToolMessage(tool_call_id="1", content="x")):
        assert message_of(message_record(message)) == message
