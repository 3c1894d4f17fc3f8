"""A history made shorter for the model; pure, without a model.

Invariants: what comes out is a history that a Transcript takes, every word of the user is in it, and the last round is
never dropped. It is under the size that was asked for, or ``fits`` says that it cannot be.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent_lsp.messages import (
    AssistantMessage,
    ChatMessage,
    JsonValue,
    SystemMessage,
    ToolMessage,
    UserMessage,
    system_reminder,
)

How: TypeAlias = Literal["shortened", "summary", "digest"]

_BYTES_PER_TOKEN = 3.5
_PER_MESSAGE = 8  # tokens that roles and ids cost
_SHORT = 400  # characters that are left of an old result or argument
_SHORTEST = 120
_TAIL_SHARE = 2  # the newest rounds keep up to this part of the room
_MAX_FILES = 20
_TASKS = 4_000  # characters


def estimate(messages: Iterable[ChatMessage]) -> int:
    """About how many tokens messages have; more for text that is not English, as with most tokenizers."""
    return sum(map(_tokens, messages))


def _tokens(message: ChatMessage) -> int:
    size = _bytes(message.content)
    if isinstance(message, AssistantMessage):
        size += sum(_bytes(call.name) + _bytes(call.arguments) for call in message.tool_calls)
    return _PER_MESSAGE + int(size / _BYTES_PER_TOKEN)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """A shorter history, and how it was made; ``tokens`` is an estimate."""

    messages: tuple[ChatMessage, ...]
    how: How
    tokens: int
    fits: bool


Block: TypeAlias = tuple[ChatMessage, ...]
"""What cannot be torn apart: an answer with the results of its calls, or any other message alone."""


def blocks_of(messages: Iterable[ChatMessage]) -> list[Block]:
    """A history in its blocks."""
    blocks: list[list[ChatMessage]] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            blocks[-1].append(message)
        else:
            blocks.append([message])
    return [tuple(block) for block in blocks]


def split(messages: Sequence[ChatMessage], target: int) -> tuple[list[Block], list[Block]]:
    """The old blocks, and the newest that fit in their share of the room; the last round is always among these."""
    blocks = blocks_of(messages)
    begin = max(len(blocks) - 1, 0)
    while begin > 0 and not isinstance(blocks[begin][0], AssistantMessage | UserMessage):
        begin -= 1  # context behind a round belongs to it
    left = target // _TAIL_SHARE - sum(map(estimate, blocks[begin:]))
    while begin > 0 and (left := left - estimate(blocks[begin - 1])) >= 0:
        begin -= 1
    return blocks[:begin], blocks[begin:]


def shorten(messages: Sequence[ChatMessage], target: int) -> Compacted | None:
    """The same history with its old results and arguments cut; None where that is not enough."""
    old, new = split(messages, target)
    cut = tuple(message for block in (*(_cut(block, _SHORT) for block in old), *new) for message in block)
    tokens = estimate(cut)
    return Compacted(messages=cut, how="shortened", tokens=tokens, fits=True) if tokens <= target else None


def condense(messages: Sequence[ChatMessage], target: int, summary: str, *, how: How) -> Compacted:
    """The user's words, a summary of what else was in the old blocks, and the newest blocks, cut where they must be."""
    old, new = split(messages, target)
    words, others = by_speaker(old)
    note = [UserMessage(content=system_reminder(f"{_LEFT_OUT}\n\n{summary}"), injected=True)] if others else []
    for size in (None, _SHORT * 4, _SHORT, _SHORTEST):
        kept = new if size is None else [_cut(block, size) for block in new]
        made = (*words, *note, *(message for block in kept for message in block))
        tokens = estimate(made)
        if tokens <= target:
            break
    return Compacted(messages=made, how=how, tokens=tokens, fits=tokens <= target)


_LEFT_OUT = (
    "Earlier parts of this conversation were left out to make room: your answers, calls and their results. All that "
    "the user said is above. This is what happened; look again at whatever you need exactly."
)


def by_speaker(blocks: Iterable[Block]) -> tuple[list[ChatMessage], list[ChatMessage]]:
    """The user's own words, and everything else."""
    users, others = list[ChatMessage](), list[ChatMessage]()
    for block in blocks:
        for message in block:
            (users if isinstance(message, UserMessage) and not message.injected else others).append(message)
    return users, others


def _cut(block: Block, size: int) -> Block:
    """A block with results and arguments of at most about ``size`` characters; the user's words stay."""
    return tuple(_cut_message(message, size) for message in block)


def _cut_message(message: ChatMessage, size: int) -> ChatMessage:
    match message:
        case ToolMessage(content=content):
            return replace(message, content=shortened(content, size))
        case SystemMessage() | UserMessage(injected=True):
            return replace(message, content=shortened(message.content, size * 4))
        case AssistantMessage():
            calls = tuple(replace(call, arguments=_cut_arguments(call.arguments, size)) for call in message.tool_calls)
            return replace(message, tool_calls=calls, reasoning="")
        case _:
            return message


def shortened(text: str, size: int) -> str:
    """Head and tail of a text, and how much is missing between them."""
    note = f"\n[… {len(text) - size:,} characters left out …]\n"
    if len(text) <= size + len(note):
        return text
    return f"{text[: size * 2 // 3]}{note}{text[len(text) - size // 3 :]}"


def _cut_arguments(arguments: str, size: int) -> str:
    """Arguments that are JSON still, with their long texts cut."""
    if len(arguments) <= size:
        return arguments
    try:
        return json.dumps(_cut_value(json.loads(arguments), size), ensure_ascii=False)
    except (ValueError, RecursionError):
        return json.dumps({"left_out": shortened(arguments, size)}, ensure_ascii=False)


def _cut_value(value: JsonValue, size: int) -> JsonValue:
    if isinstance(value, str):
        return shortened(value, size)
    if isinstance(value, dict):
        return {key: _cut_value(item, size) for key, item in value.items()}
    return [_cut_value(item, size) for item in value] if isinstance(value, list) else value


def digest(blocks: Iterable[Block], size: int) -> str:
    """What happened in some blocks, a line for each step, in at most about ``size`` characters; the newest stay."""
    lines, left = list[str](), size
    for line in reversed([line for block in blocks for line in _lines(block)]):
        if (left := left - len(line) - 1) < 0:
            lines.append("- […]")
            break
        lines.append(line)
    return "\n".join(reversed(lines)) or "- nothing"


def _lines(block: Block) -> list[str]:
    first, *results = block
    match first:
        case AssistantMessage():
            told = [message.content for message in results if isinstance(message, ToolMessage)]
            said = [f"- you: {_line(first.content, 300)}"] if first.content else []
            pairs = zip(first.tool_calls, told, strict=True)
            return said + [f"- {call.name} {_line(call.arguments, 160)} → {_line(text, 160)}" for call, text in pairs]
        case UserMessage(injected=True) | SystemMessage():
            is_summary = _LEFT_OUT in first.content  # what it sums up is nowhere else
            return [f"- told: {_line(first.content, 4_000 if is_summary else 300)}"]
        case _:
            return []


def _line(text: str, size: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= size else f"{line[:size]}…"


def rendered(blocks: Iterable[Block], size: int) -> str:
    """Blocks as text for a model that is to sum them up, in at most about ``size`` characters."""
    parts = []
    for block in blocks:
        for message in _cut(block, _SHORT * 4):
            match message:
                case AssistantMessage():
                    calls = "".join(f"\n{call.name} {call.arguments}" for call in message.tool_calls)
                    parts.append(f"ASSISTANT: {message.content}{calls}")
                case ToolMessage():
                    parts.append(f"RESULT: {message.content}")
                case UserMessage(injected=False):
                    parts.append(f"USER: {message.content}")
                case _:
                    parts.append(f"CONTEXT: {message.content}")
    return shortened("\n\n".join(parts), size)


def in_hand(record: Iterable[ChatMessage], *, open_tasks: Callable[[], str]) -> str:
    """The open tasks, and the files that calls were about last, those that were written marked as such."""
    files: dict[str, bool] = {}
    for message in record:
        for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
            path = _path_of(call.arguments)
            if path:
                written = files.pop(path, False) or call.name in ("write_file", "edit_file")
                files[path] = written
    tasks = shortened(open_tasks(), _TASKS)
    listed = [f"- {path}{' (changed by you)' if files[path] else ''}" for path in list(files)[-_MAX_FILES:]]
    parts = [f"Open tasks:\n{tasks}" if tasks else "", "\n".join(["Files in hand:", *listed]) if listed else ""]
    return "\n\n".join(filter(None, parts))


def _path_of(arguments: str) -> str:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    path = value.get("path") if isinstance(value, dict) else None
    return path if isinstance(path, str) else ""
