"""The demo: a small project with a real bug, the scripted model, and the same loop, tools and gates as any session.

The script reads, makes an edit that asks and is wrong, tries a write that a hook blocks, and stops. Then the project's
validators run: they are red, the model hears of it, mends it, and stops on green. Whether the bug is gone is judged by
running the tests once more, outside of the agent.
"""

import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_lsp.agent.events import AgentEvent
from agent_lsp.approvals import ApprovalReply, ApprovalRequest, Approver
from agent_lsp.hooks.contract import HookContext, HookEvent, HookResult
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.messages import ToolResult
from agent_lsp.models.scripted import ScriptedModel, Step, calls, says
from agent_lsp.processes import Program, ProgramResult, child_environment, run_program
from agent_lsp.session.assemble import SessionOptions, open_session

FILES = {
    "basket.py": '''"""Prices in cents."""


def total(prices: list[int], discount_percent: int = 0) -> int:
    """The sum of all prices, less the discount, rounded down to whole cents."""
    return sum(prices) * discount_percent // 100
''',
    "test_basket.py": """import unittest

from basket import total


class TotalTest(unittest.TestCase):
    def test_total_without_discount_is_the_sum(self) -> None:
        self.assertEqual(total([250, 150]), 400)

    def test_total_with_discount_takes_it_off(self) -> None:
        self.assertEqual(total([250, 150], discount_percent=25), 300)


if __name__ == "__main__":
    unittest.main()
""",
    ".gitignore": ".pytest_cache/\n.ruff_cache/\n__pycache__/\n",
    "generated.txt": "basket 1.0 (written by the release script)\n",
}

PROMPT = "The tests of this project fail. Find the bug and fix it."
_BUG = "    return sum(prices) * discount_percent // 100"
_HALF = "    import math\n\n    return sum(prices) - discount_percent"
_FIX = "    return sum(prices) * (100 - discount_percent) // 100"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoReport:
    """The agent's answer with the verdict of the project's own tests, and whether they pass now."""

    text: str
    fixed: bool


class _SayYes:
    """Allows everything in the demo's own temporary project."""

    async def ask(self, request: ApprovalRequest) -> ApprovalReply:
        return ApprovalReply(allowed=True)


async def run_demo(
    subscriber: Callable[[AgentEvent], None], *, approver: Approver | None = None, keep: bool = False
) -> DemoReport:
    """Build the project, run the script through a session, and run the project's tests. Removes it unless ``keep``."""
    folder = Path(tempfile.mkdtemp(prefix="agent-lsp-demo-"))
    root, nobody = folder / "basket", folder / "no-settings"
    try:
        root.mkdir()
        await _build_project(root)
        session = open_session(
            SessionOptions(
                root=root,
                approver=approver or _SayYes(),
                model=ScriptedModel(_script()),
                hooks=_protect_generated,
                trusted=True,
                keep=False,
                user_directory=nobody,  # the demo is the same for everybody
            )
        )
        session.subscribe(subscriber)
        async with session.opened(drain=1):
            finished = await session.run(PROMPT)
        tests = await _program(root, sys.executable, "-m", "unittest", "-q")
        fixed = tests.exit_code == 0
        verdict = (
            "The project's own tests pass."
            if fixed
            else f"The project's own tests still fail:\n{tests.stdout.readable(4_000)}"
        )
        place = f"\nThe project is in {root}" if keep else ""
        return DemoReport(text=f"{finished.text or finished.error}\n{verdict}{place}", fixed=fixed)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


async def _build_project(root: Path) -> None:
    for name, text in FILES.items():
        (root / name).write_text(text, encoding="utf-8")
    settings = root / ".agent-lsp" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"validation": {"validators": _validators()}}, indent=2), encoding="utf-8")
    git = shutil.which("git")
    if git is None:
        return  # the demo shows the agent, not git; without git it is a plain folder
    plain = (
        git,
        "-c",
        "core.fsmonitor=",
        "-c",
        "core.hooksPath=",
        "-c",
        "user.name=demo",
        "-c",
        "user.email=demo@demo",
    )
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "A basket with a bug")):
        await _program(root, *plain, *arguments)


async def _program(root: Path, *command: str) -> ProgramResult:
    environment = child_environment(os.environ)
    return await run_program(Program(command=command, cwd=root, environment=environment, timeout=60, merge_stderr=True))


def _protect_generated(hooks: HookRegistry) -> None:
    hooks.register(HookEvent.PRE_TOOL_USE, _block_generated, name="generated-files")


def _block_generated(context: HookContext) -> HookResult:
    """Refuse writes to the file that the project's release script owns."""
    prepared = context.prepared
    if prepared is not None and prepared.name == "write_file" and prepared.arguments["path"] == "generated.txt":
        reason = "generated.txt is managed elsewhere"
        return HookResult(blocking_error=ToolResult.error("hook_blocked", reason))
    return HookResult()


def _script() -> list[Step]:
    return [
        calls(("read_file", {"path": "basket.py"}), ("read_file", {"path": "test_basket.py"})),
        calls(("edit_file", {"path": "basket.py", "edits": [{"old": _BUG, "new": _HALF}]})),
        calls(("write_file", {"path": "generated.txt", "content": "basket 1.1\n"})),
        says("total() charged the discount; now it takes it off."),
        calls(("edit_file", {"path": "basket.py", "edits": [{"old": _HALF, "new": _FIX}]})),
        says("My first change took the percentage off as if it were cents. total() is right now; the validators pass."),
    ]


def _validators() -> list[dict[str, Any]]:
    """ruff and pytest where they are installed beside this program (the ``demo`` extra), else Python's own tests."""
    python = sys.executable
    ruff: dict[str, Any] = {
        "name": "ruff",
        "command": [python, "-m", "ruff", "check", "--output-format", "concise", "."],
    }
    pytest: dict[str, Any] = {
        "name": "pytest",
        "command": [python, "-m", "pytest", "-q", "--no-header"],
        "kind": "test",
    }
    found = [entry for entry in (ruff, pytest) if importlib.util.find_spec(entry["name"]) is not None]
    return found or [{"name": "unittest", "command": [python, "-m", "unittest", "-q"], "kind": "test"}]
