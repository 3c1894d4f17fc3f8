"""The custom messages against the JSON in ``tests/golden``, which the tests of the VS Code client read too."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from agent_lsp.agent import events
from agent_lsp.agent.events import AgentEvent, FindingSeen, ValidationReport, event_json, event_name
from agent_lsp.approvals import Action, ApprovalReply, ApprovalRequest, FileChange, Scope
from agent_lsp.lsp.approvals import PendingApproval
from agent_lsp.lsp.documents import EditorDocuments
from agent_lsp.lsp.wire import AnswerParams, PromptParams, approval_request, read, result_json
from agent_lsp.messages import ToolResult, Usage
from agent_lsp.workspace import Access, ResolvedPath
from tests.flows.test_language_server import editor
from tests.support.openai_server import OpenAIServer

GOLDEN = Path(__file__).parents[1] / "golden"
USAGE = Usage(input_tokens=12, output_tokens=3, cached_tokens=4, cost=0.25)
FINDING = FindingSeen(
    path="tests/test_a.py",
    line=3,
    column=0,
    message="assert 1 == 2",
    code="AssertionError",
    tool="pytest",
    severity="error",
)
RED = ValidationReport(
    status="red",
    failing=("pytest",),
    already_failing=("mypy",),
    findings=(FINDING,),
    notes=("ruff is not installed",),
)
GREEN = ValidationReport(status="green", already_failing=("mypy",))
EVENTS: tuple[AgentEvent, ...] = (
    events.TurnStarted(prompt="Fix ünit tests"),
    events.TextDelta(text="I will"),
    events.ReasoningDelta(text="First"),
    events.ModelRetry(attempt=1, delay=0.5, reason="503 Service Unavailable"),
    events.AssistantReplied(content="I will.", tool_calls=("call_1",), usage=USAGE),
    events.HistoryCompacted(
        reason="near_limit",
        how="summary",
        tokens_before=110_000,
        tokens_after=40_000,
        messages_before=90,
        messages_after=20,
        usage=USAGE,
    ),
    events.HookReached(event="PostToolUse", tool="write_file", outcome="ok"),
    events.HookActed(
        phase="pre",
        tool="shell",
        call_id="call_1",
        action="deny",
        fired_by="guard",
        reason="not here",
        paths=("a.py",),
    ),
    events.HookFailed(phase="post", tool="shell", call_id="call_1", error="boom", handler_ran=True),
    events.ConfiguredHookRan(
        name="format",
        event="PostToolUse",
        subject="write_file",
        decision="failed",
        reason="exit code 1",
        duration=0.25,
        exit_code=1,
        message="no formatter",
    ),
    events.PermissionDecided(tool="write_file", call_id="call_1", behavior="ask", source="mode", reason="default"),
    events.ApprovalRequested(id="approval_1", tool="write_file", target="a.py"),
    events.ApprovalResolved(id="approval_1", allowed=False, scope="once", feedback="use b.py"),
    events.ToolStarted(tool="write_file", call_id="call_1", arguments={"path": "a.py", "content": "x = 1\n"}),
    events.ToolOutput(call_id="call_1", text="…"),
    events.FileChanged(call_id="call_1", path="a.py"),
    events.CommandRan(call_id="call_1"),
    events.ToolFinished(
        tool="write_file",
        call_id="call_1",
        result=ToolResult.error("denied", "no", {"lines": (1, 2)}),
        phase="permission",
        handler_ran=False,
    ),
    events.SubagentEvent(agent="reader", call_id="call_1", event=events.TextDelta(text="inner")),
    events.SubagentFinished(agent="reader", call_id="call_1", text="done", is_error=False, usage=USAGE),
    events.SaveAwaited(files=("a.py",)),
    events.ValidationStarted(attempt=1, limit=3, validators=("ruff", "pytest")),
    events.ValidatorStarted(name="pytest", command="python -m pytest", directory="."),
    events.ValidatorFinished(
        name="pytest", status="failed", duration=1.5, output="1 failed", log="/state/validation/1.log"
    ),
    events.ValidationFinished(attempt=1, limit=3, report=RED),
    events.TurnFinished(
        stop_reason="validation_failed",
        text="Still failing: pytest",
        changes=("a.py",),
        usage=USAGE,
        session_usage=USAGE,
        validation=RED,
    ),
)


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.requirement("S4-golden", "R18")
def test_every_event_is_sent_as_the_golden_json_has_it() -> None:
    sent = [event_json(event) for event in EVENTS]

    assert [message["event"] for message in golden("agent-event")] == sent
    assert {event["type"] for event in sent} == {event_name(kind.__new__(kind)) for kind in get_args(AgentEvent)}


@pytest.mark.requirement("S4-golden")
def test_prompt_is_read_and_answered_as_the_golden_json_has_it() -> None:
    example = golden("agent-prompt")
    finished = events.TurnFinished(
        stop_reason="completed", text="Done.", changes=("a.py",), usage=USAGE, validation=GREEN
    )

    assert read(PromptParams, example["params"]).model_dump(by_alias=True, exclude_none=True, mode="json") == {
        **example["params"],
    }
    assert result_json("s1", "t1", finished) == example["result"]


def pending(id_: str, tool: str, rule: str | None, change: FileChange | None, reason: str) -> PendingApproval:
    request = ApprovalRequest(
        id=id_,
        action=Action(
            tool=tool,
            access=Access.EXECUTE if change is None else Access.WRITE,
            paths=() if change is None else (change.path,),
            command="rm -r build" if change is None else None,
        ),
        reason=reason,
        source="test",
        arguments={},
        change=change,
        rule=rule,
    )
    return PendingApproval(request=request)


def change(name: str, before: str | None, after: str) -> FileChange:
    path = ResolvedPath(path=Path("/work") / name, display=name, inside=True)
    return FileChange(path=path, before=before, after=after, before_digest="d")


@pytest.mark.requirement("S4-golden", "S4-approvals")
def test_approval_is_asked_for_and_read_as_the_golden_json_has_it() -> None:
    asks = "Writing asks in mode default"
    edit = change("a b.py", "one\ntwo\nthree\n", "one\n2\nthree\n")
    waiting = [
        pending("approval_1", "write_file", "write_file(a b.py)", edit, asks),
        pending("approval_2", "write_file", None, change("new.py", None, "x = 1\n"), asks),
        pending("approval_3", "shell", "shell(rm -r build)", None, "Commands ask"),
    ]
    waiting[0].decided[0] = False
    example = golden("agent-requestApproval")

    assert [approval_request(entry, EditorDocuments()) for entry in waiting] == example["params"]
    assert [read(AnswerParams, answer).reply() for answer in example["answers"] if answer is not None] == [
        ApprovalReply(allowed=True),
        ApprovalReply(allowed=True, scope=Scope.ALWAYS),
        ApprovalReply(allowed=True, hunks=(0,)),
        ApprovalReply(allowed=False, feedback="use b.py"),
    ]


@pytest.mark.requirement("S4-golden", "S4-documents", "S3-diagnostics")
@pytest.mark.parametrize("made", [True, False])
async def test_documents_and_diagnostics_are_asked_for_as_the_golden_json_has_it(tmp_path: Path, made: bool) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a b.py").write_text("x = 1\nz = y\n")
    reading, writing, problems = (golden(f"agent-{name}") for name in ("readDocument", "writeDocument", "diagnostics"))
    root = (tmp_path / "work").as_uri()
    asked: dict[str, list[Any]] = {}

    def answer(method: str, result: Any) -> Any:
        def handler(params: Any) -> Any:
            asked.setdefault(method, []).append(json.loads(json.dumps(params).replace(root, "file:///work")))
            return json.loads(json.dumps(result).replace("file:///work", root))

        return handler

    handlers = {
        "agent/readDocument": answer("agent/readDocument", {"text": "x = 1\nz = y\n", "version": 7}),
        "agent/writeDocument": answer("agent/writeDocument", writing["results"][0 if made else 1]),
        "agent/diagnostics": answer("agent/diagnostics", problems["result"]),
    }
    options: dict[str, Any] = {
        "documents": True,
        "diagnostics": True,
        "settings": {"permissions": {"mode": "accept_edits"}},
    }
    edit = {"path": "a b.py", "edits": [{"old": "z = y", "new": "2"}]}
    with OpenAIServer() as server:
        server.reply_tool_calls(
            ("call_1", "diagnostics", '{"path": "a b.py"}'),
            ("call_2", "diagnostics", "{}"),
            ("call_3", "read_file", '{"path": "a b.py"}'),
            ("call_4", "edit_file", json.dumps(edit)),
        )
        server.reply_text("done")
        async with editor(tmp_path, server, handlers=handlers, **options) as client:
            await client.request("agent/prompt", {"prompt": "x"})
        told = [message["content"] for message in server.requests[1].body["messages"][-4:]]

    assert asked["agent/diagnostics"] == problems["params"]
    assert asked["agent/readDocument"][0] == reading["params"]
    assert asked["agent/writeDocument"] == [writing["params"]]
    assert told[0] == 'a b.py:2:5: error: "y" is not defined (pyright reportUndefinedVariable)'
    assert ("the document is at version 8" in told[3]) is not made
