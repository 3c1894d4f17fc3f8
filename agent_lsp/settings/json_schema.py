"""The JSON Schema of a settings file, for editors: made from the same types that the file is read with."""

from typing import Any

from agent_lsp.hooks.builtin import BUILTIN_HOOKS
from agent_lsp.hooks.settings import EVENTS, STOP
from agent_lsp.settings.schema import LATER, Settings

_STRING = {"type": "string", "minLength": 1}
_MATCHER = {"type": "string", "description": "a name, /a regular expression/, or nothing for any"}
_HOOK: dict[str, Any] = {
    "type": "object",
    "required": ["type"],
    "additionalProperties": False,
    "properties": {
        "type": {"enum": ["command", "prompt", "http"]},
        "command": {"anyOf": [_STRING, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
        "prompt": {**_STRING, "description": "$ARGUMENTS stands for the event's JSON"},
        "url": {**_STRING, "format": "uri"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "matcher": {**_MATCHER, "description": f"on the tool: {_MATCHER['description']}"},
        "if": {**_MATCHER, "description": f"on the arguments as JSON: {_MATCHER['description']}"},
        "blocking": {"type": "boolean", "default": False, "description": "whether the hook may refuse"},
        "timeout": {"type": "number", "default": 60, "description": "seconds"},
        "name": _STRING,
        "on_failure": {"enum": ["ignore", "ask", "block"], "default": "ignore"},
    },
}
_ESTABLISHED = {
    "type": "object",
    "required": ["hooks"],
    "properties": {"matcher": {"type": "string"}, "hooks": {"type": "array", "items": {"type": "object"}}},
    "description": "the shape of other agents",
}
_HOOKS = {
    "type": "object",
    "description": "programs, prompts and requests of your own at fixed points of a run",
    "additionalProperties": False,
    "properties": {
        event: {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Hook"}, _ESTABLISHED]}}
        for event in (*EVENTS, STOP)
    },
}


def settings_schema() -> dict[str, Any]:
    """The whole schema. What belongs to features that are not there yet takes anything."""
    schema: dict[str, Any] = _without_titles(Settings.model_json_schema())
    schema["$schema"] = "http://json-schema.org/draft-07/schema#"  # the draft that editors know best
    schema["title"] = "Settings of agent-lsp"
    schema["allowTrailingCommas"] = True
    schema["properties"] = {"$schema": {"type": "string"}, **schema["properties"], "hooks": _HOOKS}
    schema["$defs"]["Hook"] = _HOOK
    schema["$defs"]["AgentSettings"]["properties"]["builtin_hooks"]["items"] = {"enum": list(BUILTIN_HOOKS)}
    for name in LATER:
        schema["properties"][name] = {"description": "belongs to a feature that is not there yet"}
    return schema


def _without_titles(value: Any) -> Any:
    """Without the names that pydantic makes out of the keys; an editor would show them twice."""
    if isinstance(value, dict):
        return {key: _without_titles(item) for key, item in value.items() if key != "title" or isinstance(item, dict)}
    return [_without_titles(item) for item in value] if isinstance(value, list) else value
