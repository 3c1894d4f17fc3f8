"""The stored session: what is written is what is read, at whatever byte the writing ended."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_lsp.errors import ConfigurationError
from agent_lsp.messages import (
    AssistantMessage,
    ChatMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Transcript,
    UserMessage,
)
from agent_lsp.redaction import Redactor
from agent_lsp.session.export import to_json, to_markdown
from agent_lsp.session.records import NOT_RUN, UNKNOWN_OUTCOME, Record, encoded, message_record, replay
from agent_lsp.session.store import SessionFile, SessionStore

HISTORY: list[ChatMessage] = [
    UserMessage(content="first\nline"),
    SystemMessage(content="context"),
    AssistantMessage(
        content="I look.",
        reasoning="hm",
        tool_calls=(
            ToolCall(id="a", name="shell", arguments='{"command": "ls"}', provider_id="x"),
            ToolCall(id="b", name="read_file", arguments='{"path": "ü"}'),
        ),
    ),
    ToolMessage(tool_call_id="a", content="out \ud800 put"),
    ToolMessage(tool_call_id="b", content="```\nfenced\n```"),
    UserMessage(content="reminder", injected=True),
    AssistantMessage(content="Done."),
]


def records(messages: list[ChatMessage] = HISTORY) -> list[Record]:
    return [
        {"type": "session", "format": 1, "id": "s", "root": "/w", "created": 1.5},
        {"type": "turn", "id": "t", "prompt": "first\nline", "at": 2.5},
        *map(message_record, messages),
        {"type": "end", "id": "t", "at": 3.5, "reason": "completed", "text": "Done.", "error": None},
    ]


def lines(messages: list[ChatMessage] = HISTORY) -> bytes:
    return b"".join(map(encoded, records(messages)))


def stored(tmp_path: Path, content: bytes, id_: str = "s") -> SessionStore:
    store = SessionStore(tmp_path, Path("/w"))
    (store.directory / id_).mkdir(parents=True)
    (store.directory / id_ / "session.jsonl").write_bytes(content)
    return store


def test_what_was_written_is_what_is_read() -> None:
    found = replay(lines())

    assert list(found.transcript) == HISTORY
    assert (found.id, found.root, found.created, found.updated, found.title) == ("s", "/w", 1.5, 3.5, "first")
    assert (found.size, found.problem) == (len(lines()), "")
    assert [(turn.id, turn.first_message, turn.stop_reason) for turn in found.turns] == [("t", 0, "completed")]


@pytest.mark.requirement("F61")
def test_session_that_ends_at_any_byte_is_read_up_to_the_last_whole_line() -> None:
    data = lines()
    for end in range(len(encoded(records()[0])), len(data) + 1):
        found = replay(data[:end])
        whole = data[:end].rpartition(b"\n")[0].count(b"\n") + 1
        assert list(found.transcript) == HISTORY[: max(0, min(whole - 2, len(HISTORY)))]
        assert found.problem == ""
        found.close_calls()
        found.transcript.require_paired()


texts = st.text(st.characters(codec=None, categories=None), max_size=20)


@st.composite
def histories(draw: st.DrawFn) -> list[ChatMessage]:
    """A paired history with any text in it."""
    messages: list[ChatMessage] = []
    for _ in range(draw(st.integers(0, 5))):
        messages.append(draw(st.one_of(st.builds(UserMessage, content=texts), st.builds(SystemMessage, content=texts))))
        ids = draw(st.lists(texts, unique=True, max_size=3))
        calls = tuple(ToolCall(id=id_, name=draw(texts), arguments=draw(texts)) for id_ in ids)
        messages.append(AssistantMessage(content=draw(texts), tool_calls=calls, reasoning=draw(texts)))
        messages += [ToolMessage(tool_call_id=id_, content=draw(texts)) for id_ in ids]
    return messages


@given(histories(), st.data())
@settings(max_examples=50)
def test_any_history_survives_and_any_beginning_of_it_is_valid(history: list[ChatMessage], data: st.DataObject) -> None:
    written = lines(history)
    end = data.draw(st.integers(0, len(written)))

    assert list(replay(written).transcript) == history
    cut = replay(written[:end])
    assert list(cut.transcript) == history[: len(cut.transcript)]
    cut.close_calls()
    Transcript(cut.transcript).require_paired()


@given(st.data())
@settings(max_examples=100)
def test_damage_anywhere_ends_the_reading_and_raises_nothing_else(data: st.DataObject) -> None:
    written = bytearray(lines())
    begin = len(encoded(records()[0]))
    place = data.draw(st.integers(begin, len(written) - 1))
    written[place] = data.draw(st.integers(0, 255))

    found = replay(bytes(written))

    assert found.size <= len(written)
    found.close_calls()
    Transcript(found.transcript).require_paired()


@pytest.mark.requirement("F61")
def test_calls_that_were_cut_off_are_answered_and_the_answer_is_kept(tmp_path: Path) -> None:
    store = stored(
        tmp_path, b"".join(map(encoded, [*records()[:5], {"type": "started", "call": "a"}])) + b'{"type":"to'
    )

    file, found = store.resume("s")
    file.close()

    assert [message.content for message in found.transcript[3:]] == [UNKNOWN_OUTCOME.content, NOT_RUN.content]
    again = store.read("s")
    assert list(again.transcript) == list(found.transcript)
    assert again.problem == ""


@pytest.mark.requirement("F64")
def test_only_one_process_writes_a_session(tmp_path: Path) -> None:
    store = stored(tmp_path, lines())
    file, _ = store.resume("s")
    code = (
        "import sys; from pathlib import Path; from agent_lsp.session.store import SessionStore\n"
        "SessionStore(Path(sys.argv[1]), Path('/w')).resume('s')"
    )

    refused = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    with pytest.raises(ConfigurationError, match=r"^Session s is open in another process \(number \d+\)"):
        store.delete("s")
    file.close()
    taken = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)

    assert f"Session s is open in another process (number {os.getpid()})" in refused.stderr
    assert taken.returncode == 0


def test_session_is_private_and_found_by_its_beginning(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "state", Path("/w"))
    file = store.begin("abc123")
    file.append({"type": "turn", "id": "t", "prompt": "p", "at": 1.0})

    modes = {
        path.relative_to(tmp_path).parts[-1]: stat.S_IMODE(path.stat().st_mode)
        for path in (store.directory.parent, store.directory, *store.directory.rglob("*"))
    }
    file.close()

    assert modes == {
        "sessions": 0o700,
        store.directory.name: 0o700,
        "abc123": 0o700,
        "session.jsonl": 0o600,
        "lock": 0o600,
    }
    assert store.find("abc") == "abc123"
    with pytest.raises(ConfigurationError, match="There is no session x in /w"):
        store.find("x")


def test_beginning_of_several_ids_is_refused(tmp_path: Path) -> None:
    store = stored(tmp_path, lines(), "ab1")
    stored(tmp_path, lines(), "ab2")

    with pytest.raises(ConfigurationError, match=r"^Several sessions begin with ab: "):
        store.find("ab")


def test_damaged_session_goes_on_from_what_is_good_and_keeps_the_rest(tmp_path: Path) -> None:
    content = lines().replace(b'{"type":"tool","call":"b"', b'{"type":"tool","call":"zzz"')
    store = stored(tmp_path, content)

    file, found = store.resume("s")
    file.append({"type": "system", "content": "behind"})
    file.close()

    assert "unexpected tool result id: zzz" in found.problem
    assert (store.directory / "s" / "damaged.jsonl").read_bytes() == content
    again = store.read("s")
    assert again.problem == ""
    assert again.transcript[-1] == SystemMessage(content="behind")


def test_session_of_a_newer_version_is_refused_and_left(tmp_path: Path) -> None:
    content = lines().replace(b'"format":1', b'"format":9')
    store = stored(tmp_path, content)

    with pytest.raises(ConfigurationError, match="its format is 9, and this version of agent-lsp knows up to 1"):
        store.resume("s")

    assert (store.directory / "s" / "session.jsonl").read_bytes() == content
    assert not store.is_open("s")


def test_session_of_an_older_format_is_read_and_written_anew_when_it_goes_on(tmp_path: Path) -> None:
    """With the next format, in which messages of the user are called otherwise."""

    def migrate(record: Record) -> Record:
        return {**record, "type": "person"} if record["type"] == "user" else record

    def back(record: Record) -> Record:
        return {**record, "type": "user"} if record["type"] == "person" else record

    store = stored(tmp_path, lines())
    file = SessionFile(store.directory / "s", Path("/w"))
    found = file.take_over(format_=3, migrations={1: migrate, 2: back})
    file.append({"type": "system", "content": "new"})
    file.close()

    written = [json.loads(line) for line in (store.directory / "s" / "session.jsonl").read_bytes().splitlines()]
    assert list(found.transcript) == HISTORY
    assert written[0]["format"] == 3
    assert written[1:-1] == records()[1:]
    assert written[-1] == {"type": "system", "content": "new"}
    assert list(replay(b"".join(map(encoded, written)), format_=3).transcript) == [
        *HISTORY,
        SystemMessage(content="new"),
    ]


def test_session_of_the_first_format_is_read_for_ever() -> None:
    """The file was written by the first version that kept sessions. It is never changed; new formats add another."""
    found = replay((Path(__file__).parent / "format-1.jsonl").read_bytes())

    assert (found.problem, found.title, len(found.turns)) == ("", "Fix the bug", 2)
    assert [type(message).__name__ for message in found.transcript] == [
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
        "ToolMessage",
        "AssistantMessage",
        "UserMessage",
        "UserMessage",
        "AssistantMessage",
    ]
    assert {path: change.before.kind for path, change in found.turns[0].changes.items()} == {
        "/work/bug.py": "file",
        "/work/new.py": "missing",
    }
    assert found.turns[0].undone


def test_disk_that_fails_ends_the_keeping_and_not_the_session(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "sessions").write_text("in the way")
    file = SessionStore(tmp_path, Path("/w")).begin("s")

    file.append({"type": "system", "content": "a"})
    file.append({"type": "system", "content": "b"})
    file.close()

    assert len(caplog.records) == 1
    assert file.problem.startswith("The session is not kept from here on: ")


def test_old_sessions_are_deleted_and_open_ones_are_not(tmp_path: Path) -> None:
    store = stored(tmp_path, lines(), "old")
    stored(tmp_path, lines(), "open")
    stored(tmp_path, lines(), "young")
    file, _ = store.resume("open")
    for id_ in ("old", "open"):
        os.utime(store.directory / id_ / "session.jsonl", (1, 1))

    assert store.prune(30) == ["old"]
    assert set(store.ids()) == {"open", "young"}
    file.close()


@pytest.mark.requirement("F76-sessions")
def test_secrets_are_not_stored(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, Path("/w"))
    file = store.begin("s")
    file.redact = Redactor(["very-secret-key", "short"])
    arguments = json.dumps({"command": "curl -H 'Authorization: Bearer abcdef.123456' https://u:hunter2@example.com"})
    call = ToolCall(id="a", name="shell", arguments=arguments)
    for message in (
        UserMessage(content="my key is very-secret-key, keep it short"),
        AssistantMessage(content="", tool_calls=(call,)),
        ToolMessage(tool_call_id="a", content="ghp_" + "a" * 36 + " sk-" + "b" * 30),
    ):
        file.append(message_record(message))
    file.close()

    written = (store.directory / "s" / "session.jsonl").read_text()
    found = store.read("s")
    for secret in ("very-secret-key", "abcdef.123456", "hunter2", "ghp_", "sk-b"):
        assert secret not in written
    assert found.transcript[0] == UserMessage(content="my key is [redacted], keep it short")
    [stored_call] = found.transcript[1].tool_calls  # type: ignore[union-attr]
    assert json.loads(stored_call.arguments) == {
        "command": "curl -H 'Authorization: [redacted]' https://u:[redacted]@example.com"
    }


@given(st.text(st.sampled_from("abc \n:=@/.-_'\"Authorizationbearersk"), max_size=60))
def test_text_without_secrets_stays_as_it_is(text: str) -> None:
    assert Redactor()(text) == text or "[redacted]" in Redactor()(text)


@pytest.mark.parametrize(
    "text",
    [
        "def authorize(token): return sk_learn",
        "https://example.com/a@b:c",
        "git@github.com:owner/name.git",
        "risk-averse task-force, eyJ is how a token begins",
        "Bearer of bad news",
        "authorization: see the manual",
    ],
)
def test_innocent_text_is_not_redacted(text: str) -> None:
    assert Redactor()(text) == text


def test_markdown_reads_well() -> None:
    text = to_markdown(replay(lines()))

    assert text == (
        "# first\n\n- session: `s`\n- workspace: `/w`\n- begun: 1970-01-01 00:00 UTC\n"
        "- last written: 1970-01-01 00:00 UTC\n\n"
        "## Prompt\n\nfirst\nline\n\n"
        "<details><summary>To the model</summary>\n\n```\ncontext\n```\n\n</details>\n\n"
        "I look.\n\n**shell**\n\n```sh\nls\n```\n\n→\n\n```\nout \ud800 put\n```\n\n"
        '**read_file**\n\n```json\n{\n  "path": "ü"\n}\n```\n\n→\n\n````\n```\nfenced\n```\n````\n\n'
        "<details><summary>To the model</summary>\n\n```\nreminder\n```\n\n</details>\n\n"
        "Done.\n"
    )


def test_json_has_all_messages() -> None:
    exported: Any = to_json(replay(lines()))

    assert [turn["messages"] for turn in exported["turns"]] == [list(map(message_record, HISTORY))]
    assert exported["turns"][0]["stop_reason"] == "completed"
