"""Which commands certainly change no file of a workspace, so that nothing needs to be kept before them.

Invariant: what is not surely one simple command of a program listed here may change anything.
"""

from agent_lsp.permissions.shell_syntax import program, simple_command

_PROGRAMS = frozenset(
    [
        *(
            "[",
            "basename",
            "cat",
            "cksum",
            "cmp",
            "cut",
            "df",
            "diff",
            "dirname",
            "du",
            "echo",
            "expr",
            "false",
            "file",
        ),
        *("grep", "egrep", "fgrep", "head", "id", "ls", "md5sum", "nl", "printf", "pwd", "readlink", "realpath"),
        *("sha1sum", "sha256sum", "stat", "tail", "test", "true", "type", "uname", "wc", "which", "whoami"),
    ]
)
_GIT = frozenset(["cat-file", "log", "ls-files", "ls-tree", "rev-list", "rev-parse", "show-ref", "status"])


def is_read_only(command: str | None) -> bool:
    """Whether a command line certainly leaves all files as they are."""
    words = simple_command(command) if command is not None else None
    if words is None or words[0] != program(words[0]):  # a path may lead to another program of that name
        return False
    if words[0] == "git":
        return len(words) > 1 and words[1] in _GIT and not any(word.startswith("--output") for word in words)
    return words[0] in _PROGRAMS
