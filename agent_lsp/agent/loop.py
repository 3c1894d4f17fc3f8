"""One prompt, from the user's words to the final answer. Invariant: whatever happens, the transcript stays paired."""

from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import assert_never

from agent_lsp.agent.agent import Agent
from agent_lsp.agent.calls import ToolRound
from agent_lsp.agent.context import ContextWindow, too_long
from agent_lsp.agent.events import AssistantReplied, ModelRetry, ReasoningDelta, TextDelta
from agent_lsp.agent.mentions import mentioned, shown
from agent_lsp.agent.repetition import Repetition
from agent_lsp.agent.stop import run_lifecycle_hooks
from agent_lsp.errors import AgentLimitError, AgentLspError, ContextOverflow
from agent_lsp.hooks.contract import HookContext, HookEvent
from agent_lsp.messages import AssistantMessage, ChatMessage, ToolResult, Transcript, UserMessage
from agent_lsp.models.base import ModelRequest, ReasoningChunk, Reply, RetryWait, TextChunk


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended in the ordinary way: the final text, the model requests so far, whether a hook ended it (A49)."""

    text: str
    turns: int = 0
    stopped_by_hook: bool = False


async def run_prompt(agent: Agent, transcript: Transcript, prompt: str) -> RunOutcome:
    """Run one prompt to its end. Raises AgentLimitError, ModelError, or what a prompt or Stop hook raised (A58)."""
    message = UserMessage(content=prompt)
    submitted = await run_lifecycle_hooks(
        agent.hooks, HookContext(event=HookEvent.USER_PROMPT_SUBMIT, message=message), agent.emit
    )
    transcript.extend(message, *await _attached(agent, prompt), *submitted.additional_context)
    return await run_turns(agent, transcript)


async def _attached(agent: Agent, prompt: str) -> tuple[ChatMessage, ...]:
    """The files that a prompt mentions, and the project's instructions for where they lie."""
    paths = mentioned(agent, prompt) if "@" in prompt else []
    instructions = agent.instructions.below(paths) if agent.instructions is not None and paths else ()
    return (*await shown(agent, paths), *instructions)


async def run_turns(
    agent: Agent, transcript: Transcript, *, ask_stop_hooks: bool = True, begun_after: int = 0
) -> RunOutcome:
    """Ask the model and run its calls until it stops; what it is to answer is in the transcript already.

    ``begun_after`` is how many turns the prompt has had, all of which count against ``max_turns``.
    """
    stop_hook_active = False
    context_window = ContextWindow(agent, transcript)
    repetition = Repetition()
    for turn in range(begun_after + 1, agent.max_turns + 1):
        reply = await _ask_within_context(agent, transcript, context_window)
        agent.emit(_replied(reply))
        _record(transcript, reply)
        if reply.message.tool_calls:
            round_ = ToolRound(agent, transcript, reply.message.tool_calls)
            last = await round_.run()
            if last is not None:
                return RunOutcome(text=last.content, turns=turn, stopped_by_hook=True)
            repetition.heed(reply.message.tool_calls, round_.results)
            continue
        if not ask_stop_hooks:
            return RunOutcome(text=reply.message.content, turns=turn)
        context = HookContext(event=HookEvent.STOP, history=tuple(transcript), stop_hook_active=stop_hook_active)
        stopped = await run_lifecycle_hooks(agent.hooks, context, agent.emit)
        if stopped.force_continue is None:
            return RunOutcome(text=reply.message.content, turns=turn)
        transcript.extend(*stopped.additional_context, stopped.force_continue)
        stop_hook_active = True
    raise AgentLimitError(f"Agent exceeded max_turns={agent.max_turns}")


async def _ask_within_context(agent: Agent, transcript: Transcript, window: ContextWindow) -> Reply:
    """One request, on a history that is made shorter where it must be: ahead of it, or once after a refusal (F53)."""
    await window.make_room()
    try:
        reply = await _ask_model(agent, transcript)
    except ContextOverflow as overflow:
        await window.after_refusal(overflow)
        try:
            reply = await _ask_model(agent, transcript)
        except ContextOverflow as again:
            raise too_long(again) from again
    window.count(reply.usage, len(transcript.view))
    return reply


async def _ask_model(agent: Agent, transcript: Transcript) -> Reply:
    """One streamed model request."""
    transcript.require_paired()
    request = ModelRequest(system=agent.system, messages=transcript.view, tools=agent.tools.schemas)
    async with aclosing(agent.model.stream(request)) as stream:
        async for event in stream:
            match event:
                case TextChunk(text=text):
                    agent.emit(TextDelta(text=text))
                case ReasoningChunk(text=text):
                    agent.emit(ReasoningDelta(text=text))
                case RetryWait():
                    agent.emit(ModelRetry(attempt=event.attempt, delay=event.delay, reason=event.reason))
                case Reply():
                    return event
                case _:
                    assert_never(event)
    raise AgentLspError(f"Model {agent.model.name} ended its stream without a reply")


def _record(transcript: Transcript, reply: Reply) -> None:
    """Put the answer into history, or raise AgentLimitError for one that cannot be acted on (A55, F51)."""
    message = reply.message
    match reply.finish_reason:
        case "length":
            if message.content or message.tool_calls:
                transcript.append(message)
                transcript.close_open_calls(lambda _id: _CUT)
            raise AgentLimitError("Model output reached the token limit")
        case "content_filter":
            if message.content:
                transcript.append(replace(message, tool_calls=()))
            raise AgentLimitError("Model response was blocked by the content filter")
        case "stop" | "tool_calls":
            if not message.content and not message.tool_calls:
                raise AgentLimitError("Model stopped without final text or tool calls")
            transcript.append(message)
        case _:
            assert_never(reply.finish_reason)


_CUT = ToolResult.error("output_cut", "The call was cut at the token limit and not executed; send smaller pieces")


def _replied(reply: Reply) -> AssistantReplied:
    message: AssistantMessage = reply.message
    return AssistantReplied(
        content=message.content, tool_calls=tuple(call.id for call in message.tool_calls), usage=reply.usage
    )
