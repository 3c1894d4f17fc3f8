"""P10: going on with a long session, and one message more in it."""

import json
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from agent_lsp.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, UserMessage
from agent_lsp.redaction import Redactor
from agent_lsp.session.records import message_record
from agent_lsp.session.store import SessionStore
from bench.measure import Line, clock

MESSAGES = 10_000


def _history(count: int) -> list[ChatMessage]:
    """Turns of five messages as they are in real work: some short, the results longer."""
    messages: list[ChatMessage] = []
    while len(messages) < count:
        number = len(messages)
        call = ToolCall(id="call_1", name="read_file", arguments=json.dumps({"path": f"src/module_{number}.py"}))
        messages += [
            UserMessage(content=f"Please look at module {number} and say what is wrong with it."),
            AssistantMessage(content="I look at it.", tool_calls=(call,)),
            ToolMessage(tool_call_id="call_1", content=f"{number}\tdef function(argument):\n" * 30),
            AssistantMessage(content="There is nothing wrong with it. " * 5),
        ]
    return messages[:count]


def long_sessions(*, quick: bool) -> list[Line]:
    """Resuming against ``json.loads`` of the same lines; appending against a write and a sync of the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        store = SessionStore(Path(folder), Path("/w"))
        file = store.begin("s")
        file.redact = Redactor(["a-secret-of-some-length"])
        file.append({"type": "turn", "id": "t", "prompt": "p", "at": 1.0})
        for message in _history(MESSAGES):
            file.append(message_record(message))
        file.close()
        lines = store.directory / "s" / "session.jsonl"
        resume, loads = _compared(5 if quick else 25, lambda: _resume(store), lambda: _loads(lines))
        file, _ = store.resume("s")
        file.redact = Redactor(["a-secret-of-some-length"])
        message = UserMessage(content="One more message, as long as they are on average. " * 10)
        plain = os.open(Path(folder) / "plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        data = json.dumps(message_record(message)).encode() + b"\n"

        def append() -> None:
            file.append(message_record(message))
            file.sync()

        def write() -> None:
            os.write(plain, data)
            os.fsync(plain)

        ours, floor = _compared(20 if quick else 200, append, write)
        file.close()
        os.close(plain)
    return [
        Line(id="P10", what=f"resume a session of {MESSAGES:,} messages", ours=resume, floor=loads, budget=3),
        Line(id="P10", what="append one message and make it last", ours=ours, floor=floor, budget=1.5),
    ]


def _resume(store: SessionStore) -> None:
    file, found = store.resume("s")
    file.close()
    if len(found.transcript) != MESSAGES:
        raise AssertionError(found.problem)


def _loads(lines: Path) -> None:
    for line in lines.read_bytes().splitlines():
        json.loads(line)


def _compared(runs: int, ours: Callable[[], None], floor: Callable[[], None]) -> tuple[float, float]:
    figures: tuple[list[float], list[float]] = ([], [])
    for number in range(runs + 1):
        for place, measure in enumerate((ours, floor)):
            begun = clock()
            measure()
            if number:
                figures[place].append(clock() - begun)
    return statistics.median(figures[0]), statistics.median(figures[1])
