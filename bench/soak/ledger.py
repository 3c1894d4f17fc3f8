"""What must hold after each prompt, whatever happened during it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.soak.calls import ANY_LINE_END, TYPED, Call
from tests.support.editor import SimulatedEditor, read

TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp")


class Violation(Exception):
    """Something happened that must never happen."""


class Ledger:
    """Which of the user's words are alive, and what each path has held, on disk and for the user, during a prompt."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._typed: dict[str, Path] = {}
        self._on_disk: dict[Path, list[str | None]] = {}
        self._seen: dict[Path, list[str | None]] = {}
        self._count = 0

    @property
    def alive(self) -> int:
        return len(self._typed)

    def begin(self, editor: SimulatedEditor) -> None:
        """Forget what was before; files and documents are what they are now."""
        self._on_disk = {path: [read(path)] for path in self._root.iterdir() if path.is_file()}
        self._seen = {path: list(texts) for path, texts in self._on_disk.items()}
        for path, buffer in editor.buffers.items():
            self._seen.setdefault(path, []).append(buffer.text)

    # What the user and the editor do

    def word(self) -> str:
        """A word that the user is about to type."""
        self._count += 1
        return f"«u{self._count:06}»"

    def user_made(self, path: Path, before: str, after: str | None) -> None:
        """The user made one text of another, or removed it: the words that it has now are alive, others are not."""
        words = set(TYPED.findall(after or ""))
        for word in set(TYPED.findall(before)) - words:
            self._typed.pop(word, None)
        self._typed.update(dict.fromkeys(words - set(TYPED.findall(before)), path))

    def saw(self, path: Path, text: str | None, *, on_disk: bool) -> None:
        """A path has this text now, for the user and perhaps on disk."""
        self._seen.setdefault(path, []).append(text)
        if on_disk:
            self._on_disk.setdefault(path, [None]).append(text)

    def would_lose(self, diff: str) -> bool:
        """Whether a change takes away what the user typed."""
        lost, kept = (
            {word for line in diff.splitlines() if line.startswith(sign) for word in TYPED.findall(line)}
            for sign in ("-", "+")
        )
        return not self._typed.keys().isdisjoint(lost - kept)

    # What must hold

    def check(self, editor: SimulatedEditor, calls: Mapping[str, Call], *, killed: bool) -> None:
        """Raise Violation for the first thing that is wrong."""
        for problem in self._problems(editor, tuple(calls.values()), killed=killed):
            raise Violation(problem)

    def _problems(self, editor: SimulatedEditor, calls: tuple[Call, ...], *, killed: bool) -> Iterator[str]:
        for word, path in self._typed.items():
            if word not in (editor.view(path) or ""):
                yield f"{word} was typed into {path.name} and is lost: {editor.view(path)!r}, on disk {read(path)!r}"
        for path in {*self._on_disk, *editor.buffers, *(each for each in self._root.iterdir() if each.is_file())}:
            if TEMPORARY.fullmatch(path.name):
                if not killed:
                    yield f"{path.name} was left behind"
                path.unlink()
            elif read(path) not in self._reachable(path, calls):
                yield f"{path.name} holds what nobody wrote: {read(path)!r}, not one of {self._reachable(path, calls)}"
        for call in calls:
            yield from self._problems_of(call, editor, calls)

    def _reachable(self, path: Path, calls: tuple[Call, ...]) -> set[str | None]:
        """What may be on disk: what was, what the editor wrote, and what calls that were not refused make of these."""
        found = set(self._on_disk.get(path, [None]))
        changes = [call for call in calls if call.path == path and call.marks and not call.refused]
        grows = True
        while grows:
            more = {
                made
                for text in found
                for call in changes
                if not any(mark in (text or "") for mark in call.marks)
                for made in call.outcomes(text)
            }
            grows = not more <= found
            found |= more
        return found

    def _problems_of(self, call: Call, editor: SimulatedEditor, calls: tuple[Call, ...]) -> Iterator[str]:
        texts = [text for text in (editor.view(call.path), read(call.path)) if text is not None]
        if call.tool == "read_file" and call.done:
            candidates = {*self._seen.get(call.path, ()), *self._reachable(call.path, calls)}
            if all(text is None or _lines(text) != _read_lines(call) for text in candidates):
                yield f"{call.id} read from {call.path.name} what it never held: {call.result!r}"
        elif call.denied is not None and call.result is not None and call.denied not in call.result:
            if call.done or not call.result.startswith("Error [cancelled]"):
                yield f"{call.id} ({call.tool}) was denied ({call.denied}), and the model heard {call.result}"
        elif call.refused and any(mark in text for text in texts for mark in call.marks):
            yield f"{call.id} ({call.tool}) was refused and changed {call.path.name}: {call.result}"
        elif any(text.count(mark) > call.most(mark) for text in texts for mark in call.marks):
            yield f"{call.id} ({call.tool}) changed {call.path.name} twice: {texts}"
        elif call.done and not self._arrived(call, texts, calls):
            yield f"{call.id} ({call.tool}) is said to be done and did not change {call.path.name}: {call.result}"

    def _arrived(self, call: Call, texts: list[str], calls: tuple[Call, ...]) -> bool:
        """Whether each change of a call is there, or was seen or made for others to replace, and no other is there."""
        later = [each for each in calls[calls.index(call) + 1 :] if each.path == call.path and not each.refused]
        seen = [*texts, *filter(None, self._seen.get(call.path, ()))]

        here = {mark for mark in call.marks if any(mark in text for text in seen)}
        replaced = {mark for mark in call.marks if any(each.replaces(mark) for each in later)}
        return "unchanged" in (call.result or "") or any(
            here.isdisjoint(left_out) and call.marks - left_out <= here | replaced
            for left_out in call.may_be_left_out()
        )


def _lines(text: str) -> list[str]:
    lines = ANY_LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def _read_lines(call: Call) -> list[str]:
    """The text of a read without its numbers and notes."""
    lines = (call.result or "").split("\n")
    return [text for line in lines for number, tab, text in [line.partition("\t")] if tab and number.isdecimal()]
