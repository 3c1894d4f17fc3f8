"""The queue of questions to a human in an editor."""

from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest

from agent_lsp.approvals import Action, ApprovalReply, ApprovalRequest, Scope
from agent_lsp.lsp.approvals import ALLOW, DENY, EditorApprover
from agent_lsp.workspace import Access


def request(id_: str) -> ApprovalRequest:
    return ApprovalRequest(
        id=id_,
        action=Action(tool="shell", access=Access.EXECUTE, command=f"echo {id_}"),
        reason="why",
        source="test",
        arguments={"command": f"echo {id_}"},
        rule="shell(echo *)",
    )


class FakeScreen:
    """Keeps the questions; each is answered when the test sends a title."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.on_screen = 0
        self._answers, self._incoming = anyio.create_memory_object_stream[str | None](10)
        self._asked, self._arrivals = anyio.create_memory_object_stream[str](10)

    async def ask(self, message: str, actions: Sequence[str], *, otherwise: str = "") -> str | None:
        self.on_screen += 1
        assert self.on_screen == 1
        self.questions.append(message)
        await self._asked.send(message)
        try:
            return await self._incoming.receive()
        finally:
            self.on_screen -= 1

    async def show_text(self, name: str, text: str) -> bool:
        return True

    async def next_question(self) -> str:
        return await self._arrivals.receive()

    async def answer(self, title: str | None) -> None:
        await self._answers.send(title)

    def close(self) -> None:
        for stream in (self._answers, self._incoming, self._asked, self._arrivals):
            stream.close()


async def ask_into(replies: dict[str, ApprovalReply], approver: EditorApprover, id_: str) -> None:
    replies[id_] = await approver.ask(request(id_))


@pytest.mark.requirement("S4-ask")
async def test_one_question_is_on_screen_while_the_others_wait() -> None:
    screen, replies = FakeScreen(), dict[str, ApprovalReply]()
    approver = EditorApprover(screen, guard=0)

    async with anyio.create_task_group() as group:
        for id_ in ("one", "two", "three"):
            group.start_soon(ask_into, replies, approver, id_)
        await screen.next_question()
        waiting = [entry.request.id for entry in approver.pending]
        for title in (ALLOW, DENY, "Always allow shell(echo *)"):
            await screen.answer(title)

    screen.close()
    assert waiting == ["one", "two", "three"]
    assert ["one" in screen.questions[0], "two" in screen.questions[1], "three" in screen.questions[2]] == [True] * 3
    assert replies == {
        "one": ApprovalReply(allowed=True),
        "two": ApprovalReply(allowed=False),
        "three": ApprovalReply(allowed=True, scope=Scope.ALWAYS),
    }


@pytest.mark.requirement("S4-ask")
async def test_waiting_approval_can_be_answered_out_of_order() -> None:
    screen, replies = FakeScreen(), dict[str, ApprovalReply]()
    approver = EditorApprover(screen, guard=0)

    async with anyio.create_task_group() as group:
        for id_ in ("one", "two"):
            group.start_soon(ask_into, replies, approver, id_)
        await screen.next_question()
        assert approver.answer("two", ApprovalReply(allowed=True))
        assert approver.answer(None, ApprovalReply(allowed=False, feedback="no"))

    screen.close()
    assert replies == {"one": ApprovalReply(allowed=False, feedback="no"), "two": ApprovalReply(allowed=True)}
    assert len(screen.questions) == 1


@pytest.mark.requirement("S4-trust")
async def test_question_that_was_answered_in_another_way_is_withdrawn() -> None:
    screen, replies = FakeScreen(), dict[str, ApprovalReply]()
    approver = EditorApprover(screen, guard=0)

    async with anyio.create_task_group() as group:
        group.start_soon(ask_into, replies, approver, "one")
        await screen.next_question()
        approver.withdraw("trust")
        still_waiting = [entry.request.id for entry in approver.pending]
        approver.withdraw("test")

    screen.close()
    assert still_waiting == ["one"]
    assert replies == {"one": ApprovalReply(allowed=False, feedback="answered in another way")}


@pytest.mark.requirement("S4-ask")
async def test_dismissed_question_is_denied_when_its_time_is_over() -> None:
    screen = FakeScreen()
    approver = EditorApprover(screen, timeout=0.01, guard=0)
    await screen.answer(None)

    reply = await approver.ask(request("one"))

    screen.close()
    assert reply == ApprovalReply(allowed=False, feedback="No answer within 0.01 seconds; the call was denied")
    assert approver.pending == ()


@pytest.mark.requirement("F26", "S4-approvals")
async def test_approvals_are_answered_in_any_order_and_a_cancel_withdraws_the_rest() -> None:
    screen, replies, seen = FakeScreen(), dict[str, ApprovalReply](), list[int]()
    approver = EditorApprover(screen, guard=0, changed=lambda: seen.append(len(approver.pending)))

    async with anyio.create_task_group() as group:
        for id_ in ("one", "two", "three"):
            group.start_soon(ask_into, replies, approver, id_)
        await screen.next_question()
        answered = [approver.answer(id_, ApprovalReply(allowed=True)) for id_ in ("three", "two", "two", "four")]
        while len(replies) < 2:
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()

    screen.close()
    assert answered == [True, True, False, False]
    assert replies == {"three": ApprovalReply(allowed=True), "two": ApprovalReply(allowed=True)}
    assert approver.pending == ()
    assert (max(seen), seen[-1]) == (3, 0)
