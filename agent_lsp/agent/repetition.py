"""Notices that a turn only repeats itself, and ends it with the reason (F35).

Invariant: it counts rounds in a row that are the same in calls and results; anything new begins the count anew.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from agent_lsp.errors import AgentLimitError
from agent_lsp.messages import ToolCall, ToolResult

FAILING_CALLS = 3
"""Identical failing calls in a row that end a turn."""

ROUNDS = {1: 10, 2: 5, 3: 4}
"""How often a cycle of so many rounds may come in a row, whatever comes of them; waiting for a program is one."""

_SHOWN = 300  # characters of arguments, and of a result

_Step: TypeAlias = tuple[str, str, str]


class Repetition:
    """The rounds of one run."""

    def __init__(self) -> None:
        self._failing: _Step | None = None
        self._count = 0
        self._rounds: list[int] = []

    def heed(self, calls: Sequence[ToolCall], results: Mapping[str, ToolResult]) -> None:
        """Take the next round. Raises AgentLimitError where it is one too many of the same."""
        steps: list[_Step] = []
        for call in calls:
            result = results[call.id]
            step = (call.name, _canonical(call.arguments), result.content)
            if step[:2] not in (earlier[:2] for earlier in steps):  # of one round, the model could not know
                self._heed_call(step, failed=result.is_error)
            steps.append(step)
        self._rounds.append(hash(tuple(steps)))
        longest = max(length * times for length, times in ROUNDS.items())
        del self._rounds[:-longest]
        for length, times in ROUNDS.items():
            last = self._rounds[-length * times :]
            if len(last) == length * times and last == last[:length] * times:
                what = ", ".join(dict.fromkeys(name for name, *_ in steps))
                raise AgentLimitError(
                    f"The model went round in circles: the same {length} round(s) of calls ({what}) with the same "
                    f"results, {times} times in a row. Say what it should do otherwise"
                )

    def _heed_call(self, step: _Step, *, failed: bool) -> None:
        """The same call is the same failure, whatever number stands in its message."""
        name, arguments, content = step
        same = self._failing is not None and self._failing[:2] == step[:2]
        self._count = (self._count + 1 if same else 1) if failed else 0
        self._failing = step if failed else None
        if self._count >= FAILING_CALLS:
            raise AgentLimitError(
                f"The model made the same failing call {FAILING_CALLS} times in a row: "
                f"{name} {_line(arguments)} - {_line(content)}"
            )


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments
