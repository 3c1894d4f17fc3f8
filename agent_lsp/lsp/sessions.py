"""The commands about stored sessions: begin, list, resume, read, export, undo (S4)."""

from typing import TYPE_CHECKING, Any

import anyio.to_thread
from pygls.exceptions import JsonRpcInvalidParams

from agent_lsp.lsp.commands import optional_text
from agent_lsp.lsp.front import Front

if TYPE_CHECKING:
    from agent_lsp.lsp.prompts import Conversations
    from agent_lsp.session.undo import UndoReport


class SessionCommands:
    """The commands of one server. Each takes its argument object."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def new(self, _arguments: object) -> dict[str, Any]:
        """``agent.session.new``: prompts without an id go there from now on."""
        return {"sessionId": (await (await self._front.talk()).begin()).id}

    async def list(self, _arguments: object) -> "list[dict[str, Any]]":
        """``agent.session.list``: the sessions of the workspace, the one written last first."""
        talk = await self._front.talk()
        stored = {summary.id: summary for summary in await anyio.to_thread.run_sync(talk.stored.list)}
        unwritten = [_described(talk, id_) for id_ in reversed(talk.sessions) if id_ not in stored]
        return unwritten + [
            {
                **_described(talk, summary.id),
                "title": summary.title,
                "created": summary.created,
                "updated": summary.updated,
                "turns": summary.turns,
                "messages": summary.messages,
                "elsewhere": summary.is_open and summary.id not in talk.sessions,
            }
            for summary in stored.values()
        ]

    async def resume(self, arguments: object) -> dict[str, Any]:
        """``agent.session.resume``: go on with a session; without an id, with the one written last."""
        talk = await self._front.talk()
        session = await talk.resume(optional_text(arguments, "sessionId"))
        turns = session.history.turns
        return {
            **_described(talk, session.id),
            "title": session.history.title,
            "turns": len(turns),
            "messages": len(session.transcript),
            "problem": session.history.problem,
            "interrupted": bool(turns) and turns[-1].ended is None and not session.running,
        }

    async def transcript(self, arguments: object) -> dict[str, Any]:
        """``agent.session.transcript``: the conversation as Markdown; without an id, that of the current session."""
        talk = await self._front.talk()
        id_ = _id(talk, arguments)
        if id_ in talk.sessions and not talk.sessions[id_].history.turns:
            return {"sessionId": id_, "markdown": ""}
        found = await anyio.to_thread.run_sync(talk.stored.find, id_)
        return {"sessionId": found, "markdown": await anyio.to_thread.run_sync(talk.stored.transcript, found)}

    async def export(self, arguments: object) -> dict[str, Any]:
        """``agent.session.export``: the session as a document; ``format`` is markdown or json."""
        talk = await self._front.talk()
        wanted = optional_text(arguments, "format") if isinstance(arguments, dict) else None
        found = await anyio.to_thread.run_sync(talk.stored.find, _id(talk, arguments))
        match wanted:
            case None | "markdown":
                return {"sessionId": found, "markdown": await anyio.to_thread.run_sync(talk.stored.markdown, found)}
            case "json":
                return {"sessionId": found, "json": await anyio.to_thread.run_sync(talk.stored.json, found)}
        raise JsonRpcInvalidParams("Invalid params: format is markdown or json")

    async def undo(self, arguments: object) -> dict[str, Any]:
        """``agent.undo``: the changes of a turn, without an id of the last one that made any."""
        talk = await self._front.talk()
        turn_id = optional_text(arguments, "turnId") if isinstance(arguments, dict) else None
        id_ = _id(talk, arguments)
        session = await (talk.resume(None) if id_ is None else talk.chosen(id_))
        report = await session.undo(turn_id)
        for restored in report.restored:
            self._front.file_changed(restored.path)
        return {"sessionId": session.id, **undo_json(report)}


def undo_json(report: "UndoReport") -> dict[str, Any]:
    """What an undo came to."""
    return {
        "turnId": report.turn_id,
        "restored": [
            {"path": each.display, "uri": each.path.as_uri(), "what": each.what, "unsaved": each.held}
            for each in report.restored
        ],
        "refused": [
            {"path": each.display, "uri": each.path.as_uri(), "reason": each.reason, "diff": each.diff}
            for each in report.refused
        ],
        "notCovered": list(report.not_covered),
    }


def _id(talk: "Conversations", arguments: object) -> str | None:
    """The session that is meant: the one named, else the current one, else (None) the one written last."""
    named = optional_text(arguments, "sessionId")
    return named if named is not None or talk.latest is None else talk.latest.id


def _described(talk: "Conversations", id_: str) -> dict[str, Any]:
    session = talk.sessions.get(id_)
    return {
        "sessionId": id_,
        "title": "",
        "created": None,
        "updated": None,
        "turns": 0,
        "messages": 0,
        "open": session is not None,
        "running": session is not None and session.running,
        "current": talk.latest is not None and talk.latest.id == id_,
        "elsewhere": False,
    }
