"""``@path`` in a prompt."""

from pathlib import Path

import pytest

from agent_lsp.agent import mentions
from agent_lsp.agent.mentions import mentioned, shown
from agent_lsp.approvals import PermissionBehavior
from agent_lsp.permissions.policy import Policy
from agent_lsp.permissions.rules import parse_rule
from agent_lsp.workspace import Workspace
from tests.support.harness import Harness


def harness(tmp_path: Path, *denied: str) -> Harness:
    root = tmp_path / "work"
    for name, text in {"a.py": "x = 1\n", "sub/b c.py": "y = 2\n", "big.txt": "z" * 1_000, ".env": "KEY=1"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "bin.dat").write_bytes(b"\0\1\2")
    (tmp_path / "outside.txt").write_text("SECRET")
    (root / "link").symlink_to(tmp_path / "outside.txt")
    rules = [parse_rule(PermissionBehavior.DENY, text, "test") for text in denied]
    return Harness(root, [], policy=Policy(workspace=Workspace(root), rules=rules))


@pytest.mark.parametrize(
    ("prompt", "files"),
    [
        ("@a.py", ["a.py"]),
        ("look at @a.py, then at @sub/../a.py.", ["a.py"]),
        ('(@a.py) and @"sub/b c.py"!', ["a.py", "sub/b c.py"]),
        ("@{root}/a.py", ["a.py"]),
        ("@nothing.py @sub @decorator me@a.py @@a.py `@a.py` a/@a.py @", []),
        ("@../outside.txt @link @~/x @/etc/passwd", []),
        ("@\0 @" + "x" * 5000, []),
    ],
)
def test_a_mention_is_a_file_of_the_workspace_and_else_a_text(prompt: str, files: list[str], tmp_path: Path) -> None:
    made = harness(tmp_path)
    found = mentioned(made.agent, prompt.replace("{root}", str(tmp_path / "work")))
    assert [path.display for path in found] == files


async def test_mentioned_files_are_shown_as_the_tool_reads_them(tmp_path: Path) -> None:
    made = harness(tmp_path)
    [message] = await shown(made.agent, mentioned(made.agent, '@a.py @"sub/b c.py"'))
    assert message.injected
    assert message.content == (
        "<system-reminder>\nThe files that the user mentions:\n\n"
        "a.py:\n1\tx = 1\n\nsub/b c.py:\n1\ty = 2\n</system-reminder>"
    )


async def test_a_mention_tells_why_a_file_is_not_shown(tmp_path: Path) -> None:
    made = harness(tmp_path, "read(.env)")
    [message] = await shown(made.agent, mentioned(made.agent, "@.env @bin.dat"))
    assert ".env:\nnot shown, a rule denies reading it" in message.content
    assert "bin.dat:\nnot shown, bin.dat is not a text file" in message.content
    assert "KEY" not in message.content


async def test_mentions_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = harness(tmp_path)
    monkeypatch.setattr(mentions, "MAX_CHARACTERS", 900)
    [message] = await shown(made.agent, mentioned(made.agent, "@big.txt @a.py"))
    assert "big.txt:\nnot shown, the files before it fill the room" in message.content
    assert "a.py:\n1\tx = 1" in message.content
    assert await shown(made.agent, []) == ()
