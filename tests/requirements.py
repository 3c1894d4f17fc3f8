"""The manifest of the specification's lines (``requirements.toml``) against the tests that carry them.

``python -m tests.requirements`` prints what is open and fails where manifest and tests disagree.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One line of the specification; ``issue`` is the number in the title of the issue that owns it."""

    id: str
    issue: int
    done: bool
    text: str


def manifest() -> dict[str, Requirement]:
    entries = tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8"))
    return {id_: Requirement(id=id_, **entry) for id_, entry in entries.items()}


def carried() -> set[str]:
    """Every id that a ``requirement(...)`` marker of a test names."""
    return {id_ for path in TESTS.rglob("test_*.py") for id_ in _marked(ast.parse(path.read_text(encoding="utf-8")))}


def _marked(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
            yield from (str(argument.value) for argument in node.args if isinstance(argument, ast.Constant))


def disagreements() -> list[str]:
    """What is wrong: a done line without a test, a test for a line that does not exist."""
    lines, tests = manifest(), carried()
    untested = [
        f"{id_} is marked done and no test carries it" for id_, line in lines.items() if line.done and id_ not in tests
    ]
    return untested + [f"a test carries {id_}, which is not in the manifest" for id_ in sorted(tests - lines.keys())]


def main() -> int:
    lines = manifest()
    for issue in sorted({line.issue for line in lines.values()}):
        mine = [line for line in lines.values() if line.issue == issue]
        still_open = [line for line in mine if not line.done]
        print(f"issue {issue}: {len(mine) - len(still_open)} of {len(mine)} done")
        for line in still_open:
            print(f"  {line.id:14} {line.text}")
    wrong = disagreements()
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
