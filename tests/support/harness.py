"""An agent on scripted parts, and everything that it did, for tests of the loop."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from agent_lsp.agent.agent import Agent
from agent_lsp.agent.events import AgentEvent, PermissionDecided
from agent_lsp.agent.loop import RunOutcome, run_prompt
from agent_lsp.approvals import Action, ApprovalReply, ApprovalRequest
from agent_lsp.hooks.contract import HookResult
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.messages import ToolMessage, ToolResult, Transcript
from agent_lsp.models.scripted import ScriptedModel, Step
from agent_lsp.permissions.policy import Policy
from agent_lsp.tools.base import AnyTool, Params, Tool, ToolContext
from agent_lsp.tools.registry import ToolRegistry
from agent_lsp.workspace import Access, Workspace

T = TypeVar("T")


class NoteParams(Params):
    """Write a note."""

    text: str = Field(description="what to note")


class RecordingApprover:
    """Answers from a list, then refuses; keeps what it was asked."""

    def __init__(self, *replies: ApprovalReply, before: Callable[[], Awaitable[None]] | None = None) -> None:
        self.requests: list[ApprovalRequest] = []
        self._replies = list(replies)
        self._before = before

    async def ask(self, request: ApprovalRequest) -> ApprovalReply:
        self.requests.append(request)
        if self._before is not None:
            await self._before()
        return self._replies.pop(0) if self._replies else ApprovalReply(allowed=False)


def kept(seen: list[T], value: T) -> HookResult:
    """Keep a value and change nothing: the body of a callback that only watches."""
    seen.append(value)
    return HookResult()


def note_tool(
    handler: Callable[[NoteParams, ToolContext], Awaitable[ToolResult]],
    *,
    name: str = "note",
    access: Access = Access.READ,
) -> AnyTool:
    """A tool without files or programs, whose handler the test gives."""
    return Tool(
        name=name,
        params=NoteParams,
        access=access,
        run=handler,
        action=lambda params, workspace: Action(tool=name, access=access),
    )


@dataclass
class Harness:
    """One agent and its history; ``events`` is the whole stream, ``noted`` what handlers were given."""

    root: Path
    script: Sequence[Step]
    tools: Sequence[AnyTool] = ()
    hooks: HookRegistry | None = field(default_factory=HookRegistry)
    approver: RecordingApprover = field(default_factory=RecordingApprover)
    policy: Policy | None = None
    audit: Callable[[PermissionDecided], None] = lambda _event: None
    max_turns: int = 20
    events: list[AgentEvent] = field(default_factory=list)
    noted: list[str] = field(default_factory=list)
    transcript: Transcript = field(default_factory=Transcript)

    def __post_init__(self) -> None:
        workspace = Workspace(self.root)
        self.model = ScriptedModel(self.script)
        self.agent = Agent(
            model=self.model,
            system="test",
            tools=ToolRegistry(self.tools or [note_tool(self.note)]),
            policy=self.policy or Policy(workspace=workspace),
            approver=self.approver,
            audit=self.audit,
            hooks=self.hooks,
            workspace=workspace,
            emit=self.events.append,
            max_turns=self.max_turns,
        )

    async def note(self, params: NoteParams, _context: ToolContext) -> ToolResult:
        self.noted.append(params.text)
        return ToolResult(content=f"noted {params.text}")

    async def run(self, prompt: str = "go") -> RunOutcome:
        return await run_prompt(self.agent, self.transcript, prompt)

    def results(self) -> dict[str, str]:
        """Each answered call's id and the text that history holds for it."""
        return {m.tool_call_id: m.content for m in self.transcript if isinstance(m, ToolMessage)}
