"""One conversation: its transcript, one running turn at a time, and everyone who listens.

Invariant: turns run one after another; a cancelled or failed turn leaves a paired transcript, and the next works.
"""

import logging
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import anyio

from agent_lsp.agent.agent import Agent
from agent_lsp.agent.events import (
    AgentEvent,
    AssistantReplied,
    FileChanged,
    HistoryCompacted,
    StopReason,
    SubagentEvent,
    TurnFinished,
    TurnStarted,
    ValidationReport,
)
from agent_lsp.agent.loop import RunOutcome, run_prompt, run_turns
from agent_lsp.errors import AgentLimitError, AgentLspError, ConfigurationError, PromptRejected
from agent_lsp.messages import Transcript, Usage, UserMessage
from agent_lsp.permissions.policy import PermissionMode as PermissionMode
from agent_lsp.permissions.policy import Policy
from agent_lsp.session.history import History
from agent_lsp.session.hooks import ConfiguredHooks
from agent_lsp.session.validation import Validation
from agent_lsp.settings.load import LoadedSettings

if TYPE_CHECKING:
    from agent_lsp.session.undo import UndoReport

Subscriber: TypeAlias = Callable[[AgentEvent], None]

_log = logging.getLogger(__name__)

_SETTLE_SECONDS = 0.5


class EventStream:
    """Hands each event to each subscriber, in order. A subscriber that raises is logged and does not stop the rest."""

    def __init__(self) -> None:
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Add a subscriber; returns what takes it off again."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def emit(self, event: AgentEvent) -> None:
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(event)
            except Exception:
                _log.exception("an event subscriber failed")


class Session:
    """Runs prompts on one history. Made by ``session.assemble``.

    ``load`` reads the settings anew, ``configure`` lets them hold for hooks and validators, and ``build`` makes the
    agent that they describe. Without ``validation`` the agent's word is taken for it.
    """

    def __init__(
        self,
        id_: str,
        events: EventStream,
        policy: Policy,
        hooks: ConfiguredHooks,
        validation: Validation | None,
        history: History,
        *,
        loaded: LoadedSettings,
        load: Callable[[], LoadedSettings],
        configure: Callable[[LoadedSettings], None],
        build: Callable[[LoadedSettings], Agent],
    ) -> None:
        self.id = id_
        self.hooks = hooks
        self.validation = validation
        self.history = history
        self.turn_id = ""
        self._events = events
        self._policy = policy
        self._load = load
        self._configure = configure
        self._build = build
        self._mode_set: str | None = None
        self._changed: dict[str, None] = {}
        self.usage = history.usage
        """Of all prompts so far."""
        self._usage = Usage()
        self._report: ValidationReport | None = None
        self._turn = anyio.Lock()
        self._scopes: dict[anyio.CancelScope, str] = {}
        events.subscribe(self._note)
        events.subscribe(history.note)
        events.subscribe(hooks)
        if validation is not None:
            events.subscribe(validation.note)
        self._apply(loaded)

    def _apply(self, loaded: LoadedSettings) -> None:
        """Let settings hold from the next model request and the next call on."""
        self.settings = loaded.settings
        self.problems = tuple(map(str, loaded.problems))
        policy, mode = self._policy, loaded.settings.permissions.mode
        policy.rules, policy.locked = loaded.rules, loaded.locked
        if mode != self._mode_set:  # a mode that was set by hand stays until the settings say something new
            self._mode_set = mode
            policy.mode = PermissionMode(mode)
        self._configure(loaded)
        self._loaded = loaded
        self._agent: Agent | None = None

    @property
    def agent(self) -> Agent:
        """The agent that the settings describe, made when it is first needed. Raises ConfigurationError."""
        if self._agent is None:
            self._agent = self._build(self._loaded)
        return self._agent

    def _note(self, event: AgentEvent) -> None:
        """Keep what the turn's end tells, sub-agents' part included."""
        match event:
            case FileChanged(path=path):
                self._changed[path] = None
            case AssistantReplied(usage=usage) | HistoryCompacted(usage=usage):
                self._usage += usage
                self.usage += usage
            case SubagentEvent():
                self._note(event.event)

    @property
    def transcript(self) -> Transcript:
        return self.history.transcript

    @property
    def running(self) -> bool:
        return self._turn.locked()

    @property
    def mode(self) -> str:
        return self._policy.mode.value

    def set_mode(self, mode: PermissionMode) -> None:
        """Change the permission mode for the calls to come."""
        self._policy.mode = mode

    @property
    def model_name(self) -> str | None:
        return self.settings.model.name

    def connect(self) -> None:
        """Import and make the model's client ahead of the first request. Blocks: before the loop, or in a thread.

        Raises ConfigurationError where no model can be asked.
        """
        self.agent.model.connect()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Hear every event from now on; returns what ends that."""
        return self._events.subscribe(subscriber)

    def cancel(self, turn_id: str | None = None) -> bool:
        """Cancel one turn, or the running one and all that wait; returns whether there were any."""
        chosen = [scope for scope, id_ in self._scopes.items() if turn_id in (None, id_)]
        for scope in chosen:
            scope.cancel()
        return bool(chosen)

    async def hold_open(self, started: Callable[[], None], *, drain: float) -> None:
        """Be open until cancelled: hooks that observe run beside the turns, and get ``drain`` seconds at the end."""
        try:
            await self.hooks.hold_open(started, drain=drain)
        finally:
            if self.validation is not None:
                self.validation.forget_baseline()
            with anyio.move_on_after(_SETTLE_SECONDS, shield=True):  # a turn that is ending has its end to write
                async with self._turn:
                    self.history.close()
            self.history.close()

    def abandon_observers(self) -> None:
        """End the hooks that still run beside the turns, and start none for the end of the session."""
        self.hooks.abandon()

    @asynccontextmanager
    async def opened(self, *, drain: float) -> AsyncIterator[None]:
        """The session is open within the block."""
        async with anyio.create_task_group() as group:
            started = anyio.Event()
            group.start_soon(partial(self.hold_open, started.set, drain=drain))
            await started.wait()
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    async def run(
        self,
        prompt: str,
        *,
        turn_id: str = "",
        mode: PermissionMode | None = None,
        subscriber: Subscriber | None = None,
    ) -> TurnFinished:
        """Run one prompt after those before it; ``mode`` and ``subscriber`` are for this turn alone.

        Ends with a TurnFinished for every outcome, errors included. A cancel from outside is passed on after it. A
        turn that was cancelled while it waited says nothing to the event stream.
        """
        finished = TurnFinished(stop_reason="cancelled")
        turn_id = turn_id or uuid.uuid4().hex
        with anyio.CancelScope() as scope:
            self._scopes[scope] = turn_id
            try:
                async with self._turn:
                    self.turn_id = turn_id
                    self._changed.clear()
                    self._usage = Usage()
                    self._report = None
                    unsubscribe = self.subscribe(subscriber or _ignore)
                    try:
                        finished = await self._run(prompt, mode)
                    finally:
                        if self.validation is not None:
                            self.validation.end_prompt()
                        finished = replace(
                            finished,
                            changes=tuple(dict.fromkeys((*self._changed, *self.history.changed()))),
                            usage=self._usage,
                            session_usage=self.usage,
                            validation=self._report,
                        )
                        await self.history.end(finished)
                        self._events.emit(finished)
                        unsubscribe()
                await self.history.tidy()
            finally:
                del self._scopes[scope]
        return finished

    async def _run(self, prompt: str, mode: PermissionMode | None) -> TurnFinished:
        try:
            self._apply(self._load())
            agent = self.agent  # without a model nothing begins
            with self._in_mode(mode):
                self.history.begin(self.turn_id, prompt)
                self._events.emit(TurnStarted(prompt=prompt))
                await self.hooks.ask_for_trust()
                outcome = await run_prompt(agent, self.transcript, prompt)
                return await self._until_green(outcome)
        except PromptRejected as error:
            return _failed("rejected", str(error))
        except AgentLimitError as error:
            return _failed("limit", str(error))
        except AgentLspError as error:
            return _failed("failed", str(error))
        except Exception as error:
            _log.exception("the turn failed")
            return _failed("failed", f"{type(error).__name__}: {error}")

    async def _until_green(self, outcome: RunOutcome) -> TurnFinished:
        """Validate after a natural stop, and let the model mend what is red, as long as the caps allow (B34 to B39)."""
        validation, limit = self.validation, self.settings.validation.max_rounds
        attempt, last = 0, (frozenset[str](), -1)
        while not outcome.stopped_by_hook and validation is not None and validation.dirty:
            attempt += 1
            result = await validation.run(attempt, limit)
            self._report = result.report  # the turn's end tells the last one, however it ends
            if not result.failures:
                break
            now = (result.fingerprint, validation.changes)
            if attempt > limit or now == last or not validation.time_left:
                failing = f"Still failing: {', '.join(result.report.failing)}"
                text = "\n\n".join(filter(None, (outcome.text, failing)))
                return TurnFinished(stop_reason="validation_failed", text=text)
            last = now
            self.transcript.append(UserMessage(content=result.reminder, injected=True))
            outcome = await run_turns(self.agent, self.transcript, begun_after=outcome.turns)
        reason: StopReason = "stopped_by_hook" if outcome.stopped_by_hook else "completed"
        return TurnFinished(stop_reason=reason, text=outcome.text)

    async def validate(self) -> ValidationReport:
        """Run all validators by hand, after the turns before it; nothing of it goes to the model."""
        if self.validation is None:
            return ValidationReport(status="none")
        report = ValidationReport(status="none")
        with anyio.CancelScope() as scope:
            self._scopes[scope] = ""
            try:
                async with self._turn:
                    self._apply(self._load())
                    report = (await self.validation.run(1, 0, everything=True)).report
                    self.validation.end_prompt()
            finally:
                del self._scopes[scope]
        return report

    async def undo(self, turn_id: str | None = None) -> "UndoReport":
        """Undo what a turn changed in files, without an id the last one. Raises ConfigurationError."""
        if self.running:
            raise ConfigurationError("A turn is running; cancel it, or wait for its end, and undo then")
        async with self._turn:
            return await self.history.undo(turn_id)

    @contextmanager
    def _in_mode(self, mode: PermissionMode | None) -> Iterator[None]:
        """Another mode for a while; one that is set by hand meanwhile stays."""
        before = self._policy.mode
        if mode is None or mode is before:
            yield
            return
        self._policy.mode = mode
        try:
            yield
        finally:
            if self._policy.mode is mode:
                self._policy.mode = before


def _ignore(_event: AgentEvent) -> None:
    """The subscriber of a turn that nobody else listens to."""


def _failed(reason: StopReason, error: str) -> TurnFinished:
    return TurnFinished(stop_reason=reason, error=error)
