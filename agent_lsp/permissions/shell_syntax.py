"""What a shell command line runs: every simple command in it, what it redirects to files, and what is not clear.

Invariant: where ``unclear`` is empty, each program that bash starts for the line is one of ``commands``, with words
that these stand for, and each file that it opens for writing by itself is one of ``writes`` (F20 to F22). What the
grammar does not know for certain is unclear, and nothing unclear is allowed by a rule: it asks.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

from agent_lsp.permissions import shell_state
from agent_lsp.permissions.shell_expansion import PATTERNS, WORDS, WordReader, nodes_in, text_of
from agent_lsp.permissions.shell_words import HOLES, MANY, Words
from agent_lsp.permissions.shell_wrappers import Behind, behind

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_DEEPEST = 8  # shells in shells
_LONGEST = 20_000  # characters; nobody reads more than that in a question


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleCommand:
    """One program or builtin with its words, in which ``shell_words`` marks what only the shell knows.

    One that ``needs_allow`` runs only if a rule allows it. The others change nothing, or run what stands behind them.
    """

    words: Words
    needs_allow: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """What a command line comes to. ``unclear`` says what cannot be told, in the words of a reason."""

    commands: tuple[SimpleCommand, ...]
    writes: Words = ()
    reads: Words = ()
    unclear: Words = ()


@lru_cache(maxsize=256)
def parse(text: str) -> CommandLine:
    """Read a command line as bash would."""
    reader = _Reader(text, 0)
    if reader.elsewhere and any(not path.startswith("/") for path in (*reader.writes, *reader.reads)):
        reader.unclear.append("it redirects in a directory that it changes to")
    return CommandLine(
        commands=tuple(dict.fromkeys(reader.commands)),
        writes=tuple(dict.fromkeys(reader.writes)),
        reads=tuple(dict.fromkeys(reader.reads)),
        unclear=tuple(dict.fromkeys(reader.unclear)),
    )


@cache
def _parser() -> "Parser":
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


_STRUCTURE = frozenset(
    [
        *("program", "list", "pipeline", "subshell", "compound_statement", "negated_command", "if_statement"),
        *("elif_clause", "else_clause", "while_statement", "do_group", "case_statement", "case_item", "comment"),
        *("command_substitution", "process_substitution", "array"),
    ]
)
_OPERATORS = frozenset(["<", ">", ">>", "&>", "&>>", ">|", ">&", "<&", ">&-", "<&-"])
_BLANKS = re.compile(rb"([ \t\n]|\\\n)*")
_TEXTS = frozenset(["string", "heredoc_body"])
_DELIMITER = re.compile(r"(['\"]?)\w+\1")
_SPACES = str.maketrans("", "", "\n\t")
_SUBFOLDER = re.compile(r"(?!-|~|/|.*\.\.)[\w./-]+")
_NEUTRAL = frozenset([":", "break", "continue", "echo", "exit", "false", "pwd", "return", "true"])


class _Reader:
    """Collects what one line comes to, with the lines within it; ``depth`` counts the shells that it is in."""

    def __init__(self, text: str, depth: int) -> None:
        self.commands: list[SimpleCommand] = []
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.unclear: list[str] = []
        self.elsewhere = False
        self._words = WordReader(self._visit, self.unclear.append)
        self._depth = depth
        self._source = text.encode(errors="replace")
        if depth > _DEEPEST or len(text) > _LONGEST:
            self.unclear.append("it is too long to be read")
        elif not text.translate(_SPACES).isprintable():
            self.unclear.append("it has characters that do not print")
        else:
            self._read()

    def _read(self) -> None:
        root = _parser().parse(self._source).root_node
        if root.has_error:
            self.unclear.append("it cannot be parsed")
        if sum(node.type == "heredoc_redirect" for node in nodes_in(root)) > 1:
            self.unclear.append("it has several here-documents")
        if _BLANKS.fullmatch(self._source[: root.start_byte]) is None or not self._is_seen(root):
            self.unclear.append("it has text that the parser passes over")
        self._visit(root)

    def _is_seen(self, node: "Node") -> bool:
        """Whether there are only blanks between the parts of a node, or it is a text, which is read with its gaps."""
        ends = [node.start_byte, *(child.end_byte for child in node.children)]
        starts = [*(child.start_byte for child in node.children), node.end_byte]
        gaps = [self._source[end:start] for end, start in zip(ends, starts, strict=True)] if node.children else []
        if node.type not in _TEXTS and any(_BLANKS.fullmatch(gap) is None for gap in gaps):
            return False
        return all(self._is_seen(child) for child in node.children)

    def _read_within(self, script: str) -> None:
        """Read a line that another shell gets."""
        inner = _Reader(script, self._depth + 1)
        self.commands += inner.commands
        self.writes += inner.writes
        self.reads += inner.reads
        self.unclear += inner.unclear
        self.elsewhere = self.elsewhere or inner.elsewhere

    # Structure

    def _visit(self, node: "Node") -> None:
        kind = node.type
        if (visit := _VISITS.get(kind)) is not None:
            visit(self, node)
        elif kind == "compound_statement" and node.children[0].type == "((":
            self._words.arithmetic(node)
        elif kind in _STRUCTURE:
            self._check_brackets(kind, text_of(node))
            self._visit_all(node)
        elif kind in WORDS:
            self._words.word(node)
        elif kind in PATTERNS:
            self._words.pattern(node)
        else:  # the commands in it count nevertheless
            self.unclear.append(f"{kind.replace('_', ' ')} is not judged")
            self._visit_all(node)

    def _check_brackets(self, kind: str, text: str) -> None:
        """Where bash may read what is between brackets in another way than the grammar."""
        if kind == "command_substitution" and text.startswith("`") and "\\" in text:
            self.unclear.append("backticks with backslashes inside are read twice")
        if kind in ("command_substitution", "subshell") and text.startswith(("$((", "((")):
            self.unclear.append("it is arithmetic or a subshell")

    def _visit_all(self, node: "Node") -> None:
        for child in node.named_children:
            if child.type != "variable_name":
                self._visit(child)

    def _loop(self, node: "Node") -> None:
        for child in node.named_children:
            if child.type == "variable_name":
                self._set(text_of(child), exported=False)
        self._visit_all(node)

    # Variables

    def _set(self, name: str, *, exported: bool) -> None:
        self.unclear += shell_state.setting(name, exported=exported)

    def _assignment(self, node: "Node", *, exported: bool = False) -> None:
        name = node.child_by_field_name("name")
        self._set(text_of(name) if name is not None and name.type == "variable_name" else "", exported=exported)
        self._visit_all(node)

    def _declaration(self, node: "Node") -> None:
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assignment(child, exported=True)
            elif child.type == "variable_name":
                self._set(text_of(child), exported=True)
            else:
                self.unclear.append(f"{text_of(node.children[0])} is given more than assignments")
                self._visit(child)

    # Redirections

    def _redirected(self, node: "Node") -> None:
        body = node.child_by_field_name("body")
        more = [word for child in node.named_children if child != body for word in self._redirect(child)]
        if body is not None and body.type == "command":
            self._command(body, more)
            return
        if more:
            self.unclear.append("words stand behind a redirection")
        if body is not None:
            self._visit(body)

    def _redirect(self, node: "Node") -> list[str]:
        """Note what is opened; returns words of the command that the grammar takes for the redirection's."""
        if node.type == "heredoc_redirect":
            return self._heredoc(node)
        if node.type == "herestring_redirect":
            return [self._words.word(child) for child in node.named_children][1:]
        if node.type != "file_redirect":
            self._visit(node)
            return []
        operator = next((child.type for child in node.children if not child.is_named), "")
        self._check_gaps(node)
        words = [self._words.word(child) for child in node.named_children if child.type != "file_descriptor"]
        if operator.endswith("&-"):
            return words
        target, *more = words or [MANY]
        if operator not in (">&", "<&") or not re.fullmatch(r"\d+-?|-", target):
            self._opened(operator, target)
        return more

    def _opened(self, operator: str, target: str) -> None:
        if HOLES.search(target):
            self.unclear.append("it is computed to which file a redirection goes")
        elif operator == "<":
            self.reads.append(target)
        else:
            self.writes.append(target)

    def _heredoc(self, node: "Node") -> list[str]:
        more: list[str] = []
        delimiter = ""
        for child in node.named_children:
            if child.type == "heredoc_start":
                delimiter = text_of(child)
            elif child.type == "heredoc_body":
                self._delimiter(delimiter, text_of(child))
                self._words.heredoc(child, quoted=delimiter[:1] in "'\"")
            elif child.type in WORDS:
                more.append(self._words.word(child))
            elif child.type == "file_redirect":
                more += self._redirect(child)
            elif child.type != "heredoc_end":
                self._visit(child)
        return more

    def _delimiter(self, delimiter: str, body: str) -> None:
        """Grammar and bash must agree on where the text ends."""
        lines = [line.lstrip("\t") for line in body.splitlines()]
        if not _DELIMITER.fullmatch(delimiter) or delimiter.strip("'\"") in lines:
            self.unclear.append("it is not clear where the here-document ends")

    # Commands

    def _command(self, node: "Node", more: Sequence[str] = ()) -> None:
        words: list[str] = []
        behind_redirects = [*more]
        self._check_gaps(node)
        for child in node.children:
            if child.type == "variable_assignment":
                self._assignment(child, exported=True)
            elif child.type == "command_name":
                words.append(self._words.word(child.children[0]))
            elif child.type.endswith("_redirect"):
                behind_redirects += self._redirect(child)
            else:
                words.append(self._words.word(child))
        self._run((*words, *behind_redirects))

    def _check_gaps(self, node: "Node") -> None:
        """The grammar sees two words where bash sees one, unless there are blanks between them."""
        for one, other in pairwise(child for child in node.children if child.type in WORDS or not child.is_named):
            gap = self._source[one.end_byte : other.start_byte].replace(b"\\\n", b"")
            if one.type not in _OPERATORS and (gap.strip(b" \t") or not gap):
                self.unclear.append("it is not clear where a word ends")

    def _run(self, words: Words) -> None:
        """Note a simple command, and what stands behind it."""
        if not words:
            return
        if HOLES.search(words[0]):
            self.commands.append(SimpleCommand(words=words))
            self.unclear.append("it is computed which program runs")
            return
        hidden = behind(words)
        self.commands.append(SimpleCommand(words=words, needs_allow=self._needs_allow(words, hidden)))
        self.unclear += [*shell_state.calling(words), *hidden.unclear]
        for inner in hidden.commands:
            self._run(inner)
        for script in hidden.scripts:
            self._read_within(script)

    def _needs_allow(self, words: Words, hidden: Behind) -> bool:
        if words[0] in ("cd", "popd", "pushd"):
            self.elsewhere = True
        if words[0] == "cd":
            return not (len(words) == 2 and _SUBFOLDER.fullmatch(words[1]))
        return not hidden.transparent and words[0] not in _NEUTRAL


_VISITS: Mapping[str, Callable[[_Reader, "Node"], None]] = MappingProxyType(
    {
        "c_style_for_statement": lambda reader, node: reader._words.arithmetic(node),
        "command": _Reader._command,
        "declaration_command": _Reader._declaration,
        "for_statement": _Reader._loop,
        "redirected_statement": _Reader._redirected,
        "test_command": lambda reader, node: reader._words.test(node),
        "variable_assignment": _Reader._assignment,
    }
)
