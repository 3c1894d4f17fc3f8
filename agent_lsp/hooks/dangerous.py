"""Recognises shell commands that destroy a system: judged by the words of each simple command, not by the text, so
that a mention in quotes is no alarm and a spelling in pieces is no escape (C14).

It knows what is listed here and no more; it is a net under the permission policy, not in its place.
"""

import posixpath
import re
from dataclasses import dataclass, field
from itertools import dropwhile

_PLAIN = re.compile(
    r"""  \\\n (?P<nothing>)
    |   \\ (?P<escaped>.)
    |   \$?' (?P<literal>[^']*) '
    |   \$? (?P<quote>")
    |   (?<![^\s;&|()<>`]) (?P<comment>\#[^\n]*)
    |   (?P<open>\$?[(`])
    |   (?P<close>\))
    |   (?P<blank>[ \t\r]+ | &>+ | [<>]+[&|]?)  # a redirection ends a word, and its file counts as one
    |   (?P<end>[;&|\n]+)
    |   (?P<text>[^\\'"`()\s;&|<>$\#]+ | [^\\'])
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(
    r"""\\\n (?P<nothing>)
    |   \\ (?P<escaped>[$`"\\])
    |   (?P<quote>")
    |   (?P<open>\$\( | `)
    |   (?P<text>[^\\"`$]+ | .)
    """,
    re.VERBOSE | re.DOTALL,
)
_BEFORE_A_COMMAND = re.compile(r"\w+\+?=.*|-.*|then|do|else|elif|if|while|until|time|[{!]", re.DOTALL)
_TAKES_WORDS_AS_DATA = re.compile(r"(\S*/)?(echo|printf|[ef]?grep|rg|man|which|type|git commit)(\s|$)")
_READ_A_COMMAND = "(ba|da|k|z|a)?sh|eval|trap|env|su|runuser|ssh|flock|parallel|script|watch"
_OPTION_WITH_COMMAND = re.compile(r"^(--[\w-]+=|-[cS])")
_DEVICE_AS_OUTPUT = re.compile(r"of=/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|mapper/|dm-|md)")
_FORK_BOMB = re.compile(
    r"(?<![\w:.])(?P<name>[\w:.]++)\s*+(\(\s*\)\s*)?\{\s*(?P=name)\s*\|\s*(?P=name)\s*&\s*\}\s*[;\n]\s*(?P=name)(?!\w)"
)
_HOME = re.compile(r"(~|\$HOME|\$\{HOME\})[/.*]*")
_MAX_NESTING = 5


def danger_in(command: str, nesting: int = 0) -> str | None:
    """Why a shell command must not run, or None where nothing of the list is in it."""
    if _FORK_BOMB.search(command):
        return "a fork bomb"
    try:
        commands = _simple_commands(command)
    except ValueError:  # a shell runs the lines before the quote that does not close, so every mention counts
        commands = _simple_commands(re.sub(r"[\\'\"`]", " ", command))
    return next(filter(None, (_danger_of(words, nesting) for words in commands)), None)


@dataclass(slots=True)
class _Reading:
    """A command line in reading, or a substitution in one."""

    opener: str = ""
    words: list[str] = field(default_factory=list)
    word: str | None = None
    quoted: bool = False

    def add(self, text: str) -> None:
        self.word = (self.word or "") + text

    def end_word(self) -> None:
        if self.word is not None:
            self.words.append(self.word)
        self.word = None


def _simple_commands(text: str) -> list[list[str]]:
    """The words of each simple command, quotes removed, those in substitutions too; raises ValueError for an open
    quote. What a substitution gives is not known and stands as ``$()`` in the word around it.
    """
    commands: list[list[str]] = []
    stack = [_Reading()]
    at = 0
    while at < len(text):
        top = stack[-1]
        match = (_QUOTED if top.quoted else _PLAIN).match(text, at)
        if match is None or match.lastgroup is None:
            raise ValueError("a quote is not closed")
        at = match.end()
        kind, value = match.lastgroup, match[match.lastgroup]
        closes = (kind, value[-1:], top.opener) in {("close", ")", "("), ("open", "`", "`")}
        if kind == "quote":
            top.quoted = not top.quoted
            top.add("")
        elif kind == "blank":
            top.end_word()
        elif kind in {"end", "close"} or closes:
            top.end_word()
            commands.append(top.words)
            top.words = []
            if closes:
                stack.pop()
                stack[-1].add("$()")
        elif kind == "open":
            stack.append(_Reading(opener=value[-1]))
        elif kind not in {"nothing", "comment"}:
            top.add(value)
    if any(reading.quoted for reading in stack):
        raise ValueError("a quote is not closed")
    for reading in stack:
        reading.end_word()
    return commands + [reading.words for reading in stack]


def _danger_of(words: list[str], nesting: int) -> str | None:
    """What is wrong with a simple command.

    Any word may be the name of a program that the words before it run (``sudo -u x rm``, ``xargs rm``, ``>log rm``),
    unless the first one is a program that does nothing with its words.
    """
    words = list(dropwhile(_BEFORE_A_COMMAND.fullmatch, words))
    if _TAKES_WORDS_AS_DATA.match(" ".join(words[:2])):
        return None
    removal, modes = _words_after("rm", words), _words_after("chmod|chown", words)
    if _is_recursive(removal, "rR") and any(_is_root(word) or _is_home(word) for word in removal):
        return "removes the root or home directory"
    if _is_recursive(modes, "R") and any(map(_is_root, modes)):
        return "changes the mode or owner of the whole system"
    if any(word.startswith(("/dev/", "$")) for word in _words_after(r"mkfs(\..+)?", words)):
        return "formats a file system"
    if any(map(_DEVICE_AS_OUTPUT.match, _words_after("dd", words))):
        return "overwrites a device"
    line = " ".join(_OPTION_WITH_COMMAND.sub("", word) for word in _words_after(_READ_A_COMMAND, words))
    return danger_in(line, nesting + 1) if line and nesting < _MAX_NESTING else None


def _words_after(program: str, words: list[str]) -> list[str]:
    """What follows the first mention of a program, given as a regular expression; nothing where there is none."""
    name = re.compile(rf"(.*/)?({program})", re.DOTALL)
    return list(dropwhile(lambda word: name.fullmatch(word) is None, words))[1:]


def _is_recursive(arguments: list[str], letters: str) -> bool:
    """Whether one of the options is ``--recursive``, which may be cut short, or has one of the letters."""
    return any(
        (word.startswith("--r") and "--recursive".startswith(word)) or re.match(rf"-\w*[{letters}]", word)
        for word in arguments
    )


def _is_root(word: str) -> bool:
    """Whether a word names the root directory or everything in it: ``/``, ``//``, ``/home/..``, ``/*``."""
    return posixpath.normpath(re.sub(r"[*?]", "", word)) in {"/", "//"}


def _is_home(word: str) -> bool:
    return _HOME.fullmatch(word) is not None
