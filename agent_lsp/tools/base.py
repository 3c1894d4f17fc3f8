"""What a tool is, and a call that is ready to run.

Invariant: a PreparedCall's arguments are deeply frozen, and only ``Tool.prepare`` (through the registry) makes one
that has been validated; a rewrite is prepared again (A34, A39).
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agent_lsp.approvals import Action, FileChange
from agent_lsp.errors import ToolError
from agent_lsp.messages import JsonObject, ToolResult, ToolSchema, freeze_object, thaw
from agent_lsp.workspace import Access, Documents, NoDocuments, ResolvedPath, Workspace


class Params(BaseModel):
    """The base of every tool's parameters: strict, frozen, no unknown keys.

    A subclass's docstring is the tool's description and its field descriptions are the arguments', as the model
    reads them.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


P = TypeVar("P", bound=Params)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a handler may use while it runs one call.

    ``change`` is the change that was approved, for tools with a preview. ``environment`` is that of child
    processes, without secrets (F45). ``output`` streams a piece of live output to whoever watches. ``may_read`` says
    whether the rules let a file be shown; it is asked from worker threads too.
    """

    call_id: str
    workspace: Workspace
    documents: Documents = field(default_factory=NoDocuments)
    change: FileChange | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    output: Callable[[str], None] = lambda _text: None
    may_read: Callable[[ResolvedPath], bool] = lambda _path: True

    def may_show(self, display: str) -> bool:
        """Whether the rules let a file be shown that was found, through no link, below a directory in the workspace."""
        return self.may_read(ResolvedPath(path=self.workspace.root / display, display=display, inside=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool(Generic[P]):
    """One tool. Compared by identity: it locks name, effect, schema and handler together (A36).

    ``action`` says what a call would do, for the policy; ``preview`` says what an edit would change, for the human,
    without changing anything. Both and ``run`` may raise ToolError.
    """

    name: str
    params: type[P]
    access: Access
    run: Callable[[P, ToolContext], Awaitable[ToolResult]]
    action: Callable[[P, Workspace], Action]
    preview: Callable[[P, ToolContext], Awaitable[FileChange]] | None = None

    @property
    def schema(self) -> ToolSchema:
        """The description and the plain JSON Schema that servers get."""
        description = inspect.cleandoc(self.params.__doc__ or "")
        return ToolSchema(name=self.name, description=description, parameters=parameters_schema(self.params))

    def validate(self, arguments: JsonObject) -> P:
        """Parse arguments strictly. Raises ToolError ``invalid_arguments`` that names each field and reason (A9).

        As JSON, because there an array is what a tuple field takes, and messages speak of arrays and objects.
        """
        try:
            return self.params.model_validate_json(json.dumps(thaw(arguments), allow_nan=False))
        except ValidationError as error:
            reason = explain(error)
        except (TypeError, ValueError) as error:  # a rewrite may hold what JSON cannot
            reason = f"arguments: {error}"
        raise ToolError("invalid_arguments", f"Tool arguments failed schema validation: {reason}")

    def prepare(self, call_id: str, arguments: JsonObject) -> "PreparedCall":
        """Validate and freeze. Raises ToolError ``invalid_arguments``."""
        self.validate(arguments)
        return PreparedCall(call_id=call_id, name=self.name, definition=self, arguments=arguments)


# A registry holds tools of many parameter types; only the tool itself pairs a handler with its parameters.
AnyTool: TypeAlias = Tool[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCall:
    """A looked-up, parsed and validated call. ``arguments`` are deeply frozen, whatever was passed in (A39, A40)."""

    call_id: str
    name: str
    definition: AnyTool
    arguments: JsonObject

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", freeze_object(self.arguments))

    def action(self, workspace: Workspace) -> Action:
        """What the call would do. Raises ToolError for a path that no system call takes."""
        action: Action = self.definition.action(self.definition.validate(self.arguments), workspace)
        return action

    async def preview(self, context: ToolContext) -> FileChange | None:
        """What the call would change, or None for a tool that edits nothing. Raises ToolError."""
        if self.definition.preview is None:
            return None
        return await self.definition.preview(self.definition.validate(self.arguments), context)

    async def run(self, context: ToolContext) -> ToolResult:
        """Run the handler. Raises ToolError, or anything the handler raises."""
        return await self.definition.run(self.definition.validate(self.arguments), context)


def explain(error: ValidationError) -> str:
    """Each failed field with its path and reason, on one line: ``edits.0.old: Field required``."""
    return "; ".join(
        f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in error.errors(include_url=False)
    )


def parameters_schema(params: type[BaseModel]) -> JsonObject:
    """Plain JSON Schema that strict servers accept: no titles, no docstring twice, no ``anyOf`` for optional values."""
    full = params.model_json_schema()
    schema = _plain(full, full.get("$defs", {}))
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return freeze_object(schema)


def _plain(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        node = {**definitions[node["$ref"].rsplit("/", 1)[-1]], **node}
    options = [option for option in node.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        rest = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
        return _plain({**options[0], **rest}, definitions)
    plain = {key: value for key, value in node.items() if key not in ("title", "$defs", "$ref")}
    if "properties" in plain:
        plain["properties"] = {name: _plain(child, definitions) for name, child in plain["properties"].items()}
    if "items" in plain:
        plain["items"] = _plain(plain["items"], definitions)
    return plain
