"""Reads the nodes of words and expansions into text with marks, and looks for what bash evaluates within them."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_lsp.permissions.shell_words import GLOB, HOLES, MANY, ONE, quoted_text, unquoted_text

if TYPE_CHECKING:
    from tree_sitter import Node

WORDS = frozenset(
    [
        *("word", "number", "string", "raw_string", "ansi_c_string", "concatenation", "simple_expansion", "expansion"),
        *("command_substitution", "process_substitution", "arithmetic_expansion"),
    ]
)
PATTERNS = frozenset(["extglob_pattern", "regex", "special_variable_name", "variable_name", "test_operator"])

_ARITHMETIC = frozenset(
    [
        *("binary_expression", "unary_expression", "postfix_expression", "ternary_expression"),
        *("parenthesized_expression", "number"),
    ]
)
_NUMERIC_TESTS = frozenset(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"])
_PLAIN_EXPANSION = frozenset(["${", "}", ":-", "-", ":+", "+", ":?", "?", "#", "##", "%", "%%", "/", "//"])


class WordReader:
    """Reads words; ``visit`` takes the commands within them, ``doubt`` what is not clear."""

    def __init__(self, visit: Callable[["Node"], None], doubt: Callable[[str], None]) -> None:
        self._visit = visit
        self._doubt = doubt

    def word(self, node: "Node") -> str:
        """What a word comes to, with marks for what only the shell knows."""
        kind, text = node.type, text_of(node)
        if kind in ("word", "number"):
            return self._literal(text)
        if kind == text == "$":  # with nothing to expand behind it
            return text
        if kind == "raw_string":
            return text[1:-1]
        if kind == "ansi_c_string":
            return ONE if "\\" in text else text[2:-1]
        if kind == "concatenation":
            joined = "".join(self.word(child) for child in node.children)
            if any(child.type == "$" for child in node.children[:-1]):
                self._doubt("a word is not read for certain")
            is_brace = "{" in joined and ("," in joined or ".." in joined)
            return f"{joined.partition('{')[0]}{GLOB}" if is_brace else joined
        if kind == "string":
            return self._string(node)
        self._expansion(node)
        return ONE if kind == "process_substitution" else MANY

    def _literal(self, text: str) -> str:
        read = unquoted_text(text)
        if read is None:
            self._doubt("a word is not read for certain")
        return MANY if read is None else read

    def _string(self, node: "Node") -> str:
        """The text between double quotes; what the grammar leaves out between its pieces belongs to it."""
        source, start, pieces = node.text or b"", node.start_byte, list[str]()
        end = start
        for child in node.children:
            pieces.append(quoted_text(source[end - start : child.start_byte - start].decode(errors="replace")))
            end = child.end_byte
            if child.type == "string_content":
                pieces.append(quoted_text(text_of(child)))
            elif child.is_named:
                self._expansion(child)
                pieces.append(MANY if "@" in text_of(child) else ONE)
            elif child.type == '"':  # blanks before it are part of the node
                pieces.append(text_of(child).removesuffix('"'))
            else:
                pieces.append(self.word(child))
        return "".join(pieces)

    def _expansion(self, node: "Node") -> None:
        if node.type == "arithmetic_expansion":
            self.arithmetic(node)
        elif node.type == "expansion":
            if not {text_of(child) for child in node.children if not child.is_named} <= _PLAIN_EXPANSION:
                self._doubt("a variable is expanded in a way that may run or set something")
            for child in node.named_children:
                if child.type not in ("variable_name", "special_variable_name"):
                    self._visit(child)
        elif node.type != "simple_expansion":
            self._visit(node)

    def heredoc(self, body: "Node", *, quoted: bool) -> None:
        """The text of a here-document, in which the grammar must have seen every expansion."""
        plain, start = body.text or b"", body.start_byte
        for child in body.named_children:
            if child.type != "heredoc_content":
                self._visit(child)
                plain = (
                    plain[: child.start_byte - start]
                    + b" " * (child.end_byte - child.start_byte)
                    + (plain[child.end_byte - start :])
                )
        if not quoted and any(mark in plain for mark in (b"`", b"$(", b"${", b"\\")):
            self._doubt("the text of the here-document is not read for certain")

    def pattern(self, node: "Node") -> None:
        """A pattern of ``case`` or ``[[``, which the grammar does not look into."""
        if "$" in text_of(node) or "`" in text_of(node):
            self._doubt(f"the pattern {text_of(node)} is computed")

    def arithmetic(self, node: "Node") -> None:
        """Bash runs the substitutions in what a variable holds where it expects a number."""
        for child in node.named_children:
            if child.type in _ARITHMETIC:
                self.arithmetic(child)
            else:
                self._doubt("a variable is evaluated as arithmetic")
                if child.type in WORDS or child.type == "do_group":
                    self._visit(child)

    def test(self, node: "Node") -> None:
        """``[`` and ``[[``, which evaluate numbers and names of variables."""
        signs = {text_of(each) for each in nodes_in(node) if each.type == "test_operator" or not each.is_named}
        operands = list[str]()
        self._operands(node, operands)
        computed = any(HOLES.search(word) or not word.isdecimal() for word in operands)
        several = "[" in signs and any(MANY in word or GLOB in word for word in operands)
        if several or signs & {"-v", "-R"} or (signs & _NUMERIC_TESTS and computed):
            self._doubt("a test may evaluate its words")

    def _operands(self, node: "Node", found: list[str]) -> None:
        for child in node.named_children:
            if child.type in WORDS:
                found.append(self.word(child))
            elif child.type in PATTERNS:
                self.pattern(child)
            elif child.type.endswith("_expression"):
                self._operands(child, found)
            else:
                self._visit(child)


def nodes_in(node: "Node") -> list["Node"]:
    """A node and all below it."""
    found = [node]
    for each in found:
        found.extend(each.children)
    return found


def text_of(node: "Node") -> str:
    """The source of a node."""
    return (node.text or b"").decode(errors="replace")
