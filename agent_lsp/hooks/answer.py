"""What a configured hook answered, whichever way it was run: one envelope, in two spellings (B13, B14).

Invariant: an answer that cannot be understood is a failure that is told, never silence.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.messages import JsonObject

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


def parse_envelope(output: str) -> Answer:
    """Read what a program or a server printed; output without a JSON object is no answer. Raises UnreadableAnswer."""
    values = find_object(output)
    if values is None:
        return Answer()
    envelope = _Envelope(values)
    specific = _Envelope(envelope.take("hookSpecificOutput", Mapping, "an object") or {})
    advice = _decision(specific, "permissionDecision", _ADVICE)
    decision = _decision(envelope, "decision", _DECISIONS)
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
        reason=next(filter(None, reasons), ""),
        context="\n\n".join(filter(None, (envelope.text("additional_context"), specific.text("additionalContext")))),
        updated_input=specific.take("updatedInput", Mapping, "an object") if updated is None else updated,
        advice=advice or (decision if decision is PermissionBehavior.ALLOW else PermissionBehavior.PASSTHROUGH),
        message=envelope.text("systemMessage"),
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
_MOST_FAILURES = 200  # braces that begin no JSON; a bound, because each costs a look at what follows


def find_object(output: str) -> Mapping[str, Any] | None:
    """The last JSON object in an output, whatever a shell profile printed before it; None where there is none.

    Raises UnreadableAnswer, with the position, where the output itself begins with a brace and holds no object.
    """
    text = output.strip().lstrip("\ufeff")
    found: Mapping[str, Any] | None = None
    failures, start = 0, text.find("{")
    while start >= 0 and failures < _MOST_FAILURES:
        try:
            found, end = _DECODER.raw_decode(text, start)
            start = text.find("{", end)
        except (ValueError, RecursionError):
            failures += 1
            begins_line = start == 0 or text[start - 1] == "\n"
            # What a broken object holds is not the answer; noise within a line may stand before it.
            start = text.find("\n{", start) if begins_line else text.find("{", start + 1)
            start += begins_line and start >= 0
    if found is None and text.startswith("{"):
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
