"""History → request body.

Invariant: a message is encoded once. History is append-only and messages are frozen, so the bytes of the last
request are the beginning of the next; what is not the very same objects is encoded from the start.
"""

import json
import operator

from agent_lsp.messages import (
    AssistantMessage,
    ChatMessage,
    JsonObject,
    JsonValue,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSchema,
    UserMessage,
    thaw,
)
from agent_lsp.models.base import ModelRequest
from agent_lsp.models.settings import OpenAIChatSettings


class RequestEncoder:
    """Encodes the requests of one conversation; another one may be passed in between and costs a full encoding."""

    def __init__(self, settings: OpenAIChatSettings) -> None:
        self._settings = settings
        self._head_for: tuple[str, tuple[ToolSchema, ...]] | None = None
        self._head = b""
        self._messages: list[ChatMessage] = []
        self._encoded = bytearray()
        self._wire_ids: dict[str, str] = {}

    def encode(self, request: ModelRequest) -> bytes:
        """The whole JSON body of a request."""
        if not self._continues(request):
            self._messages, self._encoded = [], bytearray()
        for message in request.messages[len(self._messages) :]:
            self._encoded += b"," + _dump(self._message(message))
            self._messages.append(message)
        if self._head_for != (request.system, request.tools):
            self._head, self._head_for = self._encode_head(request), (request.system, request.tools)
        return b"".join((self._head, self._encoded, b"]}"))

    def _continues(self, request: ModelRequest) -> bool:
        return len(self._messages) <= len(request.messages) and all(map(operator.is_, self._messages, request.messages))

    def _encode_head(self, request: ModelRequest) -> bytes:
        """Everything up to the first message of the history; the standing prompt is the first system message."""
        settings, quirks = self._settings, self._settings.quirks
        limit = "max_completion_tokens" if quirks.get("max_completion_tokens") else "max_tokens"
        body: dict[str, JsonValue] = {
            "model": settings.name,
            "stream": True,
            "stream_options": None if quirks.get("no_stream_options") else {"include_usage": True},
            limit: settings.max_output_tokens,
            "temperature": settings.temperature,
            "reasoning_effort": settings.reasoning_effort,
            "tools": [_tool(schema) for schema in request.tools] or None,
            "messages": [{"role": "system", "content": request.system}],
        }
        return _dump({key: value for key, value in body.items() if value is not None}).removesuffix(b"]}")

    def _message(self, message: ChatMessage) -> JsonObject:
        match message:
            case SystemMessage(content=content):
                return {"role": "system", "content": content}
            case UserMessage(content=content):
                return {"role": "user", "content": content}
            case AssistantMessage():
                return self._assistant(message)
            case ToolMessage(tool_call_id=call_id, content=content):
                return {"role": "tool", "tool_call_id": self._wire_ids[call_id], "content": content}

    def _assistant(self, message: AssistantMessage) -> JsonObject:
        self._wire_ids = wire_ids(message.tool_calls)
        encoded: dict[str, JsonValue] = {"role": "assistant", "content": message.content}
        if message.tool_calls:
            encoded["content"] = message.content or None
            encoded["tool_calls"] = [
                {
                    "id": self._wire_ids[call.id],
                    "type": "function",
                    "function": {"name": call.name, "arguments": _arguments(call)},
                }
                for call in message.tool_calls
            ]
        reasoning_field = self._settings.quirks.get("echo_reasoning")
        if isinstance(reasoning_field, str) and message.reasoning:
            encoded[reasoning_field] = message.reasoning
        return encoded


def wire_ids(calls: tuple[ToolCall, ...]) -> dict[str, str]:
    """Our id → the id on the wire: the server's own ids where they tell its calls apart, else ours (F50)."""
    provided = [call.provider_id or call.id for call in calls]
    own = [call.id for call in calls]
    return dict(zip(own, provided if len(set(provided)) == len(provided) else own, strict=True))


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


def _tool(schema: ToolSchema) -> JsonObject:
    return {
        "type": "function",
        "function": {
            "name": schema.name,
            "description": schema.description,
            "parameters": thaw(schema.parameters),
        },
    }


def _dump(value: JsonObject) -> bytes:
    """Compact UTF-8; lone surrogates, which no server takes, become question marks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
