"""Tells a single simple command from everything else.

Invariant: where this returns words, a POSIX shell runs exactly one program with exactly these words. Whatever it is
not sure of is None, and None is never allowed by a rule (F20): it asks.
"""

import re
import shlex

_UNSURE = re.compile(r"[;&|<>(){}`$\n\r\\*?\[\]~!#^\0]")
_ASSIGNMENT = re.compile(r"\w+\+?=")
_RUNS_OTHERS = frozenset(
    [
        *(
            "!",
            "[[",
            "case",
            "coproc",
            "do",
            "done",
            "elif",
            "else",
            "fi",
            "for",
            "function",
            "if",
            "select",
            "then",
            "until",
            "while",
        ),  # the shell's own words
        *(
            ".",
            "alias",
            "builtin",
            "command",
            "eval",
            "exec",
            "exit",
            "export",
            "fc",
            "source",
            "trap",
        ),  # builtins that change what later words mean, or read them again
        *(
            "bash",
            "busybox",
            "dash",
            "doas",
            "env",
            "ionice",
            "ksh",
            "nice",
            "nohup",
            "parallel",
            "setsid",
            "sh",
            "ssh",
            "su",
            "sudo",
            "time",
            "timeout",
            "watch",
            "xargs",
            "zsh",
        ),  # programs that run the rest of the line
    ]
)


def simple_command(text: str) -> tuple[str, ...] | None:
    """The words of a command line that is certainly one simple command, else None.

    Anything that a shell would expand, redirect, join or hand to another program's own parsing makes it None.
    """
    if _UNSURE.search(text) or not text.isprintable():
        return None
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        return None
    if not words or _ASSIGNMENT.match(words[0]) or words[0] in _RUNS_OTHERS:
        return None
    return words
