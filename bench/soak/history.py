"""What the model was sent: each request goes on from the one before, and each call in it has one result.

Invariant kept here: a request is never sent twice, and within the life of one server history only grows.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

Messages: TypeAlias = Sequence[dict[str, Any]]


class History:
    """Looks at each request. ``problems`` is what must not be, ``results`` what the model was told of each call."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.results: dict[str, str] = {}
        self._last: Messages = []

    def begin(self) -> None:
        """Another server, and with it another conversation."""
        self._last, self.results = [], {}

    def take(self, messages: Messages) -> None:
        """Look at one request."""
        self.problems += filter(None, (self._went_on(messages), _unpaired(messages)))
        new = messages[len(self._last) :]
        self.results.update((each["tool_call_id"], each["content"]) for each in new if each["role"] == "tool")
        self._last = messages

    def _went_on(self, messages: Messages) -> str | None:
        known = len(self._last)
        if messages[:known] != self._last:
            changed = next(
                (pair for pair in zip(self._last, messages, strict=False) if pair[0] != pair[1]), "shorter now"
            )
            return f"the history was changed: {changed}"
        if len(messages) == known:
            return f"the same request came twice: {messages[-1]}"
        return None


def _unpaired(messages: Messages) -> str | None:
    """The first call without its result in its place, or the first result without a call."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting[:1]:
                return f"a result that nobody waits for: {message}, while {waiting} are open"
            del waiting[0]
        elif waiting:
            return f"the calls {waiting} have no result"
        waiting += [call["id"] for call in message.get("tool_calls") or ()]
    return f"the calls {waiting} have no result" if waiting else None
