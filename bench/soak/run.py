"""The soak itself: prompts one after another, on servers that come and go, with trouble in the middle."""

import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from agent_lsp.processes import child_environment
from bench.soak.calls import Model, Plan
from bench.soak.ledger import Ledger, Violation
from bench.soak.report import Report, cpu_seconds, sample
from bench.soak.server import EXIT_CODES, Connection, Server
from bench.soak.user import User, run_command
from tests.support.editor import CODECS, SimulatedEditor, write
from tests.support.jsonrpc_client import ErrorReply, Message, NoReply, listening
from tests.support.processes import MARK_VARIABLE, processes_with, wait_until_gone

COMMAND = (str(Path(sys.executable).with_name("agent-lsp")), "serve")
TURN_SECONDS = 60.0
END_SECONDS = 5.0
REQUEST_CANCELLED = -32800


class Soak:
    """One run in a directory of its own. The first ``restarts`` prompts are those in which servers are ended."""

    def __init__(self, directory: Path, *, prompts: int, restarts: int, seed: int) -> None:
        self._directory = directory
        self._root = directory / "work"
        self._temporary = directory / "tmp"
        self._prompts = prompts
        self._restarts = restarts
        self._seed = seed
        self._plans, self._rng = random.Random(seed), random.Random(seed + 1)  # what happens meanwhile has its own
        self.report = Report()
        self._trace = deque[str](maxlen=100)
        self._mark = secrets.token_hex(8)
        self._ledger = Ledger(self._root)
        self._editor = SimulatedEditor(self._ledger.saw)
        self._model = Model(self._root, self._editor.view, random.Random(seed + 2))
        self._user = User(self._root, self._editor, self._ledger, self._rng, self._model.leave_out)
        self._wrong: list[str] = []
        self._log_read = 0

    async def run(self) -> Report:
        """Run all prompts. Raises Violation, with a note of what happened before."""
        started = time.monotonic()
        self._make_project()
        try:
            with self._model:
                number = 1
                while number <= self._prompts:
                    number = await self._live(number)
        except BaseException as error:
            error.add_note("\n".join([*self._trace, f"(the last messages) seed {self._seed}"]))
            raise
        self.report.seconds = time.monotonic() - started
        self.report.counts["words alive at the end"] = self._ledger.alive
        return self.report

    def _make_project(self) -> None:
        self._root.mkdir()
        self._temporary.mkdir()
        for name, line_end in (("a", "\n"), ("b", "\r\n"), ("c", "\n"), ("d", "\r\n"), ("e", "\n"), ("f", "\r")):
            rows = (f"row-{number}-«a000000»" for number in range(15))
            write(self._root / f"{name}.txt", line_end.join(rows) + (line_end if name != "e" else ""))
        for command in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "a"],
        ):
            subprocess.run(["git", *command], cwd=self._root, check=True)

    # One server

    async def _live(self, number: int) -> int:
        """Run prompts on one server until it has ended: the number of the next prompt."""
        async with anyio.create_task_group() as tasks, self._server(tasks) as server:
            while server.ended_by is None and number <= self._prompts:
                await self._prompt(server, number)
                number += 1
            if server.ended_by is None:
                await self._end(server, "leave")
                await self._see_it_end(server)
            tasks.cancel_scope.cancel()
        return number

    @asynccontextmanager
    async def _server(self, tasks: TaskGroup) -> AsyncIterator[Server]:
        environment = child_environment(os.environ) | {
            "OPENAI_API_KEY": "sk-soak",
            "OPENAI_BASE_URL": self._model.base_url,
            "AGENT_LSP_MODEL": "m",
            "HOME": str(self._directory),
            "XDG_CONFIG_HOME": str(self._directory / "config"),
            "XDG_STATE_HOME": str(self._directory / "state"),
            "TMPDIR": str(self._temporary),
            MARK_VARIABLE: self._mark,
        }
        with (self._directory / "log").open("ab") as log:
            async with await anyio.open_process(
                COMMAND, cwd=self._root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            ) as process:
                try:
                    server = Server(Connection(process, lambda message: self._heard(server, message)), tasks)
                    self.report.lives.append(server.life)
                    self._model.history.begin()
                    async with listening(server.client):
                        tasks.start_soon(server.watch)
                        await self._initialize(server)
                        yield server
                finally:
                    if process.returncode is None:
                        process.kill()

    async def _initialize(self, server: Server) -> None:
        """Be some editor or other."""
        rng, client, tasks, editor = self._plans, server.client, server.tasks, self._editor
        kind = rng.choices(("applies", "own requests", "neither"), (50, 25, 25))[0]
        self.report.counts[f"servers, editor: {kind}"] += 1
        encoding = rng.choice(sorted(CODECS))
        self._user.later = lambda do: tasks.start_soon(server.tolerant(lambda _: do()), None)
        editor.lag, editor.saves_edits = rng.choice((0, 0, 0.03)), rng.random() < 0.4
        client.handlers.update(
            {
                "window/showMessageRequest": server.tolerant(partial(self._user.answer_message, client)),
                "agent/requestApproval": server.tolerant(partial(self._user.answer_request, client)),
                "workspace/applyEdit": lambda params: self._edit(editor.apply_edit, params),
                "agent/writeDocument": lambda params: self._edit(editor.write_document, params),
                "agent/readDocument": editor.read_document,
                "window/showDocument": lambda _: {"success": True},
                "window/workDoneProgress/create": lambda _: None,
            }
        )
        capabilities = {
            "general": {"positionEncodings": [encoding]},
            "window": {"workDoneProgress": True, "showDocument": {"support": True}},
            "workspace": {"applyEdit": kind == "applies", "workspaceEdit": {"documentChanges": True}},
        }
        options: dict[str, Any] = {
            "events": True,
            "approvals": rng.random() < 0.3,
            "documents": kind == "own requests",
            "settings": {
                "permissions": {"answer_guard_ms": rng.choice((0, 0, 20)), "approval_timeout": 0.3},
                "validation": {"enabled": rng.random() < 0.2, "validators": [{"name": "v", "command": "true"}]},
            },
        }
        await client.initialize(capabilities, rootUri=self._root.as_uri(), initializationOptions=options)
        await editor.connect(client, encoding)
        if editor.lag:
            tasks.start_soon(self._send_what_is_collected)

    async def _send_what_is_collected(self) -> None:
        while True:
            await anyio.sleep(self._editor.lag)
            await self._editor.flush_all()

    async def _edit(self, make: Callable[[Any], Awaitable[Any]], params: Any) -> Any:
        """Make the server's edit, as some editors do it, while the user types."""
        how = self._rng.choices(("plain", "type before", "type after", "do not answer", "drop"), (64, 12, 20, 2, 2))[0]
        self._trace.append(f"edit: {how}")
        if how == "drop" and make == self._editor.apply_edit:  # Neovim with a stale version; clients of ours are not so
            return {"applied": True}
        if how == "type before":
            await self._user.type()
        answer = await make(params)
        if how == "type after":
            await self._user.type()
        if how == "do not answer" and answer["applied"] and not self._editor.lag:
            raise NoReply
        return answer

    # One prompt

    async def _prompt(self, server: Server, number: int) -> None:
        plan = server.begin(self._make_plan(number))
        await self._editor.flush_all()
        self._ledger.begin(self._editor)
        self._model.begin(plan)
        self._trace.append(f"--- {plan}")
        started = time.monotonic()
        outcome = await self._ask(server, plan)
        seconds = time.monotonic() - started
        self._trace.append(f"--- outcome: {outcome}")
        self.report.counts[f"prompts, {outcome}"] += 1
        if server.ended_by is not None:
            await self._see_it_end(server)
        elif outcome not in (("completed",) if plan.trouble is None else ("completed", "cancelled")):
            raise Violation(f"prompt {number} ended with {outcome}")
        if wrong := [*self._wrong, *self._model.history.problems]:
            raise Violation(f"in prompt {number}: {wrong}")
        self._ledger.check(self._editor, self._model.calls, killed=server.ended_by == "kill")
        for call in self._model.calls.values():
            self.report.counts[f"calls, {call.tool}, {call.outcome}"] += 1
        if server.ended_by is None:
            await self._look_at(server, seconds)
            if plan.trouble in EXIT_CODES:  # the turn was over before it could come
                await self._end(server, plan.trouble)
                await self._see_it_end(server)
        self._look_at_log()

    def _make_plan(self, number: int) -> Plan:
        rng = self._plans
        end = 10 if number <= self._restarts else 0
        trouble = rng.choices((None, "cancel", rng.choice(sorted(EXIT_CODES))), (80 - end, 20, end))[0]
        rounds = rng.randint(0, 4)
        return Plan(
            number=number,
            mode=rng.choice(("default", "default", "accept_edits")),
            rounds=rounds,
            hangs_in=rng.randint(0, rounds) if trouble is not None and rng.random() < 0.3 else None,
            trouble=trouble,
            patience=rng.randint(1, 50),
        )

    async def _ask(self, server: Server, plan: Plan) -> str:
        """Send a prompt in one of two ways and wait for its end: its stop reason, or that the server was ended."""
        client = server.client
        argument = {"prompt": f"prompt {plan.number}", "mode": plan.mode, "workDoneToken": f"t{plan.number}"}
        try:
            with anyio.fail_after(TURN_SECONDS):
                if self._rng.random() < 0.3:
                    await run_command(client, "agent.run", argument)
                    await server.finished.wait()
                    if server.result is None:
                        raise anyio.ClosedResourceError
                    result = server.result
                else:
                    server.request = await client.ask("agent/prompt", argument)
                    result = await client.answer(server.request, TURN_SECONDS)
                    result = {"stop_reason": result["stopReason"], "text": result["text"]}
        except ErrorReply as error:
            if error.code != REQUEST_CANCELLED:
                raise Violation(f"prompt {plan.number} failed: {error}") from error
            return "cancelled"
        except (AssertionError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            if server.ended_by is None:
                raise Violation(f"the server has gone in prompt {plan.number}") from error
            return "server ended"
        except TimeoutError as error:
            raise Violation(f"prompt {plan.number} does not end") from error
        if result["stop_reason"] == "completed" and result["text"] != f"done {plan.number}":
            raise Violation(f"prompt {plan.number} was answered {result['text']!r}")
        return str(result["stop_reason"])

    def _heard(self, server: Server, message: Message) -> None:
        """Each message of the server is an occasion for the user, and for trouble."""
        event = message["params"]["event"] if message["method"] == "agent/event" else {}
        self._trace.append(f"{message['method']} {event.get('type', '')} {str(event or message.get('params'))[:300]}")
        server.messages += 1
        match message:
            case {"method": "agent/event", "params": {"sessionId": session}}:
                server.session = session
                self._follow(server, event)
            case {"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "diagnostics": diagnostics}}:
                server.shown[uri] = diagnostics
        trouble = server.plan.trouble
        if trouble is not None and server.ended_by is None and server.is_time_for_trouble(event):
            server.troubled = True
            if trouble in EXIT_CODES:
                server.ended_by = trouble
                server.tasks.start_soon(self._end, server, trouble)
            else:
                server.tasks.start_soon(server.tolerant(self._cancel), server)
        elif self._rng.random() < 0.12:
            server.tasks.start_soon(self._user.act)

    def _follow(self, server: Server, event: Any) -> None:
        """Keep what came of calls, and hold the user's answers against what the server made of them."""
        match event:
            case {"type": "turn_started", "prompt": prompt}:
                server.started.append(prompt)
            case {"type": "permission_decided", "call_id": call_id}:
                server.asking = call_id
            case {"type": "approval_resolved", "id": id_, "allowed": allowed, "feedback": feedback}:
                if allowed and id_ not in self._user.allowed:
                    self._wrong.append(f"{server.asking} was allowed, but not by the user")
                if (call := self._model.calls.get(server.asking or "")) is not None:
                    call.denied = None if allowed else feedback
                if left := [each for shown in server.shown.values() for each in shown if id_[:8] in each["message"]]:
                    self._wrong.append(f"{server.asking} is answered, and these are left: {left}")
            case {"type": "tool_finished", "call_id": call_id, "result": {"content": content}}:
                if call_id in self._model.calls:
                    self._model.calls[call_id].result = content
            case {"type": "turn_finished"}:
                server.result = event
                server.finished.set()

    async def _cancel(self, server: Server) -> None:
        """Cancel the turn, in one of three ways."""
        ways = ["command", "progress"] + (["request"] if server.request is not None else [])
        way = self._rng.choice(ways)
        self._trace.append(f"cancel by {way}")
        if way == "command":
            await run_command(server.client, "agent.cancel")
        elif way == "progress":
            token = f"t{server.plan.number}"
            await server.client.notify("window/workDoneProgress/cancel", {"token": token})
        else:
            await server.client.notify("$/cancelRequest", {"id": server.request})

    # The end of a server

    async def _end(self, server: Server, how: str) -> None:
        server.ended_by = how
        self._trace.append(f"end by {how}")
        self.report.counts[f"servers, ended: {how}"] += 1
        match how:
            case "kill":
                server.client.process.kill()
            case "terminate":
                server.client.process.terminate()
            case "close":
                await server.client.close()
            case "leave":
                await server.client.shut_down()

    async def _see_it_end(self, server: Server) -> None:
        """Wait for the end of the process; but for a kill, its children and temporary files must be gone with it."""
        how = str(server.ended_by)
        try:
            exit_code = await server.client.exit_code(END_SECONDS)
        except TimeoutError as error:
            raise Violation(f"the server does not end ({how})") from error
        if exit_code != EXIT_CODES[how]:
            raise Violation(f"the server ended with {exit_code} ({how})")
        if how == "leave" and (shown := {uri: found for uri, found in server.shown.items() if found}):
            raise Violation(f"the editor still shows, after the server has left: {shown}")
        self._look_at_transcript(server)
        left, files = processes_with(self._mark), list(self._temporary.iterdir())
        if how != "kill" and (left or files):
            raise Violation(f"left behind after {how}: {left} {files}")
        for directory in files:
            self.report.counts["temporary directories that a killed server left"] += 1
            shutil.rmtree(directory)
        for process_id in left:
            self.report.counts["processes that a killed server left"] += 1
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
            await wait_until_gone(process_id, END_SECONDS)

    # What must hold of the process

    async def _look_at(self, server: Server, seconds: float) -> None:
        """Between two prompts the server is alive, idle and alone."""
        status = await run_command(server.client, "agent.status")
        if status["pendingApprovals"] or any(session["running"] for session in status["sessions"]):
            raise Violation(f"something goes on after the prompt: {status}")
        if shown := [each for found in server.shown.values() for each in found]:
            raise Violation(f"the editor still shows: {shown}")
        process_id = server.client.process.pid
        if others := [line for each, line in processes_with(self._mark).items() if each != process_id]:
            raise Violation(f"left behind: {others}")
        cpu_before, server.cpu = server.cpu, cpu_seconds(process_id)
        server.life.append(sample(process_id, seconds=seconds, cpu=server.cpu - cpu_before, history=self._model.size))

    def _look_at_transcript(self, server: Server) -> None:
        """Each prompt whose turn began stands in the transcript, once and in order, however the server ended."""
        if server.started:
            [file] = self._directory.glob(f"state/**/{server.session}.md")
            told = re.findall(r"^## Prompt\n\n(.*)$", file.read_text(), re.MULTILINE)
            if told[: len(server.started)] != server.started:
                raise Violation(f"the transcript tells {told}, and what began was {server.started}")

    def _look_at_log(self) -> None:
        text = (self._directory / "log").read_text(errors="backslashreplace")
        new, self._log_read = text[self._log_read :], len(text)
        if " ERROR " in new or "Traceback" in new:
            raise Violation(f"the log says: {new}")
