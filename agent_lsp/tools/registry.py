"""The tools of a session by name; turns a model's raw call into a PreparedCall or into the error that answers it."""

import json
from collections.abc import Iterable, Iterator

from agent_lsp.errors import ConfigurationError, ToolError
from agent_lsp.messages import JsonObject, ToolCall, ToolResult, ToolSchema
from agent_lsp.tools.base import AnyTool, PreparedCall


class ToolRegistry:
    """An ordered, fixed set of tools with distinct names."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        self._tools: dict[str, AnyTool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ConfigurationError(f"Two tools are named {tool.name}")
            self._tools[tool.name] = tool
        self.schemas: tuple[ToolSchema, ...] = tuple(tool.schema for tool in self._tools.values())

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    def prepare(self, call: ToolCall) -> PreparedCall | ToolResult:
        """Look up, parse and validate. Failures are values, worded for the model (A9)."""
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolResult.error("unknown_tool", f"Unknown tool: {call.name}")
        try:
            return tool.prepare(call.id, parse_arguments(call.arguments))
        except ToolError as error:
            return ToolResult.error(error.code, error.message)


def parse_arguments(text: str) -> JsonObject:
    """Parse raw argument text strictly; empty text means no arguments (F50). Raises ToolError.

    NaN and Infinity are not JSON, nesting is bounded by the parser, and a lone surrogate is refused because no
    file or process could take it.
    """
    try:
        value = json.loads(text.strip() or "{}", parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ToolError("invalid_json", "Tool arguments must be valid JSON") from error
    if not isinstance(value, dict):
        raise ToolError("invalid_arguments", "Tool arguments must be a JSON object")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
