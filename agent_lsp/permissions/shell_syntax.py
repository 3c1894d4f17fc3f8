"""Tells a single simple command from everything else.

Invariant: where this returns words, a POSIX shell runs exactly one program with exactly these words. Whatever it is
not sure of is None, and None is never allowed by a rule (F20): it asks.
"""

import re
import shlex

_UNSURE = re.compile(r"[;&|<>(){}`$\n\r\\*?\[\]~!#^\0]")
_ASSIGNMENT = re.compile(r"\w+\+?=")
# What there is to run the words that follow it as another command. A program that can do so by an option among others
# (tar, git, find) or that has a language or tasks of its own (python, awk, make, npx, uv) is a command of its own: its
# rule names it.
_RUNS_OTHERS = frozenset(
    [
        # the shell's own words
        *("!", "[[", "case", "coproc", "do", "done", "elif", "else", "fi", "for", "function", "if", "select", "then"),
        *("time", "until", "while"),
        # builtins that change what later words mean, or read them again
        *(".", "alias", "builtin", "command", "compgen", "complete", "enable", "eval", "exec", "exit", "export", "fc"),
        *("jobs", "mapfile", "readarray", "source", "trap"),
        # shells
        *("ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "mksh", "rbash", "sh", "tcsh", "toybox", "zsh"),
        # the same program with another environment, priority, time or place
        *("arch", "caffeinate", "choom", "chrt", "cpulimit", "direnv", "env", "faketime", "flock", "ionice", "linux32"),
        *("linux64", "nice", "nohup", "numactl", "prlimit", "setarch", "setsid", "start-stop-daemon", "stdbuf"),
        *("systemd-inhibit", "systemd-run", "taskset", "timeout", "unbuffer", "dbus-run-session", "xvfb-run"),
        # as another user, or behind other walls
        *("bwrap", "capsh", "chroot", "doas", "fakeroot", "firejail", "gosu", "nsenter", "pkexec", "proot", "runuser"),
        *("sandbox-exec", "setpriv", "su", "su-exec", "sudo", "unshare"),
        # again and again, at once, later, in another terminal or on another machine
        *("at", "batch", "entr", "hyperfine", "parallel", "rsh", "screen", "script", "sem", "ssh", "sshpass", "tmux"),
        *("watch", "watchexec", "xargs"),
        # under a watching program
        *("gdb", "lldb", "ltrace", "perf", "rr", "strace", "valgrind"),
    ]
)
_LOADER = re.compile(r"ld[\w.-]*\.so(\.\d+)*")  # ld-linux-x86-64.so.2 /bin/rm x
_CONTAINERS = frozenset(["docker", "kubectl", "nerdctl", "podman"])


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
    if not words or _ASSIGNMENT.match(words[0]) or _runs_others(words):
        return None
    return words


def _runs_others(words: tuple[str, ...]) -> bool:
    name = program(words[0])
    in_container = name in _CONTAINERS and not {"exec", "run"}.isdisjoint(words)
    return name in _RUNS_OTHERS or in_container or _LOADER.fullmatch(name) is not None


def program(word: str) -> str:
    """The name of a program without the path to it."""
    return word.rsplit("/", 1)[-1]
