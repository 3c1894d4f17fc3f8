"""History → request body.

Invariant: a message is encoded once. History is append-only and messages are frozen, so the bytes of the last
request are the beginning of the next; what is not the very same objects is encoded from the start.
"""

import json
import operator

from agent_lsp.messages import ChatMessage, JsonObject, JsonValue, ToolSchema, thaw
from agent_lsp.models.base import ModelRequest
from agent_lsp.models.schema_tools import prompt_with_tools, reply_format
from agent_lsp.models.settings import OpenAIChatSettings
from agent_lsp.models.wire_messages import WireMessages

_BRIDGE: JsonObject = {"role": "assistant", "content": "Noted."}
"""What stands between a tool result and a user message at servers that want an answer there."""


class RequestEncoder:
    """Encodes the requests of one conversation; another one may be passed in between and costs a full encoding."""

    def __init__(self, settings: OpenAIChatSettings) -> None:
        self._settings = settings
        self._head_for: tuple[str, tuple[ToolSchema, ...]] | None = None
        self._head = b""
        self._begin("")

    def _begin(self, system: str) -> None:
        self._system = system
        self._wire = WireMessages(self._settings.quirks)
        self._messages: list[ChatMessage] = []
        self._encoded = bytearray()
        self._last: JsonObject | None = None
        self._last_start = 0

    def encode(self, request: ModelRequest) -> bytes:
        """The whole JSON body of a request."""
        if self._head_for != (request.system, request.tools):
            self._head, self._head_for = self._encode_head(request), (request.system, request.tools)
            self._begin(self._standing_prompt(request))
        elif not self._continues(request):
            self._begin(self._system)
        if self._last is None:
            self._add(self._wire.system(self._system))
        for message in request.messages[len(self._messages) :]:
            self._add(self._wire.of(message))
            self._messages.append(message)
        return b"".join((self._head, self._encoded, b"]}"))

    def _continues(self, request: ModelRequest) -> bool:
        return len(self._messages) <= len(request.messages) and all(map(operator.is_, self._messages, request.messages))

    def _add(self, message: JsonObject) -> None:
        """Append one message on the wire; at servers with strict roles, one that may stand there."""
        last, role = self._last, message["role"]
        if last is not None and self._settings.quirks.get("strict_roles") and role == "user":
            if last["role"] == "user":
                message = {"role": "user", "content": f"{last['content']}\n\n{message['content']}"}
                del self._encoded[self._last_start :]
            elif last["role"] == "tool":
                self._put(_BRIDGE)
        self._put(message)

    def _put(self, message: JsonObject) -> None:
        self._last, self._last_start = message, len(self._encoded)
        self._encoded += (b"," if self._encoded else b"") + _dump(message)

    def _standing_prompt(self, request: ModelRequest) -> str:
        by_schema = self._settings.quirks.get("tools_by_schema")
        return prompt_with_tools(request.system, request.tools) if by_schema else request.system

    def _encode_head(self, request: ModelRequest) -> bytes:
        """Everything up to the first message."""
        settings, quirks = self._settings, self._settings.quirks
        by_schema = quirks.get("tools_by_schema")
        limit = "max_completion_tokens" if quirks.get("max_completion_tokens") else "max_tokens"
        body: dict[str, JsonValue] = {
            "model": settings.name,
            "stream": True,
            "stream_options": None if quirks.get("no_stream_options") else {"include_usage": True},
            limit: settings.max_output_tokens,
            "temperature": None if quirks.get("no_temperature") else settings.temperature,
            "reasoning_effort": None if quirks.get("no_reasoning_effort") else settings.reasoning_effort,
            "tools": None if by_schema else [_tool(schema) for schema in request.tools] or None,
            "response_format": reply_format(request.tools)
            if by_schema and not quirks.get("no_response_format")
            else None,
            "messages": [],
        }
        return _dump({key: value for key, value in body.items() if value is not None}).removesuffix(b"]}")


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
