"""Which commands certainly change no file of a workspace, so that nothing needs to be kept before them.

Invariant: what runs anything that is not listed here, or is not clear, may change anything.
"""

from agent_lsp.permissions.shell_syntax import parse
from agent_lsp.permissions.shell_words import HOLES, Words

_PROGRAMS = frozenset(
    [
        *("[", "basename", "cat", "cd", "cksum", "cmp", "cut", "df", "diff", "dirname", "du", "echo", "egrep", "expr"),
        *("false", "fgrep", "file", "grep", "head", "id", "ls", "md5sum", "nl", "printf", "pwd", "readlink"),
        *("realpath", "sha1sum", "sha256sum", "stat", "tail", "test", "true", "type", "uname", "wc", "which", "whoami"),
    ]
)
_GIT = frozenset(["cat-file", "log", "ls-files", "ls-tree", "rev-list", "rev-parse", "show-ref", "status"])


def is_read_only(command: str | None) -> bool:
    """Whether a command line certainly leaves all files as they are."""
    line = parse(command or "")
    if not line.commands or line.unclear or line.writes:
        return False
    return all(_only_reads(each.words) for each in line.commands)


def _only_reads(words: Words) -> bool:
    """Whether a simple command does; a path may lead to another program of that name."""
    if words[0] == "git":
        plain = not any(word.startswith("--output") or HOLES.search(word) for word in words)
        return plain and len(words) > 1 and words[1] in _GIT
    return words[0] in _PROGRAMS
