"""Which calls a hook is about: names, expressions, and two levels of them."""

from typing import Any

import pytest

from agent_lsp.hooks.matcher import ANY, parse_alternatives, parse_matcher
from agent_lsp.hooks.runner import Occasion, canonical, mismatch
from agent_lsp.messages import JsonObject, freeze_object
from agent_lsp.tools.registry import parse_arguments
from tests.hooks.configured import command, configured, established


@pytest.mark.requirement("B17")
@pytest.mark.parametrize(
    ("text", "subject", "hit"),
    [
        ("", "", True),
        ("", "shell", True),
        ("shell", "shell", True),
        ("Shell", "sHELL", True),
        ("shell", "shell2", False),
        ("shell", "", False),
        ("s.*", "shell", False),
        ("read|edit", "edit", False),
        ("*", "shell", False),
        ("/sh/", "powershell", True),
        ("/^sh/", "bash", False),
        ("/^(read|edit)_file$/", "edit_file", True),
        ("/SHELL/", "shell", False),
        ("/SHELL/i", "shell", True),
        ("//", "shell", True),
        ("//i", "shell", True),
        ("/a/b/", "x a/b y", True),
        ("/i/", "shell", False),
        ("/", "/", True),
        ("/", "a/b", False),
        ("/i", "/I", True),
        ("/i", "i", False),
        ("/^.$/", "é", True),
        ("/É/i", "é", True),
        ("/^$/", "", True),
        ("/^$/", "shell", False),
    ],
)
def test_matcher_is_any_a_search_or_a_whole_name(text: str, subject: str, hit: bool) -> None:
    assert parse_matcher(text).matches(subject) is hit


@pytest.mark.requirement("B4", "B17")
@pytest.mark.parametrize(
    "pattern",
    ["(", "[a", "a**", "\\", r"(a)\1", "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", "(?>a)", "(a{1000}){1000}", "\ud800"],
)
def test_pattern_that_is_wrong_or_not_linear_is_refused(pattern: str) -> None:
    for text in (f"/{pattern}/", f"/{pattern}/i"):
        with pytest.raises(ValueError, match=r"^bad regular expression: "):
            parse_matcher(text)
    with pytest.raises(ValueError, match=r"^bad regular expression: "):
        parse_alternatives(pattern)


@pytest.mark.requirement("B17")
@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*$", "(a|aa)+$", "(.*a){12}b", "(a*)*b", "a?" * 60 + "a" * 60 + "b"]
)
def test_pattern_that_explodes_elsewhere_is_answered(pattern: str) -> None:
    matcher, text = parse_matcher(f"/^{pattern}/"), "a" * 100_000

    assert matcher.matches(f"{text}!") is False


@pytest.mark.requirement("B17", "F12")
def test_subject_may_hold_what_utf8_cannot() -> None:
    assert parse_matcher("/a.b/").matches("a\ud800b")
    assert not parse_matcher("/x/").matches("\udcff" * 10)


@pytest.mark.requirement("B13", "B17")
@pytest.mark.parametrize(
    ("text", "subject", "hit"),
    [
        ("", "Bash", True),
        ("*", "Bash", True),
        ("Bash", "Bash", True),
        ("Bash", "BashOutput", False),
        ("Edit|Write", "Write", True),
        ("Edit|Write", "MultiEdit", False),
        ("Notebook.*", "NotebookEdit", True),
    ],
)
def test_established_matcher_is_an_expression_on_the_whole_name(text: str, subject: str, hit: bool) -> None:
    assert parse_alternatives(text).matches(subject) is hit


@pytest.mark.requirement("B13")
@pytest.mark.parametrize(
    ("matcher", "tool", "applies"),
    [
        ("Bash", "shell", True),
        ("shell", "shell", True),
        ("Edit|Write", "edit_file", True),
        ("Edit|Write", "write_file", True),
        ("Read", "write_file", False),
    ],
)
def test_established_hook_knows_tools_by_either_name(matcher: str, tool: str, applies: bool) -> None:
    hook = established({"type": "command", "command": "true"}, matcher=matcher)

    assert (mismatch(hook, Occasion(event="PreToolUse", subject=tool)) is None) is applies


EXAMPLE = {
    "type": "command",
    "command": "exit 2",
    "matcher": "shell",
    "if": "/rm -rf/",
    "blocking": True,
    "timeout": 30,
}


@pytest.mark.requirement("B18", "B19")
@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("shell", '{"command": "rm -rf build"}', None),
        ("Shell", '{"command": "rm -rf build"}', None),
        ("shell", r'{"command": "rm\u0020-rf build"}', None),
        ("shell", r'{"command": "\u0072m -rf build"}', None),
        ("shell", '{"command": "ls"}', "if '/rm -rf/' does not match the arguments"),
        ("shell", "{}", "if '/rm -rf/' does not match the arguments"),
        ("write_file", '{"content": "rm -rf"}', "matcher 'shell' does not match 'write_file'"),
    ],
)
def test_both_levels_must_hit_on_the_parsed_arguments(tool: str, arguments: str, why: str | None) -> None:
    occasion = Occasion(event="PreToolUse", subject=tool, args=parse_arguments(arguments))

    assert mismatch(configured("PreToolUse", EXAMPLE), occasion) == why


@pytest.mark.requirement("B18")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"b": 1, "a": {"d": [True, None], "c": "é"}}, '{"a": {"c": "é", "d": [true, null]}, "b": 1}'),
        ({}, "{}"),
    ],
)
def test_canonical_arguments_do_not_depend_on_spelling(arguments: JsonObject, text: str) -> None:
    assert canonical(arguments) == text
    assert canonical(freeze_object(arguments)) == text


@pytest.mark.requirement("B20")
@pytest.mark.parametrize(
    ("given", "subject", "applies"),
    [
        ({}, "", True),
        ({"matcher": "/^$/"}, "", True),
        ({"matcher": "shell"}, "", False),
        ({"if": "/x/"}, "", False),
        ({"matcher": "Scout"}, "scout", True),
        ({"matcher": "/^scout/"}, "scout 2", True),
        ({"matcher": "scout"}, "builder", False),
    ],
)
def test_event_without_a_tool_is_matched_against_its_subject(
    given: dict[str, Any], subject: str, applies: bool
) -> None:
    hook = command("true", "SubagentStop" if subject else "SessionStart", **given)

    assert (mismatch(hook, Occasion(event=hook.event, subject=subject)) is None) is applies


def test_any_is_the_matcher_of_the_empty_text() -> None:
    assert parse_matcher("") == parse_alternatives("*") == ANY
