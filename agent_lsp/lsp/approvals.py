"""Questions to the human in an editor: a queue with one message on screen at a time.

Invariant: only a known Allow title, chosen later than the answer guard after the question appeared, allows. A
dismissed, unknown, too early or missing answer leaves the approval waiting for ``agent.approvals.answer`` until it
times out, and a time-out denies (S4).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

import anyio

from agent_lsp.approvals import ApprovalReply, ApprovalRequest, Hunk, Scope

_MAX_QUESTIONS = 20  # a client that answers by itself must not keep us asking for ever
ALLOW = "Allow"
ALLOW_SESSION = "Allow in this session"
DENY = "Deny"
_HOW_ELSE = "Answer with the command agent.approvals.allow or agent.approvals.deny."

Side: TypeAlias = Literal["diff", "before", "after"]
"""What of a change is shown: its diff, the file as it is, or the file as it would be."""


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


@dataclass(kw_only=True)
class PendingApproval:
    """An approval without an answer yet. ``decided`` says of parts of its change whether they were taken."""

    request: ApprovalRequest
    answered: anyio.Event = field(default_factory=anyio.Event)
    reply: ApprovalReply | None = None
    decided: dict[int, bool] = field(default_factory=dict)

    @cached_property
    def hunks(self) -> tuple[Hunk, ...]:
        """The parts of the change."""
        return () if self.request.change is None else self.request.change.hunks()

    def check(self, reply: ApprovalReply) -> None:
        """Raise ValueError for a reply about parts that the change does not have."""
        for hunk in reply.hunks or ():
            self.check_part(hunk)

    def check_part(self, hunk: int) -> None:
        """Raise ValueError for a part that the change does not have."""
        if not 0 <= hunk < len(self.hunks):
            raise ValueError(f"the change has {len(self.hunks)} parts, counted from 0; there is no part {hunk}")

    def answer(self, reply: ApprovalReply) -> None:
        """Take the first answer; later ones change nothing. What was left out stays so, whatever is allowed then."""
        left_out = [number for number, taken in self.decided.items() if not taken]
        if reply.allowed and reply.hunks is None and left_out:
            kept = tuple(number for number in range(len(self.hunks)) if number not in left_out)
            reply = ApprovalReply(allowed=bool(kept), hunks=kept or None)
        if self.reply is None:
            self.reply = reply
            self.answered.set()

    def decide(self, hunk: int, *, taken: bool) -> None:
        """Take one part or leave it out; when all are decided, that is the answer."""
        self.decided[hunk] = taken
        if len(self.decided) == len(self.hunks):
            self.answer(ApprovalReply(allowed=True))


class EditorApprover:
    """The Approver of the language server; one for all of its sessions, because the human is one.

    ``timeout`` and ``guard`` are in seconds; ``changed`` hears when what waits is another than before. ``put`` asks a
    client of ours, which shows questions in its own way and guards its answers; None in the answer is a dismissal.
    """

    def __init__(
        self,
        screen: Screen,
        *,
        timeout: float = 600,
        guard: float = 0.4,
        changed: Callable[[], None] = lambda: None,
        put: Callable[[PendingApproval], Awaitable[ApprovalReply | None]] | None = None,
    ) -> None:
        self.timeout = timeout
        self.guard = guard
        self._changed = changed
        self._put = put
        self._screen = screen
        self._pending: dict[str, PendingApproval] = {}
        self._on_screen = anyio.Lock()

    @property
    def pending(self) -> tuple[PendingApproval, ...]:
        """Approvals that wait for an answer, oldest first."""
        return tuple(entry for entry in self._pending.values() if not entry.answered.is_set())

    def find(self, id_: str | None) -> PendingApproval | None:
        """The approval with an id, the oldest where none is given; None where it does not wait any more."""
        return next((entry for entry in self.pending if id_ in (None, entry.request.id)), None)

    def answer(self, id_: str | None, reply: ApprovalReply) -> bool:
        """Answer one approval, the oldest where no id is given; returns whether one was waiting.

        Raises ValueError for parts that the change does not have.
        """
        entry = self.find(id_)
        if entry is None:
            return False
        entry.check(reply)
        entry.answer(reply)
        return True

    def decide(self, id_: str, hunk: int, *, taken: bool) -> bool:
        """Take one part of a change or leave it out; returns whether it was waiting. Raises ValueError."""
        entry = self.find(id_)
        if entry is None:
            return False
        entry.check_part(hunk)
        entry.decide(hunk, taken=taken)
        self._changed()
        return True

    async def show(self, id_: str | None, side: Side = "diff") -> bool:
        """Open what would change; returns whether there was something to open and the editor did."""
        entry = self.find(id_)
        text = None if entry is None else _side(entry.request, side)
        if entry is None or text is None:
            return False
        return await self._screen.show_text(document_name(entry.request, side), text)

    def withdraw(self, source: str) -> None:
        """End every question that waits because of one source: it was answered in another way."""
        for entry in self._pending.values():
            if entry.request.source == source:
                entry.answer(ApprovalReply(allowed=False, feedback="answered in another way"))

    async def ask(self, request: ApprovalRequest) -> ApprovalReply:
        entry = PendingApproval(request=request)
        self._pending[request.id] = entry
        self._changed()
        try:
            with anyio.move_on_after(self.timeout):
                async with anyio.create_task_group() as group:
                    group.start_soon(self._ask, entry)
                    await entry.answered.wait()
                    group.cancel_scope.cancel()  # withdraws the message if the answer came another way
        finally:
            del self._pending[request.id]
            self._changed()
        return entry.reply or ApprovalReply(
            allowed=False, feedback=f"No answer within {self.timeout:g} seconds; the call was denied"
        )

    async def _ask(self, entry: PendingApproval) -> None:
        """Put the question to a client of ours, or as a message where that knows no such request."""
        if self._put is not None:
            try:
                reply = await self._put(entry)
            except NotImplementedError:
                self._put = None
            else:
                if reply is not None:
                    entry.answer(reply)
                return
        await self._show(entry)

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
                    await self._screen.show_text(document_name(request, "diff"), details(request))
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


def document_name(request: ApprovalRequest, side: Side) -> str:
    """The name under which a side of a change is shown: the file's own name last, for its colours."""
    name = f"{request.action.tool}-{request.id[:8]}"
    if side == "diff" or request.change is None:
        return f"{name}.diff"
    return f"{name}-{side}-{request.change.path.path.name}"


def _side(request: ApprovalRequest, side: Side) -> str | None:
    """The text of one side; None where there is no file to show."""
    if side == "diff":
        return details(request)
    if request.change is None:
        return None
    return request.change.before if side == "before" else request.change.after


def _replies(request: ApprovalRequest) -> dict[str, ApprovalReply]:
    """Each answering title, in the order of S4."""
    replies = {ALLOW: ApprovalReply(allowed=True)}
    if request.rule is not None:
        replies[ALLOW_SESSION] = ApprovalReply(allowed=True, scope=Scope.SESSION)
        replies[f"Always allow {request.rule}"] = ApprovalReply(allowed=True, scope=Scope.ALWAYS)
    replies[DENY] = ApprovalReply(allowed=False)
    return replies
