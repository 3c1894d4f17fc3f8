"""A simple command is what bash itself runs as exactly these words."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_lsp.permissions.shell_syntax import simple_command


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("git status", ("git", "status")),
        ("  git   log --oneline ", ("git", "log", "--oneline")),
        ("grep 'a b' \"c d\"", ("grep", "a b", "c d")),
        *[
            (text, None)
            for text in (
                "",
                "a; b",
                "a && b",
                "a | b",
                "a & b",
                "a\nb",
                "a > f",
                "a < f",
                "$(a)",
                "a `b`",
                'a "$X"',
                "a $X",
                "A=1 b",
                "{ a; }",
                "(a)",
                "a *.py",
                "a ~",
                "a \\; b",
                "a 'b",
                "! a",
                "sudo a",
                "env a",
                "xargs a",
                "sh -c a",
                "eval a",
                ". a",
                "if a",
                "a # b",
                "a\x00b",
                "a\u2028b",
            )
        ],
    ],
)
def test_simple_command_gives_words_or_none(text: str, words: tuple[str, ...] | None) -> None:
    assert simple_command(text) == words


@pytest.mark.requirement("F20")
@pytest.mark.parametrize(
    "runner",
    [
        *("/usr/bin/env", "/bin/bash -c", "/usr/bin/sudo", "./sudo", "../bin/timeout 5"),
        *("stdbuf -o0", "chroot /", "flock f", "strace", "ltrace", "gdb --args", "setpriv", "unshare", "nsenter"),
        *("taskset 1", "ionice", "chrt 1", "setarch", "parallel", "watch", "script -c", "busybox", "toybox"),
        *("doas", "su -c", "runuser -u x", "systemd-run", "ssh host", "xvfb-run", "/lib64/ld-linux-x86-64.so.2"),
        *("compgen -C", "jobs -x", "docker exec box", "docker compose run box", "/usr/bin/podman run image"),
    ],
)
def test_what_runs_another_program_is_no_simple_command(runner: str) -> None:
    assert simple_command(f"{runner} rm x") is None


@pytest.mark.requirement("F20")
@pytest.mark.parametrize("text", ["docker ps", "ls env", "cat /usr/bin/env", "git run", "python -m pytest", "uv run x"])
def test_a_command_of_its_own_is_simple(text: str) -> None:
    assert simple_command(text) == tuple(text.split())


@pytest.mark.requirement("F20")
@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="ab '\"\\;|&$(){}<>*?~#=!`\n\t-", min_size=1, max_size=12))
def test_simple_command_is_what_bash_runs(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    words = simple_command(f"show {text}")
    if words is None:
        return
    folder = tmp_path_factory.getbasetemp() / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / "show"
    if not program.exists():
        program.write_text('#!/bin/sh\nprintf "%s\\0" show "$@"\n')
        program.chmod(0o755)
    ran = subprocess.run(
        ["bash", "-c", f"show {text}"],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        cwd=Path("/"),
        check=True,
    )

    assert tuple(ran.stdout.decode().split("\0")[:-1]) == words
