"""Prints the JSON Schema of the settings file, made from the server's own types: run with the server's Python.

``python schemas/make_schema.py > schemas/settings.schema.json``; a test compares the two.
"""

import json
import sys
from typing import Any, get_args

from agent_lsp.hooks.settings import EVENTS, STOP, HookType, OnFailure
from agent_lsp.settings.schema import LATER, Settings

RULES = {"deny": "must not do", "ask": "must ask for, even where a rule allows it", "allow": "may do without asking"}
HOOK_KEYS: dict[str, Any] = {
    "type": {"enum": list(get_args(HookType)), "description": "what runs it"},
    "command": {
        "description": "a line for the shell, or a program and its arguments",
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ],
    },
    "prompt": {"type": "string", "minLength": 1, "description": "for the model; $ARGUMENTS is the payload"},
    "url": {"type": "string", "minLength": 1, "description": "where the payload is posted to"},
    "headers": {"type": "object", "additionalProperties": {"type": "string"}},
    "matcher": {"type": "string", "description": "of the tool's name: a glob, or /a regular expression/"},
    "if": {"type": "string", "description": "of what the call is about: a glob, or /a regular expression/"},
    "blocking": {"type": "boolean", "default": False, "description": "whether its refusal stops the call"},
    "timeout": {"type": "number", "default": 60, "description": "seconds"},
    "name": {"type": "string", "minLength": 1},
    "on_failure": {"enum": list(get_args(OnFailure)), "default": "ignore", "description": "when it fails to run"},
}
HOOK: dict[str, Any] = {
    "type": "object",
    "required": ["type"],
    "properties": HOOK_KEYS,
    "additionalProperties": False,
    "oneOf": [
        {"properties": {"type": {"const": kind}}, "required": [key]}
        for kind, key in (("command", "command"), ("prompt", "prompt"), ("http", "url"))
    ],
}
GROUP = {  # the established shape of other agents
    "type": "object",
    "required": ["hooks"],
    "properties": {"matcher": {"type": "string"}, "hooks": {"type": "array", "items": {"type": "object"}}},
}


def make_schema() -> dict[str, Any]:
    schema = Settings.model_json_schema()
    definitions, properties = schema["$defs"], schema["properties"]
    for section in LATER:
        del properties[section]
    permissions = definitions["PermissionSettings"]["properties"]
    for key, what in RULES.items():
        permissions[key]["description"] = f"what the agent {what}: name or name(pattern), as in shell(git status *)"
    definitions["Hook"] = HOOK
    definitions["HookGroup"] = GROUP
    entries = {
        "type": "array",
        "items": {
            "if": {"required": ["hooks"]},
            "then": {"$ref": "#/$defs/HookGroup"},
            "else": {"$ref": "#/$defs/Hook"},
        },
    }
    properties["hooks"] = {
        "type": "object",
        "description": "the user's own programs, by event",
        "properties": dict.fromkeys((*EVENTS, STOP), entries),
        "additionalProperties": False,
    }
    for section in LATER:  # features that are not there yet: allowed, and not described
        properties[section] = {}
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Settings of agent-lsp"}
    found: dict[str, Any] = _plain({**schema, "title": None, "description": None})
    return {**head, **found, "allowComments": True, "allowTrailingCommas": True}


def _plain(value: Any) -> Any:
    """Without the titles and descriptions that pydantic makes of names and docstrings of types."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: ({name: _plain(item) for name, item in inner.items()} if key in ("properties", "$defs") else _plain(inner))
        for key, inner in value.items()
        if not (key == "title" and not isinstance(inner, dict)) and inner is not None
    }


if __name__ == "__main__":
    sys.stdout.write(f"{json.dumps(make_schema(), indent=2, ensure_ascii=False)}\n")
