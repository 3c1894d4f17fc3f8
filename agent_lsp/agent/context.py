"""Keeps what the model is shown inside of its context: watches the size, and makes the history shorter in time (F53).

Invariant: the record stays whole; what is made shorter is the transcript's view alone. One request is made shorter at
most once after a refusal.
"""

import json
from collections.abc import Sequence
from contextlib import aclosing

import anyio

from agent_lsp.agent.agent import Agent
from agent_lsp.agent.compaction import (
    Block,
    by_speaker,
    condense,
    digest,
    estimate,
    in_hand,
    rendered,
    shorten,
    shortened,
    split,
)
from agent_lsp.agent.events import CompactionReason, HistoryCompacted, ModelRetry
from agent_lsp.errors import ContextOverflow, ModelError
from agent_lsp.messages import Transcript, Usage, UserMessage, thaw
from agent_lsp.models.base import ModelRequest, Reply, RetryWait

_SUMMARY_SECONDS = 120.0
_WORTH_A_SUMMARY = 500  # tokens that are not the user's words
_LEAST = 400  # characters of a summary, however small the room
_SUMMARY_INPUT = 120_000  # characters; far less than it came from
_SUMMARISE = """\
You sum up the beginning of a conversation between a user and a coding agent, for the agent, which goes on from there \
and sees the user's own words besides. Say what was found out, what was changed in which files and why, what was \
decided, what failed, and what is still to be done. Names, paths and error texts exactly. No introduction; at most \
{words} words."""


class ContextWindow:
    """The size of one transcript's view. ``counted`` is the server's word, what came since is estimated."""

    def __init__(self, agent: Agent, transcript: Transcript) -> None:
        self._agent = agent
        self._transcript = transcript
        self._view = transcript.view
        self._counted = 0
        self._counted_messages = 0
        self._tokens = 0
        self._measured = 0
        self._futile = 0

    def tokens(self) -> int:
        """About how many tokens the next request has. Touches each message once."""
        view = self._transcript.view
        if view is not self._view:
            self._view, self._counted, self._counted_messages = view, 0, 0
            self._tokens = self._measured = 0
        if self._measured == 0 and self._counted == 0:
            self._tokens = self._overhead()
        if len(view) > self._measured:
            self._tokens += estimate(view[self._measured :])
            self._measured = len(view)
        return self._tokens

    def count(self, usage: Usage, messages: int) -> None:
        """The server counted the request that had so many messages of the view."""
        if usage.input_tokens:
            self._tokens = self._counted = usage.input_tokens
            self._measured = self._counted_messages = messages

    def _overhead(self) -> int:
        """Of the standing prompt and the tools."""
        agent = self._agent
        tools = json.dumps([[tool.name, tool.description, thaw(tool.parameters)] for tool in agent.tools.schemas])
        return estimate([UserMessage(content=agent.system), UserMessage(content=tools)])

    async def make_room(self) -> None:
        """Before a request: make the history shorter if it nears the limit."""
        limit = self._agent.model.input_limit
        if limit is not None and self.tokens() > max(limit, self._futile):
            await self._compact("near_limit", limit)

    async def after_refusal(self, overflow: ContextOverflow) -> None:
        """After a refusal: make it shorter, or raise the refusal with what else to do."""
        limit, before = self._agent.model.input_limit, self.tokens()
        await self._compact("overflow", min(before, limit or before))
        if self.tokens() >= before:
            raise too_long(overflow) from overflow

    async def _compact(self, reason: CompactionReason, limit: int) -> None:
        """Shorten old results, and if that is not enough, sum up old rounds: to half of what the limit leaves."""
        view, before = self._transcript.view, self.tokens()
        room = max(int(limit / self._scale()) - self._overhead(), 0) // 2
        made, usage = shorten(view, room), Usage()
        if made is None:
            old, _ = split(view, room)
            summary, usage = await self._summary(old, room)
            told = summary or f"Steps so far:\n{digest(old, max(room, _LEAST))}"
            facts = in_hand(self._transcript, open_tasks=self._agent.open_tasks)
            text = "\n\n".join(filter(None, (shortened(told, max(room, _LEAST)), facts)))
            made = condense(view, room, text, how="summary" if summary else "digest")
        self._transcript.shorten(made.messages)
        after = self.tokens()
        self._futile = 0 if made.fits else after + after // 4  # or every round would be followed by another try
        self._agent.emit(
            HistoryCompacted(
                reason=reason,
                how=made.how,
                tokens_before=before,
                tokens_after=after,
                messages_before=len(view),
                messages_after=len(made.messages),
                usage=usage,
            )
        )

    def _scale(self) -> float:
        """How the server's tokens compare with the estimated ones, within reason."""
        if not self._counted:
            return 1.0
        estimated = self._overhead() + estimate(self._view[: self._counted_messages])
        return min(max(self._counted / estimated, 0.5), 2.0)

    async def _summary(self, old: Sequence[Block], room: int) -> tuple[str, Usage]:
        """What the model makes of the old blocks; empty where it cannot."""
        users, others = by_speaker(old)
        if estimate(others) < _WORTH_A_SUMMARY or estimate(users) > room:
            return "", Usage()
        text = rendered(old, min(_SUMMARY_INPUT, max(room, 1) * 3))
        request = ModelRequest(
            system=_SUMMARISE.format(words=max(min(room // 8, 600), 60)), messages=[UserMessage(content=text)]
        )
        try:
            with anyio.fail_after(_SUMMARY_SECONDS):
                async with aclosing(self._agent.model.stream(request)) as stream:
                    async for event in stream:
                        if isinstance(event, RetryWait):
                            self._agent.emit(ModelRetry(attempt=event.attempt, delay=event.delay, reason=event.reason))
                        elif isinstance(event, Reply):
                            return event.message.content.strip(), event.usage
        except (ModelError, TimeoutError):
            pass  # the digest takes its place
        return "", Usage()


def too_long(overflow: ContextOverflow) -> ContextOverflow:
    """The refusal, with what a human can do where making it shorter did not help."""
    return ContextOverflow(
        f"{overflow}. Making the conversation shorter did not help: begin a new session, or choose a model with a "
        "larger context",
        limit=overflow.limit,
    )
