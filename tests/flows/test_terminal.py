"""``agent-lsp run`` on a real terminal: the question, the answers, and Ctrl-C while it waits."""

import fcntl
import io
import os
import pty
import subprocess
import termios
from pathlib import Path

import anyio
import pytest

from agent_lsp.approvals import Action, ApprovalReply, ApprovalRequest
from agent_lsp.cli.terminal import TerminalApprover
from agent_lsp.workspace import Access
from tests.flows.test_command_line import COMMAND, environment
from tests.support.openai_server import OpenAIServer

QUESTION = b"anything else denies: "
WRITE = ("call_1", "write_file", '{"path": "new.txt", "content": "hello\\n"}')
WRITE_AGAIN = ("call_2", "write_file", '{"path": "new.txt", "content": "again\\n"}')


class Terminal:
    """A process whose input, errors and controlling terminal are a pty that the test types on."""

    def __init__(self, tmp_path: Path, server: OpenAIServer) -> None:
        self.work = tmp_path / "work"
        self.work.mkdir()
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            [*COMMAND, "run", "--prompt", "write"],
            cwd=self.work,
            env=environment(tmp_path, server),
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def read_question(self) -> str:
        """What is shown up to the next question, with plain line ends."""
        shown = b""
        while not shown.endswith(QUESTION):
            shown += os.read(self._master, 65536)
        return shown.decode().replace("\r\n", "\n")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def finish(self) -> tuple[int, str]:
        """The exit code and stdout."""
        stdout, _ = self._process.communicate(timeout=30)
        os.close(self._master)
        return self._process.returncode, stdout.decode()


@pytest.mark.requirement("A68")
def test_terminal_question_shows_the_diff_and_yes_allows_once(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    server.reply_tool_calls(WRITE_AGAIN)
    server.reply_text("Done.")
    terminal = Terminal(tmp_path, server)

    question = terminal.read_question()
    terminal.type("y\n")
    second = terminal.read_question()
    terminal.type("no\n")

    assert terminal.finish() == (0, "Done.\n")
    assert "\nwrite_file: new.txt\nreason: Changing files asks by default\n--- /dev/null\n+++ b/new.txt\n" in question
    assert "\n+hello\n" in question
    assert "\n-hello\n+again\n" in second
    assert (terminal.work / "new.txt").read_text() == "hello\n"
    assert server.requests[2].body["messages"][-1]["content"] == "Error [permission_denied]: The user denied this call"


@pytest.mark.requirement("A68")
def test_terminal_answer_for_the_session_is_not_asked_again(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    server.reply_tool_calls(WRITE_AGAIN)
    server.reply_text("Done.")
    terminal = Terminal(tmp_path, server)

    terminal.read_question()
    terminal.type("s\n")

    assert terminal.finish() == (0, "Done.\n")
    assert (terminal.work / "new.txt").read_text() == "again\n"


@pytest.mark.requirement("A68")
def test_terminal_answer_in_words_denies_and_tells_the_model(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    server.reply_text("Done.")
    terminal = Terminal(tmp_path, server)

    terminal.read_question()
    terminal.type("put it into docs/\n")

    assert terminal.finish() == (0, "Done.\n")
    assert not (terminal.work / "new.txt").exists()
    assert server.requests[1].body["messages"][-1]["content"] == (
        "Error [permission_denied]: The user denied this call: put it into docs/"
    )


@pytest.mark.requirement("A68", "F27")
def test_what_was_typed_before_the_question_is_no_answer(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    server.reply_tool_calls(WRITE_AGAIN)
    server.reply_text("Done.")
    terminal = Terminal(tmp_path, server)

    terminal.type("y\n")
    terminal.read_question()
    terminal.type("no, because\ny\ny\n")  # one answer; the rest was typed before the next question
    terminal.read_question()
    terminal.type("no\n")

    assert terminal.finish() == (0, "Done.\n")
    assert not (terminal.work / "new.txt").exists()


@pytest.mark.requirement("A60", "A69", "F60")
def test_interrupt_at_the_question_ends_with_130_and_writes_nothing(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply_tool_calls(WRITE)
    terminal = Terminal(tmp_path, server)

    terminal.read_question()
    terminal.type("\x03")

    assert terminal.finish() == (130, "")
    assert not (terminal.work / "new.txt").exists()


def request(tool: str, source: str = "default") -> ApprovalRequest:
    action = Action(tool=tool, access=Access.EXECUTE, command=tool)
    return ApprovalRequest(id=tool, action=action, reason="r", source=source, arguments={})


@pytest.mark.requirement("A68", "B42")
async def test_two_questions_at_once_are_put_one_after_the_other() -> None:
    master, slave = pty.openpty()
    prompt = io.StringIO()
    replies: dict[str, ApprovalReply] = {}
    answered = anyio.Event()

    async def ask(tool: str) -> None:
        replies[tool] = await approver.ask(request(tool))
        answered.set()

    with os.fdopen(slave) as source:
        approver = TerminalApprover(source, prompt)
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "first")
            group.start_soon(ask, "second")
            await anyio.wait_all_tasks_blocked()
            shown = prompt.getvalue()
            os.write(master, b"y\n")
            await answered.wait()
            await anyio.wait_all_tasks_blocked()
            os.write(master, b"no\n")
    os.close(master)

    assert "first: first" in shown
    assert "second" not in shown
    assert "second: second" in prompt.getvalue()
    assert replies == {"first": ApprovalReply(allowed=True), "second": ApprovalReply(allowed=False)}


@pytest.mark.requirement("A68", "B42", "F70")
@pytest.mark.parametrize(("source", "way_out"), [("write-default", ""), ("trust", "; use --trust or agent-lsp trust")])
async def test_where_nobody_can_be_asked_a_refusal_of_trust_names_the_way_out(source: str, way_out: str) -> None:
    reply = await TerminalApprover(io.StringIO(), io.StringIO()).ask(request("tool", source))

    assert reply == ApprovalReply(allowed=False, feedback=f"No interactive approval input was available{way_out}")
