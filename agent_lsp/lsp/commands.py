"""What the commands do that editors call by name, but for ``agent.run``: each returns at once (S4)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from agent_lsp.lsp.diagnostics import is_settings_file
from agent_lsp.lsp.front import Front
from agent_lsp.lsp.server import AgentServer


class Commands:
    """The commands of one server. Each takes its argument object."""

    def __init__(self, server: AgentServer, front: Front) -> None:
        self._server = server
        self._front = front

    async def validate(self, arguments: object) -> dict[str, bool]:
        """``agent.validate``: run all validators in the background; not while a turn runs."""
        session = await (await self._front.talk()).chosen(optional_text(arguments, "sessionId"))
        return {"started": self._front.validation.start(session)}

    def cancel(self, arguments: object) -> dict[str, bool]:
        """``agent.cancel``"""
        session_id = optional_text(arguments, "sessionId")
        arriving = bool(self._front.arriving) and session_id is None
        for scope in self._front.arriving if arriving else ():
            scope.cancel()
        talk = self._front.conversations
        return {"cancelled": (talk is not None and talk.cancel(session_id)) or arriving}

    async def mode(self, arguments: object) -> dict[str, str]:
        """``agent.mode``"""
        wanted = optional_text(arguments, "mode")
        talk = await self._front.talk()
        if wanted is not None:
            talk.set_mode(wanted)
        return {"mode": talk.current_mode()}

    def status(self, _arguments: object) -> dict[str, Any]:
        """``agent.status``: one snapshot; imports nothing, so that it can be asked at any time."""
        talk = self._front.conversations
        sessions = [] if talk is None else list(talk.sessions.values())
        return {
            "root": str(self._front.root),
            "folders": list(map(str, self._front.folders)),
            "mode": None if talk is None else talk.current_mode(),
            "sessions": [
                {
                    "sessionId": session.id,
                    "turnId": session.turn_id,
                    "running": session.running,
                    "model": session.model_name,
                    "messages": len(session.transcript),
                    "usage": {
                        "inputTokens": session.usage.input_tokens,
                        "outputTokens": session.usage.output_tokens,
                        "cachedTokens": session.usage.cached_tokens,
                        "cost": session.usage.cost,
                    },
                }
                for session in sessions
            ],
            "pendingApprovals": 0 if talk is None else len(talk.approver.pending),
            "validation": self._front.validation.state,
            "problems": [problem for session in sessions[-1:] for problem in session.problems],
        }

    def list_approvals(self, _arguments: object) -> list[dict[str, Any]]:
        """``agent.approvals.list``"""
        if self._front.conversations is None:
            return []
        from agent_lsp.lsp.wire import approval_json

        return [approval_json(entry, self._server.documents) for entry in self._front.conversations.approver.pending]

    async def answer_approval(self, arguments: object) -> dict[str, bool]:
        """``agent.approvals.answer``; without an id, the oldest."""
        talk = await self._front.talk()
        from agent_lsp.lsp.wire import AnswerParams, read

        params = read(AnswerParams, arguments)
        with _bad_params():
            return {"answered": talk.approver.answer(params.id, params.reply())}

    async def decide_part(self, arguments: object) -> dict[str, bool]:
        """``agent.approvals.part``: take one part of a change, or leave it out; the last one answers."""
        talk = await self._front.talk()
        from agent_lsp.lsp.wire import PartParams, read

        params = read(PartParams, arguments)
        with _bad_params():
            return {"answered": talk.approver.decide(params.id, params.hunk, taken=params.decision == "allow")}

    async def show_approval(self, arguments: object) -> dict[str, bool]:
        """``agent.approvals.show``: open what would change, as a diff or one of its sides."""
        talk = await self._front.talk()
        from agent_lsp.lsp.wire import ShowParams, read

        params = read(ShowParams, arguments)
        show = partial(talk.approver.show, params.id, params.side)
        self._server.start_job(show, "show change")  # some editors wait for the command before they open anything
        return {"shown": talk.approver.find(params.id) is not None}

    async def answer_oldest(self, decision: str, arguments: object) -> dict[str, bool]:
        """``agent.approvals.allow`` and ``.deny``: for editors that cannot pass arguments (Helix)."""
        return await self.answer_approval({"id": optional_text(arguments, "id"), "decision": decision})

    async def hooks(self, _arguments: object) -> dict[str, Any]:
        """``agent.hooks``: every hook with its state, the last runs, and why one did not run (F11)."""
        talk = await self._front.talk()
        return await anyio.to_thread.run_sync(talk.hooks)

    async def open_hook(self, arguments: object) -> dict[str, bool]:
        """``agent.hooks.open``: take the user to where a hook is set."""
        talk = await self._front.talk()
        from agent_lsp.lsp.wire import PlaceParams, read

        params = read(PlaceParams, arguments)
        path = Path(params.source)
        if not is_settings_file(path) or not path.is_absolute():
            raise JsonRpcInvalidParams("Invalid params: source is not a settings file")
        position = types.Position(max(params.line - 1, 0), max(params.column - 1, 0))
        self._server.start_job(partial(talk.screen.show_place, path.as_uri(), position), "open hook")
        return {"shown": True}

    def dismiss_block(self, arguments: object) -> dict[str, bool]:
        """``agent.hooks.dismiss``: take away what a hook left at a file, or all of it."""
        uri = optional_text(arguments, "uri")
        if uri is None:
            self._front.blocks.dismiss_all()
        elif (path := self._server.documents.path(uri)) is not None:
            self._front.blocks.dismiss(path)
        return {"dismissed": True}

    async def trust(self, arguments: object) -> dict[str, Any]:
        """``agent.trust``: what the workspace would execute or widen, and the decision about it."""
        decision = optional_text(arguments, "decision")
        talk = await self._front.talk()
        answer: dict[str, Any] = await anyio.to_thread.run_sync(talk.trust, decision)
        if decision == "grant":
            talk.approver.withdraw("trust")  # whoever asked looks again at what is trusted now
        return answer


@contextmanager
def _bad_params() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise JsonRpcInvalidParams(f"Invalid params: {error}") from error


def optional_text(arguments: object, key: str) -> str | None:
    """One argument of a command, which some editors send bare. Raises JsonRpcInvalidParams."""
    value = arguments.get(key) if isinstance(arguments, Mapping) else arguments
    if value is not None and not isinstance(value, str):
        raise JsonRpcInvalidParams(f"Invalid params: {key} must be a string")
    return value
