"""What the model does: calls on the files as they are at that moment, each with a mark that tells where it arrived."""

import json
import random
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from bench.soak.history import History, Messages
from tests.support.openai_server import Answer, End, OpenAIServer, RecordedRequest

View: TypeAlias = Callable[[Path], str | None]
"""What a path holds for the user: the document, else the file."""

ROW = re.compile(r"row-\d+-«a\d{6}»")
FEW_ROWS = 8
TYPED = re.compile(r"«u\d{6}»")
MARK = re.compile(r"«a\d{6}»")
PARTLY = "The user allowed only a part of this change."
UNCLEAR = ("Error [cancelled]: Cancelled while running", "Error [editor_unclear]")
LINE_ENDS = ("\n", "\r\n", "\r")
ANY_LINE_END = re.compile("\r\n|\n|\r")
SHELL_LOG = "shell.log"


@dataclass
class Call:
    """One call. ``marks`` tell where it arrived; each of its edits has one of its own.

    ``result`` is what the model heard of it, None where nobody knows. ``denied`` is why the last answer to it was no,
    and ``left_out`` holds the marks that were not to be made, of each answer by parts.
    """

    id: str
    tool: str
    arguments: dict[str, Any]
    path: Path
    marks: frozenset[str] = frozenset()
    result: str | None = None
    denied: str | None = None
    left_out: list[frozenset[str]] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        """Whether the user said no, or the model heard that nothing was changed."""
        result = self.result or ""
        return self.denied is not None or (result.startswith("Error [") and not result.startswith(UNCLEAR))

    @property
    def done(self) -> bool:
        """Whether the model heard that it was done."""
        return self.result is not None and not self.result.startswith("Error [")

    @property
    def outcome(self) -> str:
        """What came of it, in a word or two."""
        if self.is_partial:
            return "done in part"
        if self.done:
            return "done"
        result = self.result or "Error [nobody knows]"
        return result.partition("[")[2].partition("]")[0]

    @property
    def is_partial(self) -> bool:
        """Whether the model heard that a part of it was done."""
        return self.done and PARTLY in (self.result or "")

    def most(self, mark: str) -> int:
        """How often one of its marks may stand in a text."""
        return str(self.arguments).count(mark)

    def replaces(self, mark: str) -> bool:
        """Whether it may take away what another call made."""
        return self.tool == "write_file" or any(mark in edit["old"] for edit in self.arguments.get("edits", ()))

    def outcomes(self, text: str | None) -> Iterator[str]:
        """What a file with this text may hold after the call."""
        match self.tool:
            case "shell":
                yield from (f"{text or ''}{mark}\n" for mark in self.marks)
            case "write_file":
                yield from (ANY_LINE_END.sub(end, self.arguments["content"]) for end in LINE_ENDS)
            case "edit_file" if text is not None:
                for left_out in self.may_be_left_out():
                    yield from self._edited(text, left_out)

    def may_be_left_out(self) -> Iterator[frozenset[str]]:
        """Sets of marks, one of which it left out, if it was done."""
        if not self.is_partial:
            yield frozenset()
        if self.is_partial or not self.done:
            yield from self.left_out

    def _edited(self, text: str, left_out: frozenset[str]) -> set[str]:
        """What the edits make of a text; each takes its line ends from where it is."""
        texts = {text}
        for edit in self.arguments["edits"]:
            olds, news = ({ANY_LINE_END.sub(end, edit[key]) for end in LINE_ENDS} for key in ("old", "new"))
            if not left_out.isdisjoint(MARK.findall(edit["new"])):
                news = olds
            texts = {text.replace(old, new) for text in texts for old in olds for new in news if text.count(old) == 1}
        return texts


@dataclass
class Plan:
    """One prompt: how often the model calls tools, where it stops answering, and what ends it early.

    ``trouble`` is ``cancel``, or how the server ends.
    """

    number: int
    mode: str = "default"
    rounds: int = 0
    hangs_in: int | None = None
    trouble: str | None = None
    patience: int = 0
    """Messages of the server after which the trouble comes."""


class Model(OpenAIServer):
    """Answers each request as the current plan says; keeps the calls of the current prompt."""

    def __init__(self, root: Path, view: View, rng: random.Random) -> None:
        super().__init__()
        self.plan = Plan(number=0)
        self.calls: dict[str, Call] = {}
        self.history = History()
        self.size = 0
        """Bytes of the last request."""
        self._root = root
        self._view = view
        self._rng = rng
        self._count = 0
        self._one = threading.Lock()

    def begin(self, plan: Plan) -> None:
        with self._one:
            self.plan, self.calls = plan, {}

    def leave_out(self, marks: frozenset[str]) -> None:
        """The user allowed a change without the parts that have these marks."""
        for call in self.calls.values():
            if marks & call.marks:
                call.left_out.append(marks & call.marks)

    def take(self, request: RecordedRequest) -> Answer:
        with self._one:
            self.size = int(request.headers["content-length"])
            self.history.take(request.body["messages"])
            self._answer(request.body["messages"])
            return self._answers.popleft()

    def _answer(self, messages: Messages) -> None:
        plan = self.plan
        last = max(place for place, message in enumerate(messages) if message["role"] == "user")
        asked = f"prompt {plan.number}" in str(messages[last]["content"])
        done = sum(message["role"] == "assistant" for message in messages[last:])
        if asked and plan.hangs_in == done:
            self.reply_text("it hangs now", end=End.HANG)
        elif asked and done < plan.rounds:
            calls = [self._call(plan) for _ in range(self._rng.randint(1, 3))]
            self.reply_tool_calls(
                *((call.id, call.tool, json.dumps(call.arguments)) for call in calls), text="I will see"
            )
        else:
            self.reply_text(f"done {plan.number}")

    def _call(self, plan: Plan) -> Call:
        path = self._rng.choice(sorted(self._root.glob("*.txt")))
        text = self._view(path) or ""
        kind = self._rng.choices(("read", "edit", "replace", "create", "shell", "search"), (30, 40, 10, 5, 15, 5))[0]
        call = Call(id=f"call-{self._count}", tool="read_file", arguments={"path": path.name}, path=path)
        match kind:
            case "edit":
                edits = self._edits(text)
                call.tool, call.arguments["edits"] = "edit_file", edits
                call.marks = frozenset(mark for edit in edits for mark in MARK.findall(edit["new"]))
            case "replace" if plan.mode == "default":  # where a human sees what would be lost
                more = f"\nrow-{self._count}-{self._mark(call)}\n"
                call.tool, call.arguments["content"] = "write_file", ANY_LINE_END.sub("\n", text) + more
            case "create":
                call.path = self._root / f"new-{self._count}.txt"
                mark = self._mark(call)
                rows = "".join(f"row-{number}-{mark}\n" for number in range(3))
                call.tool, call.arguments = "write_file", {"path": call.path.name, "content": rows}
            case "shell":
                call.path = self._root / SHELL_LOG
                call.tool, call.arguments = "shell", {"command": self._command(plan, self._mark(call))}
            case "search":
                call.tool, call.arguments = "search", {"pattern": "row-[0-9]"}
        self._count += 1
        self.calls[call.id] = call
        return call

    def _new_mark(self) -> str:
        self._count += 1
        return f"«a{self._count:06}»"

    def _mark(self, call: Call) -> str:
        """A mark, as the call's only one."""
        mark = self._new_mark()
        call.marks = frozenset({mark})
        return mark

    def _edits(self, text: str) -> list[dict[str, str]]:
        places = ROW.findall(text)
        if len(places) < FEW_ROWS:
            places += TYPED.findall(text) or ["not there"]
        chosen = self._rng.sample(places, min(len(places), self._rng.choice((1, 1, 2, 3))))
        pairs = [(place, self._in_place_of(place)) for place in chosen]
        first, second = pairs[0], pairs[-1]
        together = f"{first[0]}\n{second[0]}"
        if first is not second and together in ANY_LINE_END.sub("\n", text):
            pairs = [(together, f"{first[1]}\n{second[1]}")]
        return [{"old": old, "new": new} for old, new in pairs]

    def _in_place_of(self, place: str) -> str:
        """Another row for a row; what the user typed stays, and gets a row of its own below it."""
        if ROW.fullmatch(place):
            return f"{place.rpartition('-')[0]}-{self._new_mark()}"
        return f"{place}\nrow-{self._count}-{self._new_mark()}\n"

    def _command(self, plan: Plan, mark: str) -> str:
        write = f"echo {mark} >> {SHELL_LOG}"
        if plan.trouble is not None and self._rng.random() < 0.5:
            return f"{write}; sleep 30"
        return self._rng.choice((write, f"sleep 0.05; {write}", f"{write}; exit 3", f"sleep 30 & {write}"))
