"""``spawn_agent``: a sub-agent with its own history and a subset of the tools, behind the same gates (F7).

It runs inside the call that spawned it, so that a cancel reaches it, and its events travel wrapped in SubagentEvent.
The lifecycle hooks of a prompt are not its own: nobody submitted its prompt, and its end is a SubagentFinished.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace

from pydantic import Field

from agent_lsp.agent.agent import Agent
from agent_lsp.agent.events import AgentEvent, AssistantReplied, HistoryCompacted, SubagentEvent, SubagentFinished
from agent_lsp.agent.loop import run_turns
from agent_lsp.approvals import Action
from agent_lsp.errors import AgentLspError, ToolError
from agent_lsp.messages import ToolResult, Transcript, Usage, UserMessage
from agent_lsp.tools.base import AnyTool, Params, Tool, ToolContext
from agent_lsp.tools.registry import ToolRegistry
from agent_lsp.workspace import Access

MAX_DEPTH = 2
"""How deep agents may spawn agents: a sub-agent may have sub-agents, and those none."""

NAME = "spawn_agent"

current_agent: ContextVar[str] = ContextVar("current_agent", default="")
"""The name of the sub-agent whose call is being judged or run; empty for the session's own."""


class SpawnAgent(Params):
    """Give a self-contained piece of work to a sub-agent and wait for its answer.

    It starts with an empty history: its prompt must say all that it needs to know. It sees the same project, and its
    calls are judged by the same rules. Use it for research or a change that would fill your own history with detail.
    """

    name: str = Field(min_length=1, max_length=60, description="A short name for people to tell it apart")
    prompt: str = Field(min_length=1, description="What it shall do and what it shall answer")
    tools: tuple[str, ...] | None = Field(default=None, description="The tools that it may use; all where left out")


def spawn_agent_tool(parent: Callable[[], Agent], *, depth: int = 1) -> AnyTool:
    """The tool for an agent; ``parent`` gives that agent, which does not exist yet while its tools are made."""

    async def run(params: SpawnAgent, context: ToolContext) -> ToolResult:
        return await _run_subagent(parent(), params, context.call_id, depth)

    return Tool(
        name=NAME,
        params=SpawnAgent,
        access=Access.INTERNAL,
        run=run,
        action=lambda _params, _workspace: Action(tool=NAME, access=Access.INTERNAL),
    )


async def _run_subagent(parent: Agent, params: SpawnAgent, call_id: str, depth: int) -> ToolResult:
    used = Usage()

    def forward(event: AgentEvent) -> None:
        nonlocal used
        if isinstance(event, AssistantReplied | HistoryCompacted):
            used += event.usage
        parent.emit(SubagentEvent(agent=params.name, call_id=call_id, event=event))

    child = _child(parent, params, forward, depth)
    text, is_error = "cancelled", True
    name = current_agent.set(params.name)
    try:
        outcome = await run_turns(child, Transcript([UserMessage(content=params.prompt)]), ask_stop_hooks=False)
        text, is_error = outcome.text, False
    except AgentLspError as error:
        text = str(error)
        raise ToolError("agent_failed", f"The sub-agent {params.name} ended without an answer: {error}") from error
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        raise
    finally:
        current_agent.reset(name)
        parent.emit(SubagentFinished(agent=params.name, call_id=call_id, text=text, is_error=is_error, usage=used))
    return ToolResult(content=text)


def _child(parent: Agent, params: SpawnAgent, emit: Callable[[AgentEvent], None], depth: int) -> Agent:
    known = [tool.name for tool in parent.tools]
    wanted = known if params.tools is None else params.tools
    if unknown := sorted(set(wanted) - set(known)):
        raise ToolError("unknown_tool", f"There is no tool {', '.join(unknown)}; there are {', '.join(known)}")
    tools = [tool for tool in parent.tools if tool.name in wanted and tool.name != NAME]
    if NAME in wanted and depth < MAX_DEPTH:
        tools.append(spawn_agent_tool(lambda: child, depth=depth + 1))
    child = replace(parent, tools=ToolRegistry(tools), emit=emit)
    return child
