"""Questions to the human in an editor: a queue with one message on screen at a time.

Invariant: only a known Allow title, chosen later than the answer guard after the question appeared, allows. A
dismissed, unknown, too early or missing answer leaves the approval waiting for ``agent.approvals.answer`` until it
times out, and a time-out denies (S4).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from agent_lsp.approvals import ApprovalReply, ApprovalRequest, Scope

_MAX_QUESTIONS = 20  # a client that answers by itself must not keep us asking for ever
ALLOW = "Allow"
ALLOW_SESSION = "Allow in this session"
DENY = "Deny"
_HOW_ELSE = "Answer with the command agent.approvals.allow or agent.approvals.deny."


class Screen(Protocol):
    """What an editor can put before the human."""

    async def ask(self, message: str, actions: Sequence[str], *, otherwise: str = "") -> str | None:
        """Show a question and wait for the chosen title; None where it was dismissed or cannot be asked.

        ``otherwise`` is what an editor that cannot ask says beside the message.
        """
        ...

    async def show_text(self, name: str, text: str) -> bool:
        """Open a read-only text beside the user's work; returns whether the editor did."""
        ...


@dataclass(slots=True, kw_only=True)
class PendingApproval:
    """An approval without an answer yet."""

    request: ApprovalRequest
    answered: anyio.Event = field(default_factory=anyio.Event)
    reply: ApprovalReply | None = None

    def answer(self, reply: ApprovalReply) -> None:
        """Take the first answer; later ones change nothing."""
        if self.reply is None:
            self.reply = reply
            self.answered.set()


class EditorApprover:
    """The Approver of the language server; one for all of its sessions, because the human is one.

    ``timeout`` and ``guard`` are in seconds.
    """

    def __init__(self, screen: Screen, *, timeout: float = 600, guard: float = 0.4) -> None:
        self.timeout = timeout
        self.guard = guard
        self._screen = screen
        self._pending: dict[str, PendingApproval] = {}
        self._on_screen = anyio.Lock()

    @property
    def pending(self) -> tuple[ApprovalRequest, ...]:
        """Approvals that wait for an answer, oldest first."""
        return tuple(entry.request for entry in self._pending.values())

    def answer(self, id_: str | None, reply: ApprovalReply) -> bool:
        """Answer one approval, the oldest where no id is given; returns whether one was waiting."""
        entry = self._pending.get(id_) if id_ is not None else next(iter(self._pending.values()), None)
        if entry is None or entry.answered.is_set():
            return False
        entry.answer(reply)
        return True

    def withdraw(self, source: str) -> None:
        """End every question that waits because of one source: it was answered in another way."""
        for entry in self._pending.values():
            if entry.request.source == source:
                entry.answer(ApprovalReply(allowed=False, feedback="answered in another way"))

    async def ask(self, request: ApprovalRequest) -> ApprovalReply:
        entry = PendingApproval(request=request)
        self._pending[request.id] = entry
        try:
            with anyio.move_on_after(self.timeout):
                async with anyio.create_task_group() as group:
                    group.start_soon(self._show, entry)
                    await entry.answered.wait()
                    group.cancel_scope.cancel()  # withdraws the message if the answer came another way
        finally:
            del self._pending[request.id]
        return entry.reply or ApprovalReply(
            allowed=False, feedback=f"No answer within {self.timeout:g} seconds; the call was denied"
        )

    async def _show(self, entry: PendingApproval) -> None:
        """Put the question on screen until it is answered or dismissed; looking at the change is not an answer."""
        request = entry.request
        look = "Show change" if request.change is not None else "Show details"
        replies = _replies(request)
        async with self._on_screen:
            for _attempt in range(_MAX_QUESTIONS):
                shown_at = anyio.current_time()
                title = await self._screen.ask(question(request), (look, *replies), otherwise=_HOW_ELSE)
                if title == look:
                    await self._screen.show_text(f"{request.action.tool}-{request.id[:8]}", details(request))
                    continue
                reply = replies.get(title or "")
                if reply is None:
                    return
                if reply.allowed and anyio.current_time() - shown_at < self.guard:
                    continue
                entry.answer(reply)
                return


def question(request: ApprovalRequest) -> str:
    """The question in one line; the id keeps two alike apart, because some editors merge equal messages."""
    return f"Allow {request.action.tool}: {request.target}? {request.reason} [{request.id[:8]}]"


def details(request: ApprovalRequest) -> str:
    """What *Show change* and *Show details* open."""
    if request.change is not None:
        return request.change.diff()
    return f"{request.action.tool}\n\n{request.target}\n\n{request.reason}\n"


def _replies(request: ApprovalRequest) -> dict[str, ApprovalReply]:
    """Each answering title, in the order of S4."""
    replies = {ALLOW: ApprovalReply(allowed=True)}
    if request.rule is not None:
        replies[ALLOW_SESSION] = ApprovalReply(allowed=True, scope=Scope.SESSION)
        replies[f"Always allow {request.rule}"] = ApprovalReply(allowed=True, scope=Scope.ALWAYS)
    replies[DENY] = ApprovalReply(allowed=False)
    return replies
