"""Several sessions in one process, all in the middle of a turn at once."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio

from agent_lsp.agent.events import AgentEvent, FileChanged, TurnFinished
from agent_lsp.messages import Usage, UserMessage
from agent_lsp.models.base import ModelRequest
from agent_lsp.models.scripted import ScriptedModel, Step, calls, says
from agent_lsp.session.assemble import SessionOptions, open_session
from agent_lsp.session.session import Session
from tests.support.harness import RecordingApprover

NAMES = ("one", "two", "three", "four")


@dataclass
class Conversation:
    """A session, what its model was asked, and what it told."""

    name: str
    session: Session
    model: ScriptedModel
    events: list[AgentEvent] = field(default_factory=list)
    finished: TurnFinished | None = None


async def test_sessions_at_once_keep_histories_events_and_counts_apart(tmp_path: Path) -> None:
    started = dict.fromkeys(NAMES, 0)
    everyone = anyio.Event()

    def begin(name: str, _request: ModelRequest) -> Step:
        started[name] += 1
        if all(started.values()):
            everyone.set()
        return calls(("write_file", {"path": f"{name}.txt", "content": name}), usage=Usage(input_tokens=len(name)))

    async def run(conversation: Conversation) -> None:
        conversation.finished = await conversation.session.run(conversation.name)

    talks = []
    for name in NAMES:
        model = ScriptedModel([partial(begin, name), says(f"wrote {name}", usage=Usage(output_tokens=1))])
        options = SessionOptions(
            root=tmp_path, approver=RecordingApprover(), model=model, mode="accept_edits", validate=False, environ={}
        )
        talk = Conversation(name=name, session=open_session(options), model=model)
        talk.session.subscribe(talk.events.append)
        talks.append(talk)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for talk in talks:
                group.start_soon(run, talk)
    assert everyone.is_set()
    assert len({talk.session.id for talk in talks}) == len(NAMES)
    for talk in talks:
        assert talk.finished is not None
        assert (talk.finished.text, talk.finished.changes) == (f"wrote {talk.name}", (f"{talk.name}.txt",))
        assert talk.finished.usage == Usage(input_tokens=len(talk.name), output_tokens=1)
        assert [event.path for event in talk.events if isinstance(event, FileChanged)] == [f"{talk.name}.txt"]
        said = [message for message in talk.model.requests[-1].messages if isinstance(message, UserMessage)]
        assert said == [UserMessage(content=talk.name)]
        assert (tmp_path / f"{talk.name}.txt").read_text() == talk.name
        talk.model.assert_consumed()


async def test_usage_adds_up_over_the_prompts_of_a_session(tmp_path: Path) -> None:
    usage = Usage(input_tokens=10, output_tokens=2, cached_tokens=4, cost=0.5)
    model = ScriptedModel([says("a", usage=usage), says("b", usage=usage)])
    session = open_session(SessionOptions(root=tmp_path, approver=RecordingApprover(), model=model, environ={}))
    first, second = await session.run("one"), await session.run("two")
    assert (first.usage, first.session_usage) == (usage, usage)
    assert (second.usage, second.session_usage) == (usage, usage + usage)
    assert str(session.usage) == "20 tokens in (8 of them cached), 4 out, cost 1.0000"
