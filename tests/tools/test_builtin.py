"""What the model is told about the tools, and how arguments are checked."""

import pytest

from agent_lsp.errors import ToolError
from agent_lsp.messages import JsonValue, thaw
from agent_lsp.tools.base import AnyTool
from agent_lsp.tools.builtin import BUILTIN_TOOLS
from agent_lsp.tools.edit import EDIT_FILE, Edit, EditFile
from agent_lsp.tools.read import READ_FILE
from agent_lsp.tools.shell import SHELL, Shell

# Each tool's arguments in short: the type, and a "!" where the argument is required.
ARGUMENTS = {
    "read_file": {"path": "string!", "start_line": "integer", "end_line": "integer"},
    "write_file": {"path": "string!", "content": "string!"},
    "edit_file": {"path": "string!", "edits": [{"old": "string!", "new": "string!", "all": "boolean"}, "!"]},
    "list_files": {"pattern": "string", "path": "string"},
    "search": {
        "pattern": "string!",
        "path": "string",
        "glob": "string",
        "context": "integer",
        "literal": "boolean",
        "limit": "integer",
    },
    "shell": {"command": "string!", "timeout": "number"},
}


def in_short(schema: JsonValue) -> JsonValue:
    """The arguments of an object schema in the notation of ARGUMENTS; fails on what a strict server would refuse."""
    assert isinstance(schema, dict)
    assert set(schema) <= {"type", "properties", "required", "additionalProperties", "description"}
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    return {
        name: in_short_argument(argument, "!" if name in schema.get("required", []) else "")
        for name, argument in schema["properties"].items()
    }


def in_short_argument(argument: dict[str, JsonValue], mark: str) -> JsonValue:
    allowed = {"type", "description", "default", "minimum", "maximum", "exclusiveMinimum", "minLength"}
    if argument["type"] == "array":
        assert set(argument) <= {"type", "description", "items", "minItems"}
        return [in_short(argument["items"]), mark]
    assert set(argument) <= allowed
    assert argument["description"]
    return f"{argument['type']}{mark}"


@pytest.mark.requirement("S3")
def test_builtin_tools_have_plain_schemas_in_the_documented_order() -> None:
    schemas = [tool.schema for tool in BUILTIN_TOOLS]

    assert {schema.name: in_short(thaw(schema.parameters)) for schema in schemas} == ARGUMENTS
    assert [schema.name for schema in schemas] == list(ARGUMENTS)


@pytest.mark.parametrize("tool", BUILTIN_TOOLS, ids=lambda tool: tool.name)
def test_builtin_tools_describe_themselves_without_indentation(tool: AnyTool) -> None:
    lines = tool.schema.description.split("\n")

    assert lines[0].endswith((".", ":"))
    assert [line for line in lines if line != line.strip()] == []


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        (READ_FILE, {}, "path: Field required"),
        (READ_FILE, {"path": 1}, "path: Input should be a valid string"),
        (READ_FILE, {"path": "a", "lines": 3}, "lines: Extra inputs are not permitted"),
        (READ_FILE, {"path": "a", "start_line": "3"}, "start_line: Input should be a valid integer"),
        (
            READ_FILE,
            {"path": "a", "start_line": 3, "end_line": 2},
            "arguments: Value error, end_line must not be before start_line",
        ),
        (EDIT_FILE, {"path": "a", "edits": "b"}, "edits: Input should be a valid array"),
        (
            EDIT_FILE,
            {"path": "a", "edits": [{"old": "b", "new": ""}, {"old": "", "new": ""}]},
            "edits.1.old: String should have at least 1 character",
        ),
        (SHELL, {"command": "a", "timeout": 601}, "timeout: Input should be less than or equal to 600"),
        (SHELL, {"command": object()}, "arguments: Object of type object is not JSON serializable"),
        (SHELL, {"command": float("nan")}, "arguments: Out of range float values are not JSON compliant"),
    ],
)
@pytest.mark.requirement("A9")
def test_validate_names_field_and_reason(tool: AnyTool, arguments: dict[str, JsonValue], reason: str) -> None:
    with pytest.raises(ToolError) as caught:
        tool.validate(arguments)

    assert caught.value.code == "invalid_arguments"
    assert caught.value.message == f"Tool arguments failed schema validation: {reason}"


@pytest.mark.requirement("A9")
def test_validate_takes_arrays_whole_numbers_and_null() -> None:
    assert EDIT_FILE.validate({"path": "a", "edits": [{"old": "b", "new": ""}]}) == EditFile(
        path="a", edits=(Edit(old="b", new=""),)
    )
    assert SHELL.validate({"command": "a", "timeout": 5}) == Shell(command="a", timeout=5.0)
    assert READ_FILE.validate({"path": "a", "end_line": None}) == READ_FILE.validate({"path": "a"})
