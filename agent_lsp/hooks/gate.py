"""A configured hook is itself a gated side effect: its exact text is approved before it first runs (B42).

Invariant: what is not trusted does not run. One question lists everything that waits for trust; an answer holds for
the content that was shown and no other.
"""

import uuid
from collections.abc import Callable, Sequence

import anyio

from agent_lsp.approvals import Action, ApprovalRequest, Approver
from agent_lsp.hooks.trust import Trust, TrustItem
from agent_lsp.workspace import Access


class TrustGate:
    """Admits what is trusted, and asks once for what is not yet."""

    def __init__(self, *, trust: Trust, approver: Approver) -> None:
        self._trust = trust
        self._approver = approver
        self._refused: dict[str, str] = {}
        self._asking = anyio.Lock()
        self._closed = False

    def covers(self, digest: str) -> bool:
        """Whether this content was approved before."""
        return self._trust.covers(digest)

    async def ask(self, digest: str, waiting: Callable[[], Sequence[TrustItem]]) -> str | None:
        """None where this content may run by now, else why it may not. ``waiting`` is what one question is about."""
        async with self._asking:
            if not self._trust.covers(digest) and digest not in self._refused:
                items = [item for item in waiting() if not self._trust.covers(item.digest)]
                if all(item.digest != digest for item in items):
                    return "it is not in the settings any more"
                if self._closed:
                    return "not trusted (the session is closing)"
                await self._ask(items)
        return None if self._trust.covers(digest) else self._refused[digest]

    def close(self) -> None:
        """Ask nothing from now on: nobody waits for the end of a session to answer."""
        self._closed = True

    async def _ask(self, items: Sequence[TrustItem]) -> None:
        request = ApprovalRequest(
            id=uuid.uuid4().hex,
            action=Action(tool="trust", access=Access.EXECUTE, command="\n".join(map(str, items))),
            reason="This workspace would run its own programs or widen permissions",
            source="trust",
            arguments={"would run": [str(item) for item in items]},
        )
        reply = await self._approver.ask(request)
        if reply.allowed:
            self._trust.grant(items)
        else:
            why = reply.feedback or "refused"
            self._refused |= {item.digest: f"not trusted ({why})" for item in items}
