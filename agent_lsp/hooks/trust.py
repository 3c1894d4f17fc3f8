"""What would be executed, as something that a user can agree to.

Invariant: trust is by content. Whatever changes what runs, the text in the settings or a script of the workspace that
it names, changes the digest (B42, F70).
"""

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, takewhile
from pathlib import Path, PurePath
from typing import Protocol

from agent_lsp.hooks.settings import ConfiguredHook
from agent_lsp.workspace import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustItem:
    """One thing that settings would execute, or widen."""

    text: str
    place: Place
    digest: str

    def __str__(self) -> str:
        return f"{self.text}  ({self.place})"


class Trust(Protocol):
    """What the user has agreed to."""

    def covers(self, digest: str) -> bool:
        """Whether content with this digest was approved."""
        ...

    def grant(self, items: Sequence[TrustItem]) -> None:
        """Remember an approval."""
        ...


def hook_item(hook: ConfiguredHook, root: Path) -> TrustItem:
    """A hook of a workspace as something to be trusted; a command for that workspace alone, whose files it runs."""
    runs = (str(root), *script_digests(hook.target, root)) if hook.type == "command" else ()
    exact = [hook.event, hook.type, hook.target, hook.headers, hook.place.source, *runs]
    digest = hashlib.sha256(json.dumps(exact).encode()).hexdigest()
    return TrustItem(text=f"{hook.event} {hook.type}: {hook.text}", place=hook.place, digest=digest)


def script_digests(command: str | tuple[str, ...], root: Path) -> Iterator[str]:
    """Digests of the workspace's own scripts in a command: whoever changes one of them changes the hook.

    Files that a command only writes to or reads must not count: they change with every run.
    """
    words, names = _parsed(command)
    inside = str(root)
    directories = _directories(words, inside)
    for name, is_run in names:
        for directory in directories:
            path = os.path.join(directory, name)  # noqa: PTH118 (Path costs more than the rest, before each hook; P6)
            if _is_inside(path, inside) and os.path.isfile(path):  # noqa: PTH113
                yield from _script_digest(Path(path), is_run=is_run)


_SCRIPT_SUFFIXES = frozenset(
    {".awk", ".bash", ".bat", ".cjs", ".cmd", ".fish", ".js", ".lua", ".mjs", ".php", ".pl", ".ps1", ".py", ".rb"}
    | {".sed", ".sh", ".ts", ".zsh"}
)


def _script_digest(path: Path, *, is_run: bool) -> Iterator[str]:
    """The digest of a file, if that is a script or will be run as one."""
    try:
        if is_run or path.suffix in _SCRIPT_SUFFIXES or path.stat().st_mode & 0o111:
            yield hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        yield "unreadable"


def _is_inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


# --- the words of a command


@lru_cache(maxsize=256)  # a hook's command is looked at before each run of it
def _parsed(command: str | tuple[str, ...]) -> tuple[tuple[str, ...], tuple[tuple[str, bool], ...]]:
    """The distinct words of a command, and the names of files in it with whether they are run."""
    words = _words(command)
    return tuple(dict.fromkeys(words)), tuple(dict.fromkeys(_named(words)))


_END = ";"  # stands between two simple commands
_HERE = re.compile(
    r"\$\{?(CLAUDE_PROJECT_DIR|PWD)\b\}?|(\$\(|`)\s*(pwd|git rev-parse --show-toplevel)\s*[)`]"  # the root, in words
)
_BREAK = re.compile(r"[;&|()>`\n]+")


def _words(command: str | tuple[str, ...]) -> list[str]:
    """The words of a command, those of a shell's command line both in pieces and as the shell would quote them."""
    if isinstance(command, tuple):
        inner = [word for text in command if re.search(r"[^\w./=-]", text) for word in (_END, *_words(text))]
        return [*command, *inner]
    line = _HERE.sub(".", command.replace("\\\n", " "))
    pieces = re.findall(r"[^\s<\"'$;]+|;", _BREAK.sub(" ; ", line.replace('"."', ".")))
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>`\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        quoted = [_END if _BREAK.fullmatch(word) else word for word in lexer if word.strip("<")]
    except ValueError:  # an open quote
        quoted = []
    return [*pieces, _END, *quoted]


_MOST_DIRECTORIES = 20


def _directories(words: Iterable[str], root: str) -> list[str]:
    """Where a command's words may count from: the root, and each directory that it could change to."""
    found = [root]
    for word in words:
        for before in tuple(found):
            path = os.path.normpath(os.path.join(before, word.rpartition("=")[2]))  # noqa: PTH118
            if len(found) < _MOST_DIRECTORIES and path not in found and _is_inside(path, root) and os.path.isdir(path):  # noqa: PTH112
                found.append(path)
    return found


# --- what a command runs


def _named(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each name of a file in a command, and whether that file is run whatever it looks like."""
    before = _END
    for index, word in enumerate(words):
        yield word, False
        if "=" in word:  # VARIABLE=./script, --option=./script
            yield word.rpartition("=")[2], False
        arguments = takewhile(lambda argument: argument != _END, islice(words, index + 1, None))
        for name in _run_by(word, before, arguments):
            yield name, True
        before = word


_SHELL_WORDS = frozenset({_END, "if", "then", "else", "elif", "while", "until", "do", "{", "!"})
_RULES: dict[str, tuple[str, ...]] = {
    "just": ("justfile", "Justfile", ".justfile"),
    "nox": ("noxfile.py",),
    "pre-commit": (".pre-commit-config.yaml",),
    "tox": ("tox.ini",),
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
}
_WITH_SCRIPT_OPTION = frozenset({"awk", "gawk", "gmake", "just", "make", "mawk", "nawk", "php", "sed"})
_SCRIPT_OPTION = re.compile(r"(?:-\w*?f|--file=?|--makefile=?)(.*)")
_MODULE = re.compile(r"-[bBdEiIOPqRsSuvx]*m(.*)")


@dataclass(frozen=True, slots=True)
class _Interpreter:
    """A kind of program that runs the first argument which is no option.

    After an option that fits ``code`` there is no script; one that fits ``valued`` has the next word as its value.
    """

    name: re.Pattern[str]
    code: re.Pattern[str]
    valued: re.Pattern[str]


_INTERPRETERS = tuple(
    _Interpreter(*map(re.compile, patterns))
    for patterns in (
        (r"(ba|da|fi|k|z)?sh", r"-\w*c", r"[-+]\w*[oO]|--(rc|init-)file"),
        (r"(python|pypy)[\d.]*", r"-[bBdEiIOPqRsSuvx]*[cm].*", r"-[WX]"),
        (r"(bun|deno|lua|node|nodejs|perl|php|ruby)[\d.]*", r"-\w*[eEp]|--(eval|print)", r"-[dIr]"),
    )
)


def _run_by(word: str, before: str, arguments: Iterator[str]) -> Iterator[str]:
    """The names of the files that a program takes its orders from."""
    program = PurePath(word).name
    yield from _RULES.get(program, ())
    if word == "source" or (word == "." and before in _SHELL_WORDS):
        yield from islice(arguments, 1)
    elif program in _WITH_SCRIPT_OPTION:
        yield from _option_values(_SCRIPT_OPTION, arguments)
    for kind in _INTERPRETERS:
        if kind.name.fullmatch(program):
            yield from _script(kind, arguments)


def _option_values(option: re.Pattern[str], arguments: Iterator[str]) -> Iterator[str]:
    for argument in arguments:
        if found := option.fullmatch(argument):
            yield found[1] or next(arguments, "")


def _script(kind: _Interpreter, arguments: Iterator[str]) -> Iterator[str]:
    for argument in arguments:
        if kind.code.fullmatch(argument):
            if found := _MODULE.fullmatch(argument):
                yield from _module(found[1] or next(arguments, ""))
            return
        if kind.valued.fullmatch(argument):
            next(arguments, None)
        elif not argument.startswith(("-", "+")):
            yield argument
            return


def _module(name: str) -> Iterator[str]:
    """The files that Python runs for a module: the packages around it, then itself."""
    path = name.replace(".", "/")
    yield from (f"{path}.py", f"{path}/__main__.py", f"{path}/__init__.py")
    yield from (f"{parent}/__init__.py" for parent in PurePath(path).parents if parent.name)
