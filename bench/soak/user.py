"""The user: types words that must not be lost, saves, opens and closes, and answers what is asked, or does not."""

import random
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.soak.calls import MARK
from bench.soak.ledger import Ledger
from tests.support.editor import Change, SimulatedEditor, applied, read
from tests.support.jsonrpc_client import NoReply, ProcessClient

_LONG = 4_000  # characters of a document that is long enough
_MANY = 12  # files that are enough
_PIECES = (
    "{}",
    "{}",
    "{}\U0001f600",
    "\n{}\n",
    "\r\n{}\r\n",
    "\u00e9{}\u4e2d",
    "\r{}",
    "\U0001f468\u200d\U0001f4bb{}\n",
)


class User:
    """Does things at random in an editor.

    ``allowed`` holds the ids of approvals that were allowed, as a whole or in part; ``leave_out`` hears the marks of
    the parts that were not. ``later`` does something beside what goes on.
    """

    later: Callable[[Callable[[], Awaitable[None]]], object]

    def __init__(
        self,
        root: Path,
        editor: SimulatedEditor,
        ledger: Ledger,
        rng: random.Random,
        leave_out: Callable[[frozenset[str]], None],
    ) -> None:
        self.allowed: set[str] = set()
        self._root = root
        self._editor = editor
        self._ledger = ledger
        self._rng = rng
        self._leave_out = leave_out
        self._looked: set[str] = set()

    async def act(self) -> None:
        """Do one thing."""
        acts = {self.type: 60, self.save: 15, self.open: 12, self.close: 6, self.read_anew: 8, self.delete: 1}
        await self._rng.choices(list(acts), list(acts.values()))[0]()

    def _some_document(self) -> Path | None:
        return self._rng.choice(sorted(self._editor.buffers)) if self._editor.buffers else None

    def _files(self) -> list[Path]:
        return sorted(self._root.glob("*.txt"))

    async def type(self) -> None:
        if (path := self._some_document()) is not None:
            before = self._editor.buffers[path].text
            changes = self._changes(before)
            self._ledger.user_made(path, before, applied(before, changes))
            await self._editor.change(path, changes)

    def _changes(self, text: str) -> list[Change]:
        changes: list[Change] = []
        for _ in range(self._rng.choice((1, 1, 1, 2, 3))):
            start = self._spot(text)
            end, new = start, self._rng.choice(_PIECES).format(self._ledger.word())
            cuts = 1 if len(text) < _LONG else 60
            match self._rng.choices(("insert", "replace", "delete", "cut"), (70, 10, 18, cuts))[0]:
                case "replace":
                    end = self._end(text, start, 6)
                case "delete":
                    end, new = self._end(text, start, 4), ""
                case "cut":
                    end, new = self._end(text, start, len(text)), ""
            changes.append((start, end, new))
            text = applied(text, changes[-1:])
        return changes

    def _spot(self, text: str) -> int:
        return _outside_line_end(text, self._rng.randint(0, len(text)))

    def _end(self, text: str, start: int, longest: int) -> int:
        return _outside_line_end(text, min(len(text), start + self._rng.randint(1, max(longest, 1))))

    async def save(self) -> None:
        if (path := self._some_document()) is not None:
            await self._editor.save(path)

    async def save_all(self) -> None:
        for path, buffer in tuple(self._editor.buffers.items()):
            if buffer.dirty and path in self._editor.buffers:
                await self._editor.save(path)

    async def open(self) -> None:
        if closed := [path for path in self._files() if path not in self._editor.buffers]:
            await self._editor.open(self._rng.choice(closed))

    async def close(self) -> None:
        """Close a document; sometimes without saving it, and then the words typed since are gone by the user's will."""
        if (path := self._some_document()) is not None:
            buffer = self._editor.buffers[path]
            if buffer.dirty and self._rng.random() < 0.7:
                await self._editor.save(path)
            if path in self._editor.buffers:
                self._ledger.user_made(path, self._editor.buffers[path].text, read(path))
                await self._editor.close(path)

    async def read_anew(self) -> None:
        for path in tuple(self._editor.buffers):
            await self._editor.read_anew(path)

    async def delete(self) -> None:
        closed = [path for path in self._files() if path not in self._editor.buffers]
        if len(closed) > _MANY:
            path = self._rng.choice(closed)
            self._ledger.user_made(path, read(path) or "", None)
            self._ledger.saw(path, read(path), on_disk=False)
            path.unlink()
            self._ledger.saw(path, None, on_disk=True)

    # Answers

    async def answer_message(self, client: ProcessClient, params: Any) -> Any:
        """``window/showMessageRequest``"""
        message, titles = str(params["message"]), [action["title"] for action in params["actions"]]
        if message.startswith("Programs read files on disk."):
            if self._rng.random() < 0.5:
                return {"title": titles[0]}
            await self.save_all()
            raise NoReply
        waiting = await approvals(client)
        entry = next((each for each in waiting if f"[{each['id'][:8]}]" in message), None)
        if entry is None:
            return None
        if entry["id"] not in self._looked and self._rng.random() < 0.1:
            self._looked.add(entry["id"])
            return {"title": titles[0]}
        match await self._answer(client, entry):
            case {"decision": "allow", "hunks": _} as answer:  # a message has no parts
                await run_command(client, "agent.approvals.answer", {"id": entry["id"], **answer})
                return None
            case {"decision": "allow"}:
                in_session = entry["tool"] == "edit_file" and self._rng.random() < 0.1
                return {"title": titles[2] if in_session and len(titles) > 3 else "Allow"}
            case {"decision": "deny"}:
                return {"title": "Deny"}
        return None

    async def answer_request(self, client: ProcessClient, entry: Any) -> Any:
        """``agent/requestApproval``"""
        return await self._answer(client, entry)

    async def _answer(self, client: ProcessClient, entry: Any) -> Any:
        """The answer, or None to dismiss; now and then it goes by command, or never."""
        way = self._rng.choices(("answer", "dismiss", "ignore", "command"), (70, 5, 5, 20))[0]
        answer = None if way in ("dismiss", "ignore") else self._decide(entry)
        if way == "command" and answer is not None:
            if self._rng.random() < 0.5:  # dismissed first, as a message that is gone
                self.later(partial(self._command, client, entry, answer))
                return None
            await self._command(client, entry, answer)
            way = self._rng.choice(("dismiss", "ignore"))
        if way == "ignore":
            raise NoReply
        return answer if way == "answer" else None

    def _decide(self, entry: Any) -> Any:
        """Yes, no with a reason, or yes to some parts; what would lose words of the user is never allowed."""
        feedback = f"feedback {entry['id']}"
        if self._ledger.would_lose(entry["diff"] or "") or self._rng.random() < 0.12:
            return {"decision": "deny", "feedback": feedback}
        self.allowed.add(entry["id"])
        parts = (entry["diff"] or "").split("\n@@ ")[1:] if entry["tool"] == "edit_file" else []
        if len(parts) < 2 or self._rng.random() < 0.5:
            return {"decision": "allow"}
        taken = sorted(self._rng.sample(range(len(parts)), self._rng.randint(1, len(parts) - 1)))
        self._leave_out(
            frozenset(mark for number, part in enumerate(parts) if number not in taken for mark in _new(part))
        )
        return {"decision": "allow", "hunks": taken}

    async def _command(self, client: ProcessClient, entry: Any, answer: Any) -> None:
        """Answer as code actions do."""
        if "hunks" in answer and self._rng.random() < 0.5:
            for number in range(len(entry["hunks"])):
                part = {"id": entry["id"], "hunk": number, "decision": "allow" if number in answer["hunks"] else "deny"}
                await run_command(client, "agent.approvals.part", part)
        elif "hunks" not in answer and self._rng.random() < 0.3:
            await run_command(client, f"agent.approvals.{answer['decision']}", {"id": entry["id"]})
        else:
            await run_command(client, "agent.approvals.answer", {"id": entry["id"], **answer})


def _new(part: str) -> set[str]:
    """The marks of the calls in the lines that a part of a diff adds."""
    return {mark for line in part.split("\n") if line.startswith("+") for mark in MARK.findall(line)}


async def approvals(client: ProcessClient) -> Sequence[Any]:
    """What waits for an answer."""
    found: list[Any] = await run_command(client, "agent.approvals.list")
    return found


async def run_command(client: ProcessClient, name: str, argument: Any = None) -> Any:
    arguments = [] if argument is None else [argument]
    return await client.request("workspace/executeCommand", {"command": name, "arguments": arguments})


def _outside_line_end(text: str, place: int) -> int:
    return place + 1 if re.match("\r\n", text[place - 1 : place + 1]) and place > 0 else place
