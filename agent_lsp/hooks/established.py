"""The shape that other agents' hooks are written for: their tool names, payload keys and arguments, beside ours.

A hook that is configured as ``{"matcher": "Bash", "hooks": [{"type": "command", ...}]}`` gets these.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_TOOL_NAMES = {
    "shell": ("Bash",),
    "read_file": ("Read",),
    "write_file": ("Write",),
    "edit_file": ("Edit", "MultiEdit"),
    "list_files": ("Glob",),
    "search": ("Grep",),
    "spawn_agent": ("Task",),
    "fetch_url": ("WebFetch",),
}
_EDIT_KEYS = {"old": "old_string", "new": "new_string", "all": "replace_all"}


def tool_names(tool: str) -> tuple[str, ...]:
    """The names that a matcher may use for a tool: those of other agents, and ours."""
    return (*_TOOL_NAMES.get(tool, ()), tool)


def established_payload(payload: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Our payload with the keys that such hooks read."""
    added: dict[str, Any] = {"hook_event_name": payload["event"]}
    if "tool" in payload:
        added["tool_name"] = tool_names(payload["tool"])[0]
        added["tool_input"] = _input(payload["tool"], payload.get("args", {}), root)
    if "output" in payload:
        added["tool_response"] = {"content": payload["output"], "is_error": payload.get("is_error", False)}
    return {**payload, **added}


def _input(tool: str, args: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """A tool's arguments as such hooks know them: an absolute path, and the strings of an edit where it is one."""
    given = dict(args)
    if isinstance(given.get("path"), str):
        path = str(root / given.pop("path"))
        given["path" if tool in ("search", "list_files") else "file_path"] = path
    if "edits" in given:
        edits = _renamed(given.pop("edits"), _EDIT_KEYS)
        given |= (
            edits[0] if isinstance(edits, list) and len(edits) == 1 and isinstance(edits[0], dict) else {"edits": edits}
        )
    return given


def _renamed(edits: Any, names: Mapping[str, str]) -> Any:
    """Edits under other names; what is no list of objects stays as it is, for the tool to refuse."""
    if not isinstance(edits, list):
        return edits
    return [
        {names.get(key, key): value for key, value in edit.items()} if isinstance(edit, dict) else edit
        for edit in edits
    ]


def own_input(updated: Mapping[str, Any]) -> dict[str, Any]:
    """An ``updatedInput`` of such a hook as our tool's arguments."""
    given = dict(updated)
    if "file_path" in given:
        given["path"] = given.pop("file_path")
    single = {key: given.pop(name) for key, name in _EDIT_KEYS.items() if name in given}
    if "edits" in given:
        given["edits"] = _renamed(given["edits"], {name: key for key, name in _EDIT_KEYS.items()})
    elif single:
        given["edits"] = [single]
    return given


def variables(root: Path) -> dict[str, str]:
    """The variables that such hooks find their scripts by."""
    return {"CLAUDE_PROJECT_DIR": str(root)}
