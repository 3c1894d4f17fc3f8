"""Runs the configured hooks of one event, in order, and merges their answers (B21 to B23).

Invariants: only a matching, trusted hook is run; the merge depends on the configured order alone, and its decisions
not even on that (F5); every run, and every reason not to run, is in the log (F11).
"""

import json
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.hooks import established
from agent_lsp.hooks.answer import DEFAULT_REASON, Answer
from agent_lsp.hooks.executors.command import run_command
from agent_lsp.hooks.gate import TrustGate
from agent_lsp.hooks.settings import BLOCKING_EVENTS, STOP, VALIDATION, ConfiguredHook
from agent_lsp.hooks.trust import TrustItem, hook_item
from agent_lsp.messages import JsonObject, thaw
from agent_lsp.models.base import Model
from agent_lsp.terminal_text import cut_middle

LOGGED = 4_000
"""Characters of each value in the hook log."""

Decision: TypeAlias = Literal["passed", "blocked", "not vetoed", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """What happened. ``subject`` is the name that matchers are about, ``args`` what ``if`` is about.

    ``payload`` holds the keys of B16 beyond event, session_id, cwd and args.
    """

    event: str
    subject: str = ""
    args: JsonObject | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRun:
    """One entry of the hook log; ``started`` in seconds since the epoch, ``duration`` in seconds.

    ``effect`` is what its answer changed, cut where it is long.
    """

    hook: ConfiguredHook
    subject: str
    decision: Decision
    reason: str = ""
    started: float = 0.0
    duration: float = 0.0
    exit_code: int | None = None
    stderr: str = ""
    message: str = ""
    effect: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the hooks of one occasion came to; ``args`` only where they were rewritten."""

    blocked_by: str | None = None
    reason: str = ""
    context: str = ""
    args: JsonObject | None = None
    advice: PermissionBehavior = PermissionBehavior.PASSTHROUGH


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What executors need; ``environment`` is that of child processes, without secrets. ``model`` is for prompts."""

    root: Path
    session_id: str
    environment: Mapping[str, str]
    model: Callable[[], Model]
    private_hosts: Collection[str] = ()


class HookRunner:
    """The configured hooks of one session; ``configure`` comes before the first event.

    ``waiting`` lists what one question of trust is about; ``report`` hears of every run.
    """

    _surroundings: Surroundings

    def __init__(
        self,
        *,
        gate: TrustGate,
        waiting: Callable[[], Sequence[TrustItem]],
        report: Callable[[HookRun], None],
    ) -> None:
        self.hooks: tuple[ConfiguredHook, ...] = ()
        self.runs: deque[HookRun] = deque(maxlen=200)
        self.unmatched: dict[ConfiguredHook, str] = {}
        self._gate = gate
        self._waiting = waiting
        self._report = report

    def configure(self, hooks: tuple[ConfiguredHook, ...], surroundings: Surroundings) -> None:
        """Replace the hooks and what they run in."""
        self.hooks = hooks
        self.unmatched.clear()
        self._surroundings = surroundings

    async def run(self, occasion: Occasion) -> Outcome:
        """Run the matching hooks one after another; the first veto ends it."""
        outcome = Outcome()
        for hook in self.hooks:
            if not self._applies(hook, occasion):
                continue
            answer = await self.run_one(hook, occasion)
            outcome = replace(
                outcome,
                context="\n\n".join(filter(None, (outcome.context, answer.context))),
                advice=max(outcome.advice, answer.advice),
            )
            if answer.blocked:
                return replace(outcome, blocked_by=hook.name, reason=answer.reason or DEFAULT_REASON)
            if answer.updated_input is not None:
                occasion = replace(occasion, args=answer.updated_input)
                outcome = replace(outcome, args=answer.updated_input)
        return outcome

    def matching(self, occasion: Occasion) -> list[ConfiguredHook]:
        """The hooks of an occasion, for events whose hooks do not depend on one another."""
        return [hook for hook in self.hooks if self._applies(hook, occasion)]

    def _applies(self, hook: ConfiguredHook, occasion: Occasion) -> bool:
        """Whether a hook is to run now; notes why one of the same event is not."""
        if hook.event != occasion.event:
            return False
        why = mismatch(hook, occasion)
        if why is not None:
            self.unmatched[hook] = why
        return why is None

    async def run_one(self, hook: ConfiguredHook, occasion: Occasion) -> Answer:
        """Run one hook if it is trusted. ``blocked`` in the answer is a veto, by then."""
        started, clock = time.time(), time.monotonic()
        refusal = await self.refusal(hook)
        if refusal is not None:
            reason = f"{hook.name} was not run: {refusal}"
            answer = Answer(blocked=hook.blocking and hook.event != STOP, reason=reason, refused=True)
            self._note(
                HookRun(hook=hook, subject=occasion.subject, decision="skipped", reason=refusal, started=started)
            )
            return answer
        try:
            given = await self._execute(hook, occasion)
        except Exception as error:  # a hook that cannot be run for whatever reason is a failure like any other (B14)
            given = Answer(failure=f"{type(error).__name__}: {error}")
        answer = _heeded(hook, given)
        self._note(
            HookRun(
                hook=hook,
                subject=occasion.subject,
                decision=_decision(given, answer),
                reason=cut_middle(given.failure or given.reason, LOGGED),
                started=started,
                duration=time.monotonic() - clock,
                exit_code=given.exit_code,
                stderr=given.stderr,
                message=given.message,
                effect=_effect(answer),
            )
        )
        return answer

    def close(self) -> None:
        """Ask for no trust any more."""
        self._gate.close()

    async def refusal(self, hook: ConfiguredHook) -> str | None:
        """Why a hook may not run, after asking where nobody has yet; what changed meanwhile was not approved."""
        root = self._surroundings.root
        digest = hook_item(hook, root).digest
        if self._gate.covers(digest):
            return None
        refusal = await self._gate.ask(digest, self._waiting)
        changed = refusal is None and hook_item(hook, root).digest != digest
        return "it changed while it was being approved" if changed else refusal

    async def _execute(self, hook: ConfiguredHook, occasion: Occasion) -> Answer:
        around = self._surroundings
        payload = self._payload(hook, occasion)
        if hook.type == "command":
            variables = {
                "HOOK_EVENT": hook.event,
                "HOOK_TOOL_NAME": occasion.payload.get("tool", ""),
                "HOOK_SESSION_ID": around.session_id,
                **(established.variables(around.root) if hook.established else {}),
            }
            answer = await run_command(
                hook, payload, root=around.root, environment=around.environment, variables=variables
            )
        elif hook.type == "prompt":
            from agent_lsp.hooks.executors.prompt import run_prompt_hook

            answer = await run_prompt_hook(hook, payload, model=around.model())
        else:
            from agent_lsp.hooks.executors.http import run_http

            answer = await run_http(hook, payload, private_hosts=around.private_hosts)
        if hook.established and answer.updated_input is not None:
            return replace(answer, updated_input=established.own_input(answer.updated_input))
        return answer

    def _payload(self, hook: ConfiguredHook, occasion: Occasion) -> str:
        """The payload as ASCII JSON; absent is what is empty (B16)."""
        around = self._surroundings
        values = {
            "event": hook.event,
            "session_id": around.session_id,
            "cwd": str(around.root),
            "args": None if occasion.args is None else thaw(occasion.args),
            **occasion.payload,
        }
        payload = {key: value for key, value in values.items() if value not in (None, "")}
        return json.dumps(established.established_payload(payload, around.root) if hook.established else payload)

    def _note(self, run: HookRun) -> None:
        self.unmatched.pop(run.hook, None)
        self.runs.append(run)
        self._report(run)


def mismatch(hook: ConfiguredHook, occasion: Occasion) -> str | None:
    """Why a hook of the event does not apply, or None where it does (B18, B20)."""
    names = established.tool_names(occasion.subject) if hook.established else (occasion.subject,)
    if not any(hook.matcher.matches(name) for name in names):
        return f"matcher {hook.matcher.text!r} does not match {occasion.subject!r}"
    if hook.condition is not None and not hook.condition.matches(canonical(occasion.args)):
        return f"if {hook.condition.text!r} does not match the arguments"
    return None


def canonical(args: JsonObject | None) -> str:
    """The parsed arguments as one JSON text, so that no spelling hides from ``if``."""
    return "" if args is None else json.dumps(thaw(args), sort_keys=True, ensure_ascii=False)


def _heeded(hook: ConfiguredHook, given: Answer) -> Answer:
    """What an answer does: a block counts only from a blocking hook (B22), a failure only by ``on_failure`` (B14)."""
    if hook.event == VALIDATION:  # every failure is one, whatever ``blocking`` says (B36)
        failed = given.blocked or given.failure is not None
        why = given.failure if given.exit_code is None else None  # a bare exit code says nothing to the model
        return replace(given, blocked=failed, reason=given.reason or why or "")
    if given.failure is not None:
        reason = f"{hook.name} failed: {given.failure}"
        if hook.on_failure == "ask" and hook.event == "PreToolUse":
            return Answer(advice=PermissionBehavior.ASK)
        stops = hook.on_failure != "ignore" and hook.event in BLOCKING_EVENTS
        return Answer(blocked=stops, reason=reason)
    if given.blocked and not hook.blocking:
        advice = given.advice if given.advice is not PermissionBehavior.DENY else PermissionBehavior.PASSTHROUGH
        return replace(given, blocked=False, advice=advice)
    return given


def _effect(answer: Answer) -> dict[str, str]:
    """What an answer changes, for the log; long values are cut, because the log keeps many runs."""
    changes = {
        "permission": str(answer.advice) if answer.advice else "",
        "updated_input": "" if answer.updated_input is None else canonical(answer.updated_input),
        "additional_context": answer.context,
    }
    return {key: cut_middle(value, LOGGED) for key, value in changes.items() if value}


def _decision(given: Answer, heeded: Answer) -> Decision:
    if heeded.blocked:
        return "blocked"
    if given.failure is not None:
        return "failed"
    return "not vetoed" if given.blocked else "passed"
