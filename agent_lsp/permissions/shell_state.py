"""What builtins and assignments do to the shell itself, so that later words may mean something else (F21).

Each function answers with the reasons for which a line is not clear; none where there is nothing to it.
"""

import re
from collections.abc import Iterator

from agent_lsp.permissions.shell_words import GLOB, MANY, Words

_OWN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_SPECIAL_NAME = re.compile(r".*_proxy|npm_config_.*|histchars|auto_resume")
_HARMLESS_NAME = re.compile(
    r"CI|NO_COLOR|FORCE_COLOR|CLICOLOR(_FORCE)?|TERM|TZ|LANG|LC_[A-Z]+|COLUMNS|LINES|RUST_BACKTRACE"
)
_CHANGES_LATER_WORDS = frozenset(
    [
        *("alias", "bind", "compgen", "complete", "compopt", "coproc", "enable", "fc", "getopts", "hash"),
        *("history", "jobs", "let", "local", "mapfile", "readarray", "set", "shopt", "unalias"),
    ]
)
_EVALUATES = frozenset(["printf", "test", "wait"])
_CODE_IN_TEXT = re.compile(r"[`\[]|\$[({]")  # which bash evaluates where it expects a number or a variable's name
_READ_OPTIONS = re.compile(r"-[rs]+")


def setting(name: str, *, exported: bool) -> Iterator[str]:
    """A variable is set. Programs and bash listen to many; to one of the line's own only what it is passed to."""
    own = not exported and _OWN_NAME.fullmatch(name) and not _SPECIAL_NAME.fullmatch(name)
    if not own and not _HARMLESS_NAME.fullmatch(name):
        yield f"it sets {name or 'a part of a variable'}, which may change what programs do"


def calling(words: Words) -> Iterator[str]:
    """A builtin is called."""
    name, operands = words[0], words[1:]
    if name in _CHANGES_LATER_WORDS:
        yield f"{name} may change what later words mean"
    elif name == "read":
        for word in operands:
            if not _READ_OPTIONS.fullmatch(word):
                yield from setting(word, exported=False)
    elif name in _EVALUATES:
        computed = any(MANY in word or GLOB in word or _CODE_IN_TEXT.search(word) for word in operands)
        if computed or {"-v", "-R", "-p"} & set(operands):
            yield f"{name} may evaluate its words"
