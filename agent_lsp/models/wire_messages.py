"""One message of a history → one message on the wire, as a server's quirks want it.

Invariant: calls and their results carry ids that tell them apart (F50), and arguments that are sent back are JSON.
"""

import base64
import hashlib
import json

from agent_lsp.messages import (
    AssistantMessage,
    ChatMessage,
    JsonObject,
    JsonValue,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    system_reminder,
)
from agent_lsp.models.quirks import Quirks
from agent_lsp.models.schema_tools import call_text, result_text

_SIGNED_BY_NOBODY: JsonObject = {"google": {"thought_signature": "skip_thought_signature_validator"}}


class WireMessages:
    """Translates the messages of one history in their order; results are told by the calls before them."""

    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks
        self._calls: dict[str, ToolCall] = {}
        self._ids: dict[str, str] = {}

    def system(self, text: str) -> JsonObject:
        """The standing prompt."""
        return {"role": "user" if self._quirks.get("system_as_user") else "system", "content": text}

    def of(self, message: ChatMessage) -> JsonObject:
        match message:
            case SystemMessage(content=content):
                return self._context(content)
            case UserMessage(content=content):
                return {"role": "user", "content": content}
            case AssistantMessage():
                return self._assistant(message)
            case ToolMessage():
                return self._result(message)

    def _context(self, content: str) -> JsonObject:
        if not any(map(self._quirks.get, ("system_first", "system_as_user", "strict_roles"))):
            return {"role": "system", "content": content}
        is_tagged = content.startswith("<system-reminder>")
        return {"role": "user", "content": content if is_tagged else system_reminder(content)}

    def _assistant(self, message: AssistantMessage) -> JsonObject:
        self._calls = {call.id: call for call in message.tool_calls}
        self._ids = wire_ids(message.tool_calls)
        if self._quirks.get("short_call_ids"):
            self._ids = {own: _short(id_) for own, id_ in self._ids.items()}
        encoded: dict[str, JsonValue] = {"role": "assistant", "content": message.content}
        if message.tool_calls and self._quirks.get("tools_by_schema"):
            encoded["content"] = call_text(message)
        elif message.tool_calls:
            encoded["content"] = message.content or ("" if self._quirks.get("content_not_null") else None)
            encoded["tool_calls"] = [self._call(call, first=not n) for n, call in enumerate(message.tool_calls)]
        reasoning_field = self._quirks.get("echo_reasoning")
        if reasoning_field:  # where it is wanted, it is wanted of answers without any as well
            encoded[reasoning_field if isinstance(reasoning_field, str) else "reasoning_content"] = message.reasoning
        return encoded

    def _call(self, call: ToolCall, *, first: bool) -> JsonObject:
        function = {"name": call.name, "arguments": _arguments(call)}
        encoded: dict[str, JsonValue] = {"id": self._ids[call.id], "type": "function", "function": function}
        if call.extra:
            encoded["extra_content"] = json.loads(call.extra)
        elif first and self._quirks.get("thought_signatures"):
            encoded["extra_content"] = _SIGNED_BY_NOBODY
        return encoded

    def _result(self, message: ToolMessage) -> JsonObject:
        call_id, content = message.tool_call_id, message.content
        if self._quirks.get("tools_by_schema"):
            return {"role": "user", "content": result_text(self._calls[call_id].name, content)}
        encoded = {"role": "tool", "tool_call_id": self._ids[call_id], "content": content}
        return encoded | ({"name": self._calls[call_id].name} if self._quirks.get("tool_names") else {})


def wire_ids(calls: tuple[ToolCall, ...]) -> dict[str, str]:
    """Our id → the id on the wire: the server's own ids where they tell its calls apart, else ours (F50)."""
    provided = [call.provider_id or call.id for call in calls]
    own = [call.id for call in calls]
    return dict(zip(own, provided if len(set(provided)) == len(provided) else own, strict=True))


def _short(id_: str) -> str:
    """Nine letters and digits: the id itself if it is that, else what stands for it."""
    if len(id_) == 9 and id_.isascii() and id_.isalnum():
        return id_
    return base64.b32encode(hashlib.sha256(id_.encode(errors="replace")).digest())[:9].decode()


def _arguments(call: ToolCall) -> str:
    """A call's arguments for the echo, always a JSON object.

    Servers parse them again for their prompt template, and one unreadable call would make every later request of
    the conversation fail.
    """
    try:
        if isinstance(json.loads(call.arguments, parse_constant=_refuse), dict):
            return call.arguments
    except (ValueError, RecursionError):
        pass
    return json.dumps({"invalid_arguments": call.arguments}, ensure_ascii=False)


def _refuse(constant: str) -> None:
    raise ValueError(constant)
