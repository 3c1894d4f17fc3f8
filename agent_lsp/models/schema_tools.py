"""Tool calls for models that have none: the tools stand in the prompt, and each answer is held to a JSON schema (F57).

An answer is one JSON object: ``{"tool": NAME, "arguments": {…}}`` or ``{"answer": TEXT}``. What is neither is taken
for an answer in plain text, so that a model that ignores the schema can still be talked to.
"""

import json
from collections.abc import Sequence

from agent_lsp.messages import AssistantMessage, JsonObject, JsonValue, ToolCall, ToolSchema, thaw
from agent_lsp.models.assembler import new_call_id

_HOW = """\


# Tools

Answer with one JSON object and nothing else. To use a tool, name it and give its arguments:
{example}
Its result comes as the next message; then use another one, or end. To end, when all is done:
{{"answer": "what you have to say to the user"}}

The tools, each with the JSON schema of its arguments:
{tools}"""


def prompt_with_tools(system: str, tools: Sequence[ToolSchema]) -> str:
    """The standing prompt, and behind it how to use the tools."""
    if not tools:
        return system
    listed = "\n".join(f"- {tool.name}: {tool.description}\n  {_dump(thaw(tool.parameters))}" for tool in tools)
    return system + _HOW.format(example=_dump({"tool": tools[0].name, "arguments": _example(tools[0])}), tools=listed)


def _example(tool: ToolSchema) -> JsonObject:
    required = tool.parameters.get("required")
    return {str(name): "…" for name in required} if isinstance(required, Sequence) else {}


def reply_format(tools: Sequence[ToolSchema]) -> JsonObject | None:
    """``response_format`` for answers that use one of the tools, or end."""
    if not tools:
        return None
    shapes: list[JsonValue] = [
        _shape({"tool": {"const": tool.name}, "arguments": thaw(tool.parameters)}) for tool in tools
    ]
    shapes.append(_shape({"answer": {"type": "string"}}))
    schema: JsonObject = {"anyOf": shapes}
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}


def _shape(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_reply(text: str) -> tuple[str, tuple[ToolCall, ...]]:
    """The text and the calls that an answer means."""
    value = _object_in(text)
    if value is None:
        return text, ()
    if isinstance(tool := value.get("tool"), str):
        arguments = value.get("arguments")
        return "", (ToolCall(id=new_call_id(), name=tool, arguments=_dump({} if arguments is None else arguments)),)
    answer = value.get("answer")
    return (answer, ()) if isinstance(answer, str) else (text, ())


def _object_in(text: str) -> JsonObject | None:
    """The JSON object that a text is, or that stands in it between the first brace and the last."""
    begin, end = text.find("{"), text.rfind("}")
    for candidate in (text, text[begin : end + 1] if 0 <= begin < end else ""):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None


def call_text(message: AssistantMessage) -> str:
    """An answer with calls, as this kind of model would have written it."""
    lines = [message.content] if message.content else []
    for call in message.tool_calls:
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            arguments = {"invalid_arguments": call.arguments}
        lines.append(_dump({"tool": call.name, "arguments": arguments}))
    return "\n".join(lines)


def result_text(tool: str, content: str) -> str:
    """A result, as the message that follows."""
    return f"Result of {tool}:\n{content}"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
