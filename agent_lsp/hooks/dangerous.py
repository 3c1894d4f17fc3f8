"""Recognises shell commands that destroy a system: judged by the words of each simple command, not by the text, so
that a mention in quotes is no alarm and a spelling in pieces is no escape (C14).

It knows what is listed here and no more; it is a net under the permission policy, not in its place.
"""

import re
import shlex
from collections.abc import Iterator

_SEPARATORS = frozenset(";&|()\n")
_WRAPPERS = {"sudo": 0, "doas": 0, "command": 0, "exec": 0, "nohup": 0, "time": 0, "env": 0, "nice": 0, "timeout": 1}
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_DEVICE = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|mapper/|dm-|md)")
_FORK_BOMB = re.compile(r"(?P<name>[\w:.]+)\s*\(\s*\)\s*\{\s*(?P=name)\s*\|\s*(?P=name)\s*&\s*\}\s*;\s*(?P=name)(?!\w)")
_LAST_RESORT = re.compile(r"\brm\s+(-\S+\s+)*-\S*[rR]\S*\s+(-\S+\s+)*[\"']?/+\*?([\"'\s;&|)]|$)|\bmkfs\b|\bof=/dev/")
_MAX_NESTING = 5


def danger_in(command: str, nesting: int = 0) -> str | None:
    """Why a shell command must not run, or None where nothing of the list is in it."""
    if _FORK_BOMB.search(command):
        return "a fork bomb"
    try:
        commands = list(_simple_commands(command))
    except ValueError:  # quotes that do not close: no words to judge
        return "a command that destroys the system" if _LAST_RESORT.search(command) else None
    for words in commands:
        reason = _danger_of(_unwrap(words), nesting)
        if reason is not None:
            return reason
    return None


def _simple_commands(command: str) -> Iterator[list[str]]:
    """The words of each simple command, quotes removed."""
    lexer = shlex.shlex(command.replace("\\\n", ""), posix=True, punctuation_chars=";&|()\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    for token in lexer:
        if token and set(token) <= _SEPARATORS:
            yield words
            words = []
        else:
            words.append(token)
    yield words


def _unwrap(words: list[str]) -> list[str]:
    """Strip assignments, group braces, keywords, and wrappers with their options."""
    while words:
        head = words[0].rsplit("/", 1)[-1]
        if re.match(r"[A-Za-z_]\w*=", words[0]) or head in {"{", "then", "do", "else", "!", "if", "while", "until"}:
            words = words[1:]
        elif head in _WRAPPERS:
            words = words[1:]
            while words and words[0].startswith("-"):
                takes_value = words[0] in {"-u", "-g", "-n", "-s", "-k"}
                words = words[2 if takes_value else 1 :]
            words = words[_WRAPPERS[head] :]
        else:
            return [head, *words[1:]]
    return words


def _danger_of(words: list[str], nesting: int) -> str | None:
    if not words:
        return None
    name, arguments = words[0], words[1:]
    flags, targets = _split_flags(arguments)
    if name in _SHELLS and "c" in flags and targets and nesting < _MAX_NESTING:
        return danger_in(targets[0], nesting + 1)
    if name == "eval" and nesting < _MAX_NESTING:
        return danger_in(" ".join(arguments), nesting + 1)
    if name == "rm" and flags & {"r", "R", "recursive"} and any(map(_is_root_or_home, targets)):
        return "removes the root or home directory"
    if name == "mkfs" or name.startswith("mkfs."):
        return "formats a file system"
    if name == "dd" and any(_DEVICE.match(word.removeprefix("of=")) for word in arguments if word.startswith("of=")):
        return "overwrites a device"
    if name in {"chmod", "chown"} and flags & {"R", "recursive"} and any(map(_is_root, targets)):
        return "changes the mode or owner of the whole system"
    return None


def _split_flags(arguments: list[str]) -> tuple[set[str], list[str]]:
    """Single-letter and long options as a set, and everything else; all is a target after ``--``."""
    flags: set[str] = set()
    targets: list[str] = []
    for index, word in enumerate(arguments):
        if word == "--":
            return flags, targets + arguments[index + 1 :]
        if word.startswith("--"):
            flags.add(word[2:])
        elif word.startswith("-") and len(word) > 1:
            flags.update(word[1:])
        else:
            targets.append(word)
    return flags, targets


def _is_root(target: str) -> bool:
    """Whether a word names the root directory or everything in it: ``/``, ``//``, ``/.``, ``/../``, ``/*``."""
    return target.startswith("/") and all(part in {"", ".", "..", "*"} for part in target.split("/"))


def _is_root_or_home(target: str) -> bool:
    home = re.fullmatch(r"(~|\$HOME|\$\{HOME\})/*\*?", target)
    return _is_root(target) or home is not None
