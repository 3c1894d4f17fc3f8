"""A stored session for people, as Markdown, and for programs, as JSON."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agent_lsp.approvals import visible
from agent_lsp.messages import AssistantMessage, ChatMessage, ToolMessage, UserMessage
from agent_lsp.session.records import Replay, StoredTurn, message_record

_SHOWN = 4_000  # characters of one tool result; the JSON has the rest


def fenced(text: str, language: str = "") -> str:
    """Text in a Markdown fence that is longer than any fence inside."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def to_markdown(found: Replay) -> str:
    """The whole session as a document."""
    facts = {
        "session": f"`{found.id}`",
        "workspace": f"`{_one_line(found.root)}`",
        "begun": _when(found.created),
        "last written": _when(found.updated),
    }
    head = [
        f"# {_one_line(found.title) or 'Session'}",
        "\n".join(f"- {name}: {value}" for name, value in facts.items()),
    ]
    if found.problem:
        head.append(f"*The end of this session is damaged: {_one_line(found.problem)}*")
    return "\n\n".join([*head, transcript(found)]).rstrip() + "\n"


def transcript(found: Replay) -> str:
    """The conversation alone, turn by turn."""
    bounds = [turn.first_message for turn in found.turns] + [len(found.transcript)]
    parts: list[str] = list(_messages(found.transcript[: bounds[0]]))
    for turn, begin, end in zip(found.turns, bounds, bounds[1:], strict=False):
        parts.append(f"## Prompt\n\n{turn.prompt}")
        messages = found.transcript[begin:end]
        is_prompt = bool(messages) and isinstance(messages[0], UserMessage) and not messages[0].injected
        parts += _messages(messages[1:] if is_prompt else messages)
        parts += _ending(turn, Path(found.root))
    return "\n\n".join(parts) + "\n"


def _messages(messages: Sequence[ChatMessage]) -> Iterator[str]:
    results = {each.tool_call_id: each.content for each in messages if isinstance(each, ToolMessage)}
    for message in messages:
        match message:
            case UserMessage(injected=False):
                yield f"## Prompt\n\n{message.content}"
            case AssistantMessage():
                yield from _answer(message, results)
            case ToolMessage():
                pass  # it stands with its call
            case _:
                yield f"<details><summary>To the model</summary>\n\n{fenced(message.content)}\n\n</details>"


def _answer(message: AssistantMessage, results: Mapping[str, str]) -> Iterator[str]:
    if message.content:
        yield message.content
    for call in message.tool_calls:
        yield f"**{_one_line(call.name)}**\n\n{_arguments(call.name, call.arguments)}"
        result = results.pop(call.id, None) if isinstance(results, dict) else None
        if result is not None:
            cut = "\n[cut]" if len(result) > _SHOWN else ""
            yield f"→\n\n{fenced(result[:_SHOWN] + cut)}"


def _arguments(tool: str, arguments: str) -> str:
    try:
        value = json.loads(arguments)
    except ValueError:
        return fenced(arguments)
    if tool == "shell" and isinstance(value, dict) and isinstance(value.get("command"), str) and len(value) == 1:
        return fenced(value["command"], "sh")
    return fenced(json.dumps(value, ensure_ascii=False, indent=2), "json")


def _ending(turn: StoredTurn, root: Path) -> Iterator[str]:
    changed = [path for path, change in turn.changes.items() if change.before != change.after]
    if changed:
        state = " (undone)" if turn.undone else ""
        yield f"*Changed{state}: {', '.join(f'`{_one_line(_below(path, root))}`' for path in changed)}*"
    if turn.ended is None:
        yield "*The program was ended in the middle of this turn*"
    elif turn.error:
        yield f"*Ended: {turn.stop_reason} - {_one_line(turn.error)}*"
    elif turn.stop_reason != "completed":
        yield f"*Ended: {turn.stop_reason}*"


def _below(path: str, root: Path) -> str:
    return Path(path).relative_to(root).as_posix() if Path(path).is_relative_to(root) else path


def to_json(found: Replay) -> dict[str, Any]:
    """The whole session as one JSON object; ``messages`` of a turn are all up to the next one's."""
    bounds = [turn.first_message for turn in found.turns] + [len(found.transcript)]
    return {
        "id": found.id,
        "root": found.root,
        "title": found.title,
        "created": found.created,
        "updated": found.updated,
        "turns": [
            {
                "id": turn.id,
                "prompt": turn.prompt,
                "began": turn.began,
                "ended": turn.ended,
                "stop_reason": turn.stop_reason,
                "error": turn.error,
                "usage": asdict(turn.usage),
                "changes": sorted(path for path, change in turn.changes.items() if change.before != change.after),
                "undone": turn.undone,
                "messages": [message_record(message) for message in found.transcript[begin:end]],
            }
            for turn, begin, end in zip(found.turns, bounds, bounds[1:], strict=False)
        ],
    }


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _one_line(text: str) -> str:
    return visible(text).replace("\n", "⏎")
