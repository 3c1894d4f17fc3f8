#!/usr/bin/env python3
"""PreToolUse on shell: refuse a `git push` to a protected branch. The protected branches are the arguments.

The command is read, not run: a push must name its branch in plain words, and one that cannot be read is refused.
"""

import fnmatch
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import PurePath

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "eval", "ssh", "su")  # their arguments are commands again
GIT_OPTIONS = ("-C", "-c", "--git-dir", "--work-tree", "--namespace")  # these and the next ones take a value
PUSH_OPTIONS = ("-o", "--push-option", "--receive-pack", "--exec")
SAY_THE_BRANCH = "say the branch in plain words: git push REMOTE BRANCH"


class Refused(Exception):
    """The push must not run; the message says why."""


def simple_commands(text: str) -> Iterator[list[str]]:
    """The words of each simple command, also of those in a substitution or for a shell.

    Raises ValueError for an open quote.
    """
    lexer = shlex.shlex(text.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=";|&()<>`")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    for word in lexer:
        if re.fullmatch(r"[;|&()`]+", word):
            yield words
            words = []
            continue
        words.append(word)
        if re.search(r"[$`]", word) or any(PurePath(earlier).name in SHELLS for earlier in words[:-1]):
            yield from simple_commands(word) if re.search(r"\s", word) else ()
    yield words


def pushes(words: list[str]) -> Iterator[list[str]]:
    """The arguments of each `git push` among the words of one command, behind whatever wrapper."""
    for index, word in enumerate(words):
        if PurePath(word).name == "git":
            rest = without_options(words[index + 1 :], until_word=True)
            if rest[:1] == ["push"]:
                yield rest[1:]


def without_options(words: list[str], *, until_word: bool = False) -> list[str]:
    """The words that are no options and no values of options; with `until_word` only in front of the first."""
    kept: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            kept.append(word)
            if until_word:
                return kept + rest
        elif word in GIT_OPTIONS + PUSH_OPTIONS:
            del rest[:1]
    return kept


def check(arguments: list[str], protected: list[str]) -> None:
    for option in ("--all", "--branches", "--mirror"):
        if option in arguments:
            raise Refused(f"git push {option} reaches every branch; {SAY_THE_BRANCH}")
    branches = without_options(arguments)[1:]
    if not branches:
        raise Refused(SAY_THE_BRANCH)
    for refspec in branches:
        branch = refspec.lstrip("+").rpartition(":")[2].removeprefix("refs/heads/").removeprefix("heads/")
        if not branch or branch in ("HEAD", "@") or re.search(r"[$*?{}\[\]~^]", branch):
            raise Refused(f"where {refspec!r} goes cannot be told; {SAY_THE_BRANCH}")
        for pattern in protected:
            if fnmatch.fnmatchcase(branch, pattern):
                raise Refused(f"{branch} is protected; push another branch and open a pull request")


def main() -> int:
    command = json.load(sys.stdin)["args"]["command"]
    try:
        for words in simple_commands(command):
            for arguments in pushes(words):
                check(arguments, sys.argv[1:])
    except ValueError:
        print(f"the command cannot be read; {SAY_THE_BRANCH}", file=sys.stderr)
        return 2
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    return 0


sys.exit(main())
