"""Programs and builtins that run the words behind them: what these words come to (F20).

Invariant: a program of this kind is never taken for an end in itself. Where an option is not known here, or what runs
is decided elsewhere, that is unclear.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from agent_lsp.permissions.shell_words import HOLES, MANY, Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """What a command runs besides itself: other commands, and scripts for a shell.

    One that is ``transparent`` does nothing of its own, so that what it runs decides.
    """

    commands: tuple[Words, ...] = ()
    scripts: Words = ()
    unclear: Words = ()
    transparent: bool = False


_NOTHING = Behind()
_ASSIGNMENT = re.compile(r"\w+\+?=.*", re.DOTALL)


def program(word: str) -> str:
    """The name of a program without the path to it."""
    return word.rsplit("/", 1)[-1]


def behind(words: Words) -> Behind:
    """What stands behind the first word, whose text is known."""
    name = program(words[0])
    if (read := _READERS.get(name)) is not None:
        return read(words)
    if name in _OPAQUE or _LOADER.fullmatch(name) or (name in _CONTAINERS and not _IN_CONTAINER.isdisjoint(words)):
        return _unclear(f"{name} runs what stands behind it")
    return _NOTHING


def _unclear(reason: str) -> Behind:
    return Behind(unclear=(reason,), transparent=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The options before the inner command: letters with and without a value, and words that must follow them."""

    flags: str = ""
    valued: str = ""
    long: frozenset[str] = frozenset()
    operands: int = 0

    def skip(self, words: Words) -> int | None:
        """Where the inner command begins; None where an option is not known."""
        place = 1
        while place < len(words) and words[place].startswith("-") and words[place] != "-":
            word = words[place]
            place += 1
            if word == "--":
                break
            if HOLES.search(word):
                return None
            if word.startswith("--"):
                if word.partition("=")[0] not in self.long:
                    return None
                continue
            for index, letter in enumerate(word[1:], 2):
                if letter in self.valued:
                    place += index == len(word)
                    break
                if letter not in self.flags:
                    return None
        return place + self.operands


def _transparent(options: _Options) -> Callable[[Words], Behind]:
    """A wrapper that only changes priority, time or the like."""

    def read(words: Words) -> Behind:
        place = options.skip(words)
        if place is None or any(HOLES.search(word) for word in words[1:place]):
            return _unclear(f"the options of {words[0]} are not known")
        inner = words[place:]
        return Behind(commands=(inner,), transparent=True) if inner else _NOTHING

    return read


def _with_itself(options: _Options, *, more: Words = ()) -> Callable[[Words], Behind]:
    """A wrapper that needs leave of its own; ``more`` are words that it adds."""

    def read(words: Words) -> Behind:
        place = options.skip(words)
        if place is None:
            return Behind(unclear=(f"the options of {words[0]} are not known",))
        inner = words[place:]
        while inner and _ASSIGNMENT.fullmatch(inner[0]):
            return Behind(unclear=(f"{words[0]} sets variables",))
        return Behind(commands=((*inner, *more),)) if inner else _NOTHING

    return read


def _env(words: Words) -> Behind:
    place = _Options(flags="i0", long=frozenset(["--ignore-environment", "--null"])).skip(words)
    if place is None:
        return _unclear("the options of env are not known")
    inner = words[place:]
    if inner and _ASSIGNMENT.fullmatch(inner[0]):
        return _unclear("env sets variables, which may change what programs do")
    return Behind(commands=(inner,), transparent=True) if inner else _NOTHING


def _command(words: Words) -> Behind:
    if len(words) > 1 and re.fullmatch(r"-[pvV]*[vV][pvV]*", words[1]):
        return _NOTHING  # tells what a name means
    return _transparent(_Options(flags="p"))(words)


def _shell(words: Words) -> Behind:
    """A shell with a script in its words, in a file, or in its input."""
    for place, word in enumerate(words[1:], 1):
        if HOLES.search(word):
            break
        if word.startswith("-") and len(word) > 1 and not word.startswith("--"):
            if set(word[1:]) <= set("ceuxl") and "c" in word:
                script = words[place + 1] if place + 1 < len(words) else ""
                return _script(script)
            if set(word[1:]) <= set("eux"):
                continue
        elif not word.startswith(("-", "+")):
            return _NOTHING  # a file, which the rule names
        break
    return _unclear(f"{words[0]} reads what it runs from elsewhere")


def _script(text: str) -> Behind:
    if HOLES.search(text):
        return _unclear("it is computed what a shell runs")
    return Behind(scripts=(text,), transparent=True)


def _eval(words: Words) -> Behind:
    return _script(" ".join(words[1:]))


def _trap(words: Words) -> Behind:
    operands = [word for word in words[1:] if word != "--"]
    if not operands or operands[0] in ("-", "-l", "-p", ""):
        return _NOTHING
    return _script(operands[0])


def _watch(words: Words) -> Behind:
    place = _Options(flags="bcdetgx", valued="n").skip(words)
    return _unclear("the options of watch are not known") if place is None else _script(" ".join(words[place:]))


def _find(words: Words) -> Behind:
    commands, unclear = list[Words](), list[str]()
    places = [index for index, word in enumerate(words) if word in ("-exec", "-execdir", "-ok", "-okdir")]
    for place in places:
        rest = words[place + 1 :]
        end = next(
            (index for index, word in enumerate(rest) if word == ";" or rest[index - 1 : index + 1] == ("{}", "+")),
            None,
        )
        if end is None:
            unclear.append("the end of what find runs is not clear")
        else:
            commands.append(tuple(word.replace("{}", MANY) for word in rest[:end] if word != "+"))
    if any(MANY in word for word in words[1:]):
        unclear.append("it is computed what find does")
    return Behind(commands=tuple(filter(None, commands)), unclear=tuple(unclear))


def _git(words: Words) -> Behind:
    """Settings for one call can name programs (F22)."""
    runs = ("-c", "--exec-path", "--config-env")
    if any(
        word.partition("=")[0] in runs or (word.startswith("-c") and not word.startswith("--"))
        for word in _before_subcommand(words)
    ):
        return Behind(unclear=("git is given settings, which may name programs",))
    return _NOTHING


def _before_subcommand(words: Words) -> Words:
    place = 1
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1
    return words[1:place]


_XARGS = _Options(
    flags="0oprtx",
    valued="adEIiLlnPs",
    long=frozenset(["--null", "--no-run-if-empty", "--verbose", "--max-args", "--max-procs", "--delimiter"]),
)
_SUDO = _Options(flags="bEHknPS", valued="ugpCTDhRr", long=frozenset(["--non-interactive", "--preserve-env", "--user"]))

_SHELLS = ("ash", "bash", "dash", "ksh", "mksh", "sh", "zsh")
_READERS: Mapping[str, Callable[[Words], Behind]] = MappingProxyType(
    {
        **dict.fromkeys(_SHELLS, _shell),
        "builtin": _transparent(_Options()),
        "busybox": _transparent(_Options()),
        "command": _command,
        "doas": _with_itself(_Options(flags="n", valued="u")),
        "env": _env,
        "eval": _eval,
        "exec": _transparent(_Options(flags="cl", valued="a")),
        "find": _find,
        "git": _git,
        "ionice": _transparent(_Options(flags="t", valued="cn")),
        "nice": _transparent(_Options(valued="n", long=frozenset(["--adjustment"]))),
        "nohup": _transparent(_Options()),
        "setsid": _transparent(_Options(flags="cfw")),
        "stdbuf": _transparent(_Options(valued="ioe", long=frozenset(["--input", "--output", "--error"]))),
        "sudo": _with_itself(_SUDO),
        "time": _transparent(_Options(flags="p")),
        "timeout": _transparent(
            _Options(
                flags="v",
                valued="ks",
                long=frozenset(["--foreground", "--kill-after", "--preserve-status", "--signal", "--verbose"]),
                operands=1,
            )
        ),
        "toybox": _transparent(_Options()),
        "trap": _trap,
        "watch": _watch,
        "xargs": _with_itself(_XARGS, more=(MANY,)),
    }
)
# What else there is to run words, or a file, or something kept elsewhere, as a command. A program that can do so by an
# option among others (tar) or that has a language or tasks of its own (python, awk, make, npx, uv) is a command of
# its own: its rule names it.
_OPAQUE = frozenset(
    [
        # the shell's own words, where they are no syntax
        *("!", "[[", "case", "do", "done", "elif", "else", "fi", "for", "function", "if", "select", "then"),
        *("until", "while", ".", "source"),
        # shells that speak another language
        *("csh", "fish", "rbash", "tcsh"),
        # the same program with another environment, priority or place
        *("arch", "caffeinate", "choom", "chrt", "cpulimit", "direnv", "faketime", "flock", "linux32", "linux64"),
        *("numactl", "prlimit", "setarch", "start-stop-daemon", "systemd-inhibit", "systemd-run", "taskset"),
        *("unbuffer", "dbus-run-session", "xvfb-run"),
        # as another user, or behind other walls
        *("bwrap", "capsh", "chroot", "fakeroot", "firejail", "gosu", "nsenter", "pkexec", "proot", "runuser"),
        *("sandbox-exec", "setpriv", "su", "su-exec", "unshare"),
        # again and again, at once, later, in another terminal or on another machine
        *("at", "batch", "entr", "hyperfine", "parallel", "rsh", "screen", "script", "sem", "ssh", "sshpass", "tmux"),
        "watchexec",
        # under a watching program
        *("gdb", "lldb", "ltrace", "perf", "rr", "strace", "valgrind"),
    ]
)
_LOADER = re.compile(r"ld[\w.-]*\.so(\.\d+)*")  # ld-linux-x86-64.so.2 /bin/rm x
_CONTAINERS = frozenset(["docker", "kubectl", "nerdctl", "podman"])
_IN_CONTAINER = frozenset(["exec", "run"])
