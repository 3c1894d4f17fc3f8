"""The map of the package, as drawing and check: who may import whom."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "agent_lsp"

VALUES = (
    "errors",
    "messages",
    "workspace",
    "approvals",
    "redaction",
    "terminal_text",
    "process_output",
    "processes",
)
DOMAINS = ("models", "tools", "permissions", "hooks", "validation")
FRONTS = ("cli", "lsp")
ALLOWED: dict[str, set[str]] = {
    **{room: set(VALUES[: VALUES.index(room)]) for room in VALUES},
    **{room: set(VALUES) for room in DOMAINS},
    "agent": {*VALUES, *DOMAINS},
    "settings": {*VALUES, *DOMAINS},
    "session": {*VALUES, *DOMAINS, "agent", "settings"},
    **{room: {*VALUES, "session", "agent.events", "__init__"} for room in FRONTS},
    "cli": {*VALUES, "session", "agent.events", "__init__", "lsp"},
    "__main__": {"cli", "__init__"},
    "__init__": set(),
}
EXCEPTIONS = {("hooks", "tools.base"), ("hooks", "models.base")}

MODULES = sorted(PACKAGE.rglob("*.py"))


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(tree: ast.AST) -> set[str]:
    """The modules of the package that a module imports, wherever in it, without the package's name."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "agent_lsp":
            found.add(node.module.removeprefix("agent_lsp").lstrip(".") or "__init__")
        elif isinstance(node, ast.Import):
            found.update(a.name.removeprefix("agent_lsp.") for a in node.names if a.name.startswith("agent_lsp"))
    return found


def _may(room: str, target: str) -> bool:
    head = target.split(".")[0]
    return head == room or bool({head, target} & ALLOWED[room]) or (room, target) in EXCEPTIONS


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_imports_only_from_rooms_above_its_own(path: Path) -> None:
    wrong = {target for target in _imports(ast.parse(path.read_text())) if not _may(_room(path), target)}

    assert wrong == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_says_what_it_owns(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.requirement("C18")
def test_tools_hold_no_code_of_hooks_or_permissions() -> None:
    assert not ALLOWED["tools"] - set(VALUES)


@pytest.mark.requirement("B41")
def test_loop_and_tools_know_nothing_of_configured_hooks() -> None:
    configured = {"hooks.settings", "hooks.matcher", "hooks.runner", "hooks.gate", "hooks.executors"}
    for room in ("agent", "tools"):
        for path in (PACKAGE / room).rglob("*.py"):
            assert not configured & _imports(ast.parse(path.read_text()))
