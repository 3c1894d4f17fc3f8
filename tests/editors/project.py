"""A small project with a bug, opened by a user who has nothing but the settings of the tests."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.flows.test_command_line import COMMAND, environment
from tests.support.openai_server import OpenAIServer

EXAMPLES = Path(__file__).parents[2] / "examples"
SCENARIOS = Path(__file__).parent

WRONG = "def double(number):\n    return number + 2\n"
RIGHT = "def double(number):\n    return number * 2\n"
TYPED = "# typed\n"
"""What the user adds at the end of the source, and has not saved."""
TEST = "from doubling import double\n\n\ndef test_double_of_three():\n    assert double(3) == 6\n"
PYTEST = {
    "name": "pytest",
    "command": [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--junitxml={report}"],
    "kind": "test",
    "tool": "pytest",
}

SCENARIO_LIMIT = 60
"""Seconds for one start of an editor; each wait in a scenario has a shorter limit of its own, and says what for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """``root`` is the folder that the editor opens, ``home`` all that is the user's, ``environment`` the editor's."""

    root: Path
    home: Path
    environment: dict[str, str]

    @property
    def source(self) -> Path:
        return self.root / "doubling.py"

    def play(self, command: Sequence[str | Path], scenario: str, stdin: str = "") -> dict[str, Any]:
        """Start an editor in the project and return what the scenario saw. Raises AssertionError where it failed."""
        report = self.home / f"{scenario}.json"
        given = {"AGENT_TEST_SCENARIO": scenario, "AGENT_TEST_REPORT": str(report)}
        done = subprocess.run(
            command,
            cwd=self.root,
            env=self.environment | given,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SCENARIO_LIMIT,
            check=False,
        )
        assert report.exists(), f"the editor ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        seen = json.loads(report.read_text())
        assert isinstance(seen, dict)
        assert "failure" not in seen, f"{seen['failure']}\n{done.stdout}\n{done.stderr}"
        return seen


def make_project(tmp_path: Path, server: OpenAIServer) -> Project:
    """Write the project and the user's settings."""
    root = tmp_path / "work"
    (root / ".agent-lsp").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "doubling.py").write_text(WRONG)
    settings = tmp_path / "config" / "agent-lsp" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"permissions": {"answer_guard_ms": 0}}')  # scripted answers come at once
    private = {
        **{f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "CACHE", "STATE")},
        "XDG_CONFIG_DIRS": str(tmp_path / "nothing"),
        "PATH": os.pathsep.join([str(Path(COMMAND[0]).parent), os.environ["PATH"]]),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }
    return Project(root=root, home=tmp_path, environment=environment(tmp_path, server) | private)


def with_failing_test(project: Project) -> None:
    """Add a test that the bug fails, and settings that run it."""
    (project.root / "test_double.py").write_text(TEST)
    settings = {"validation": {"validators": [PYTEST]}}
    (project.root / ".agent-lsp" / "settings.json").write_text(json.dumps(settings))


def edit(*replacements: tuple[str, str]) -> tuple[str, str, str]:
    """The call of the model that replaces texts in the source."""
    arguments = {"path": "doubling.py", "edits": [{"old": old, "new": new} for old, new in replacements]}
    return ("call_1", "edit_file", json.dumps(arguments))


FIX = edit(("number + 2", "number * 2"))
SPOIL = edit(("number * 2", "number ** 2"))

LIMIT = "\n" * 10 + "LIMIT = 1\n"
"""A second place in the source, too far from the first to be shown with it."""
RAISED = LIMIT.replace("1", "9")
FIX_AND_RAISE = edit(("number + 2", "number * 2"), ("LIMIT = 1", "LIMIT = 9"))
RAISE = edit(("LIMIT = 1", "LIMIT = 9"))
