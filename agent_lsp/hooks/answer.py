"""What a configured hook answered, whichever way it was run: one envelope, in two spellings (B13, B14).

Invariant: an answer that cannot be understood is a failure that is told, never silence.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.messages import JsonObject
from agent_lsp.terminal_text import cut_middle

DEFAULT_REASON = "blocked by hook"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One hook's answer. ``failure`` says why it could not be had: a non-blocking error, unless ``on_failure`` differs.

    ``message`` is for the human alone. ``exit_code`` and ``stderr`` are what a program left behind, for the hook log;
    ``output`` is all that a validator printed. ``refused`` says that the hook was not trusted, so it was not run.
    """

    blocked: bool = False
    reason: str = ""
    context: str = ""
    updated_input: JsonObject | None = None
    advice: PermissionBehavior = PermissionBehavior.PASSTHROUGH
    message: str = ""
    failure: str | None = None
    exit_code: int | None = None
    stderr: str = ""
    output: str = ""
    refused: bool = False


class UnreadableAnswer(ValueError):
    """Output that begins like an envelope and is none."""


_KEYS = frozenset(
    {"block", "reason", "additional_context", "updated_input"}
    | {"continue", "stopReason", "decision", "systemMessage", "hookSpecificOutput"}
)
MAX_CONTEXT = 30_000  # characters; a model's context is not a hook's to fill
MAX_WORDS = 4_000  # characters of a reason or a message


def parse_envelope(output: str) -> Answer:
    """Read what a program or a server printed: the last envelope in it, or any that blocks. Without one, no answer.

    Raises UnreadableAnswer.
    """
    answers = [_read(values) for values in find_objects(output) if _KEYS & values.keys()]
    return next((answer for answer in answers if answer.blocked), answers[-1] if answers else Answer())


def _read(values: Mapping[str, Any]) -> Answer:
    envelope = _Envelope(values)
    specific = _Envelope(envelope.take("hookSpecificOutput", Mapping, "an object") or {})
    advice = _decision(specific, "permissionDecision", _ADVICE)
    decision = _decision(envelope, "decision", _DECISIONS)
    contexts = (envelope.text("additional_context"), specific.text("additionalContext"))
    updated = envelope.take("updated_input", Mapping, "an object")
    goes_on = envelope.take("continue", bool, "true or false")
    reasons = (
        envelope.text("reason"),
        specific.text("permissionDecisionReason"),
        envelope.text("stopReason") if goes_on is False else "",
    )
    return Answer(
        blocked=bool(envelope.take("block", bool, "true or false"))
        or goes_on is False
        or PermissionBehavior.DENY in (decision, advice),
        reason=cut_middle(next(filter(None, reasons), ""), MAX_WORDS),
        context=cut_middle("\n\n".join(filter(None, contexts)), MAX_CONTEXT),
        updated_input=specific.take("updatedInput", Mapping, "an object") if updated is None else updated,
        advice=advice or (decision if decision is PermissionBehavior.ALLOW else PermissionBehavior.PASSTHROUGH),
        message=cut_middle(envelope.text("systemMessage"), MAX_WORDS),
    )


class _Envelope:
    """A JSON object whose values are checked as they are taken; null counts as absent."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def take(self, key: str, kind: type, expected: str) -> Any:
        value = self._values.get(key)
        if value is not None and not isinstance(value, kind):
            raise UnreadableAnswer(f"{key} must be {expected}")
        return value

    def text(self, key: str) -> str:
        return self.take(key, str, "a string") or ""


_ADVICE = {"deny": PermissionBehavior.DENY, "ask": PermissionBehavior.ASK, "allow": PermissionBehavior.ALLOW}
_DECISIONS = {"block": PermissionBehavior.DENY, "approve": PermissionBehavior.ALLOW}


def _decision(part: _Envelope, key: str, known: Mapping[str, PermissionBehavior]) -> PermissionBehavior:
    word = part.text(key)
    if word and word not in known:
        raise UnreadableAnswer(f"{key} is {word!r}; known are {', '.join(known)}")
    return known.get(word, PermissionBehavior.PASSTHROUGH)


_DECODER = json.JSONDecoder()
_MOST_FAILURES = 200  # braces that begin no JSON, and the characters looked at in vain: a hostile text must end
_MOST_IN_VAIN = 1_000_000


def find_objects(output: str) -> list[Mapping[str, Any]]:
    """The JSON objects in an output, whatever a shell profile or a log printed around them.

    Raises UnreadableAnswer, with the position, where the output itself begins with a brace and holds no object.
    """
    text = output.strip().lstrip("\ufeff")
    found: list[Mapping[str, Any]] = []
    failures, in_vain, start = 0, 0, text.find("{")
    while start >= 0 and failures < _MOST_FAILURES and in_vain < _MOST_IN_VAIN:
        try:
            value, end = _DECODER.raw_decode(text, start)
            found.append(value)
            start = text.find("{", end)
        except (ValueError, RecursionError) as error:
            failures += 1
            in_vain += error.pos - start if isinstance(error, json.JSONDecodeError) else _MOST_IN_VAIN // 10
            begins_line = start == 0 or text[start - 1] == "\n"
            # What a broken object holds is not the answer; noise within a line may stand before it.
            start = text.find("\n{", start) if begins_line else text.find("{", start + 1)
            start += begins_line and start >= 0
    if not found and text.startswith("{"):
        raise UnreadableAnswer(f"the output begins like JSON and is not: {_position(text)}")
    return found


def _position(text: str) -> str:
    try:
        json.loads(text)
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "nested too deeply"
    return "no object"
