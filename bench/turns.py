"""P5: what the harness adds to a turn, at growing history.

Both sides run in this process against a server in a thread: the wall time between an answer's last
byte and the next request's arrival. Ours goes through the whole loop, one tool call of a tool that does nothing for
each turn; the floor sends the same history by the client library and reads the stream.
"""

import contextlib
import itertools
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import anyio

from agent_lsp.agent.agent import Agent
from agent_lsp.agent.loop import run_prompt
from agent_lsp.agent.prompt import system_prompt
from agent_lsp.approvals import Action, ApprovalReply, ApprovalRequest
from agent_lsp.errors import AgentLimitError
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.messages import AssistantMessage, ToolCall, ToolMessage, ToolResult, Transcript, UserMessage
from agent_lsp.models.openai_chat import OpenAIChatModel
from agent_lsp.models.settings import OpenAIChatSettings
from agent_lsp.permissions.policy import Policy
from agent_lsp.tools.base import Params, Tool, ToolContext
from agent_lsp.tools.registry import ToolRegistry
from agent_lsp.workspace import Access, Workspace
from bench.measure import Line
from bench.server import BenchServer

_MEASURED = 12
_TEXT = "a line of what a tool printed\n" * 10
_NUMBERS = itertools.count()  # a turn that only repeats itself would be ended


class NothingParams(Params):
    """Do nothing."""


async def _nothing(_params: NothingParams, _context: ToolContext) -> ToolResult:
    return ToolResult(content=f"{next(_NUMBERS)} {_TEXT}")


class _Nobody:
    async def ask(self, request: ApprovalRequest) -> ApprovalReply:
        raise AssertionError(request)


def per_turn(*, quick: bool) -> list[Line]:
    """One line for each size of history."""
    lines = []
    for size in (10, 500) if quick else (10, 100, 500, 2_000):
        with BenchServer(tool="nothing") as server:
            ours = anyio.run(_ours, server, size)
            floor = anyio.run(_raw, server, size)
        lines.append(Line(id="P5", what=f"one turn after {size:,} turns", ours=ours, floor=floor, budget=1.5))
    return lines


def _gap(server: BenchServer) -> float:
    """The median time from an answer sent to the next request received, the first two left out."""
    gaps = [arrived - left for left, arrived in zip(server.departures, server.arrivals[1:], strict=False)]
    return statistics.median(gaps[2:])


async def _ours(server: BenchServer, size: int) -> float:
    transcript = Transcript([UserMessage(content="go")])
    for number in range(size):
        call = ToolCall(id=f"call_{number}", name="nothing", arguments="{}")
        transcript.extend(
            AssistantMessage(content="calling", tool_calls=(call,)), ToolMessage(tool_call_id=call.id, content=_TEXT)
        )
    model = OpenAIChatModel(OpenAIChatSettings(name="bench", base_url=server.base_url, api_key="bench"))
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        tool = Tool(
            name="nothing",
            params=NothingParams,
            access=Access.READ,
            run=_nothing,
            action=lambda _params, _workspace: Action(tool="nothing", access=Access.READ),
        )
        agent = Agent(
            model=model,
            system=system_prompt(workspace),
            tools=ToolRegistry([tool]),
            policy=Policy(workspace=workspace),
            approver=_Nobody(),
            audit=lambda _event: None,
            hooks=HookRegistry(),
            workspace=workspace,
            emit=lambda _event: None,
            max_turns=_MEASURED,
        )
        with contextlib.suppress(AgentLimitError):  # the server never stops calling; the bound ends it
            await run_prompt(agent, transcript, "go on")
    await model.aclose()
    return _gap(server)


async def _raw(server: BenchServer, size: int) -> float:
    import openai

    server.arrivals.clear()
    server.departures.clear()
    client = openai.AsyncOpenAI(base_url=server.base_url, api_key="bench", max_retries=0)
    messages: list[Any] = [{"role": "system", "content": "s"}, {"role": "user", "content": "go"}]
    for number in range(size):
        messages += _raw_turn(f"call_{number}")
    tools: list[Any] = [
        {"type": "function", "function": {"name": "nothing", "description": "", "parameters": {"type": "object"}}}
    ]
    for number in range(_MEASURED):
        stream = await client.chat.completions.create(
            model="bench", messages=messages, tools=tools, stream=True, stream_options={"include_usage": True}
        )
        arguments = ""
        async for chunk in stream:
            for choice in chunk.choices:
                for call in choice.delta.tool_calls or ():
                    arguments += (call.function and call.function.arguments) or ""
        json.loads(arguments or "{}")
        messages += _raw_turn(f"new_{number}")
    await client.close()
    return _gap(server)


def _raw_turn(call_id: str) -> list[Any]:
    call = {"id": call_id, "type": "function", "function": {"name": "nothing", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": "calling", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": _TEXT},
    ]
