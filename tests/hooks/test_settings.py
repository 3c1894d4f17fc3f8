"""The ``hooks`` section: what an entry means, and that a mistake costs one hook and no more."""

from pathlib import Path
from typing import Any

import pytest

from agent_lsp.hooks.matcher import parse_matcher
from agent_lsp.hooks.settings import EVENTS, ConfiguredHook
from agent_lsp.settings.load import load_settings
from agent_lsp.settings.trust import TrustEverything
from agent_lsp.workspace import Place
from tests.hooks.configured import SOURCE, configured, established, parsed

GOOD: dict[str, Any] = {"type": "command", "command": "true"}
PLACE = Place(source=SOURCE)


@pytest.mark.requirement("B1", "B2")
@pytest.mark.parametrize(
    ("entry", "hook"),
    [
        (GOOD, ConfiguredHook(event="PreToolUse", type="command", target="true", place=PLACE, name="true")),
        (
            {"type": "command", "command": ["./check", "a b"], "name": "check"},
            ConfiguredHook(event="PreToolUse", type="command", target=("./check", "a b"), place=PLACE, name="check"),
        ),
        (
            {"type": "prompt", "prompt": "Is $ARGUMENTS right?", "on_failure": "ask", "blocking": True},
            ConfiguredHook(
                event="PreToolUse",
                type="prompt",
                target="Is $ARGUMENTS right?",
                place=PLACE,
                name="Is $ARGUMENTS right?",
                on_failure="ask",
                blocking=True,
            ),
        ),
        (
            {
                "type": "http",
                "url": "https://host/x",
                "headers": {"X-Key": "k"},
                "timeout": 2.5,
                "on_failure": "block",
                "matcher": "shell",
                "if": "whole",
            },
            ConfiguredHook(
                event="PreToolUse",
                type="http",
                target="https://host/x",
                place=PLACE,
                name="https://host",
                headers=(("X-Key", "k"),),
                timeout=2.5,
                on_failure="block",
                matcher=parse_matcher("shell"),
                condition=parse_matcher("whole"),
            ),
        ),
    ],
)
def test_entry_is_read_field_by_field(entry: dict[str, Any], hook: ConfiguredHook) -> None:
    assert configured("PreToolUse", entry) == hook


@pytest.mark.requirement("B1", "F76")
@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://user:secret@host:8443/secret?a=secret#secret", "https://host"),
        ("http://[::1]/secret", "http://::1"),
        ("http://[secret", "http"),
        ("secret", "http"),
    ],
)
def test_a_web_hook_is_named_without_what_may_be_secret(url: str, name: str) -> None:
    assert configured("PreToolUse", {"type": "http", "url": url}).name == name


@pytest.mark.requirement("B3")
def test_ten_events_are_known() -> None:
    assert EVENTS == (
        "PreToolUse",
        "PostToolUse",
        "UserPromptSubmit",
        "PostStopValidation",
        "Notification",
        "TaskCreated",
        "TaskCompleted",
        "SessionStart",
        "SessionEnd",
        "SubagentStop",
    )
    hooks, mistakes = parsed({event: [GOOD] for event in EVENTS})
    assert ([hook.event for hook in hooks], mistakes) == (list(EVENTS), {})


MISTAKES: list[tuple[Any, str]] = [
    ({"PreTool": [GOOD]}, "hooks.PreTool"),
    ({"pretooluse": [GOOD]}, "hooks.pretooluse"),
    ({"": [GOOD]}, "hooks."),
    ({"PostToolUse": {}}, "hooks.PostToolUse"),
    ({"PostToolUse": "true"}, "hooks.PostToolUse"),
    ({"PostToolUse": None}, "hooks.PostToolUse"),
    ({"PostToolUse": ["true"]}, "hooks.PostToolUse.0"),
    ({"PostToolUse": [GOOD, None]}, "hooks.PostToolUse.1"),
    ({"PostToolUse": [{"hooks": "true"}]}, "hooks.PostToolUse.0.hooks"),
    ({"PostToolUse": [{"hooks": [{"type": "command"}]}]}, "hooks.PostToolUse.0.hooks.0.command"),
    ({"PostToolUse": [{"hooks": [GOOD, {"type": "wild"}]}]}, "hooks.PostToolUse.0.hooks.1.type"),
    ({"PostToolUse": [{"matcher": "(", "hooks": [GOOD]}]}, "hooks.PostToolUse.0.hooks.0.matcher"),
]
BAD_ENTRIES: list[tuple[dict[str, Any], str]] = [
    ({}, "type"),
    ({"command": "true"}, "type"),
    ({"type": "shell", "command": "true"}, "type"),
    ({"type": 5}, "type"),
    ({"type": ["command"], "command": "true"}, "type"),
    ({"type": "command"}, "command"),
    *(
        ({"type": "command", "command": value}, "command")
        for value in ("", " \n", 5, None, [], [""], ["a", 1], "a\0b", ["a", "b\0"], {"run": "x"})
    ),
    *(({"type": "prompt", "prompt": value}, "prompt") for value in ("", " ", ["x"], None)),
    *(({"type": "http", "url": value}, "url") for value in ("", " ", 5, None)),
    (GOOD | {"comand": "true"}, "comand"),
]
BAD_VALUES: dict[str, list[Any]] = {
    "matcher": ["/(/", "/(?=a)/", 5, ["shell"]],
    "if": ["/[/", True],
    "blocking": ["yes", 1, []],
    "timeout": ["60", True, [60]],
    "on_failure": ["explode", "", 5],
    "headers": [[], {"a": 1}, {"a b": "c"}, {"a": "b\r\nc: d"}, "a: b"],
    "name": [5],
}
BAD_ENTRIES += [(GOOD | {key: value}, key) for key, values in BAD_VALUES.items() for value in values]


@pytest.mark.requirement("B4")
@pytest.mark.parametrize(
    ("section", "key"),
    MISTAKES + [({"PostToolUse": [entry]}, f"hooks.PostToolUse.0.{key}") for entry, key in BAD_ENTRIES],
)
def test_mistake_is_reported_by_its_key_and_the_others_load(section: dict[str, Any], key: str) -> None:
    hooks, mistakes = parsed({**section, "SessionEnd": [GOOD, GOOD]})

    assert list(mistakes) == [key]
    assert mistakes[key] != ""
    assert [hook.event for hook in hooks][-2:] == ["SessionEnd", "SessionEnd"]
    assert all(hook.target == "true" for hook in hooks)


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("section", [[], "true", 5, None])
def test_section_of_another_kind_is_reported(section: object) -> None:
    hooks, mistakes = parsed(section)

    assert (hooks, list(mistakes)) == ([], ["hooks"])


@pytest.mark.requirement("B4")
def test_bad_item_of_a_nested_group_leaves_its_neighbours() -> None:
    hooks, mistakes = parsed({"PreToolUse": [{"matcher": "Bash", "hooks": [GOOD, "true", GOOD]}]})

    assert len(hooks) == 2
    assert list(mistakes) == ["hooks.PreToolUse.0.hooks.1"]


@pytest.mark.requirement("B4")
def test_number_without_measure_costs_no_other_hook() -> None:
    hooks, _mistakes = parsed({"PreToolUse": [GOOD | {"timeout": 10**400}], "SessionEnd": [GOOD]})

    assert hooks[-1].event == "SessionEnd"


@pytest.mark.requirement("B4", "B1")
def test_mistake_is_reported_at_its_line_of_the_file(tmp_path: Path) -> None:
    settings = tmp_path / ".agent-lsp" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(
        '{"hooks": {"PreToolUse": [\n {"type": "command", "command": "true"},\n {"type": "command", "command": ""}\n]}}'
    )

    loaded = load_settings(tmp_path, user_directory=tmp_path / "user", trust=TrustEverything(), environ={})

    assert [hook.place for hook in loaded.hooks] == [Place(source=str(settings), line=2, column=2)]
    assert [str(problem) for problem in loaded.problems] == [
        f"{settings}:3:33: hooks.PreToolUse.1.command: is missing or empty; the hook is left out"
    ]


@pytest.mark.requirement("B1")
def test_hooks_of_all_layers_add_up_in_order(tmp_path: Path) -> None:
    for directory, file, text in (("user", "settings.json", "a"), (".agent-lsp", "settings.json", "b")):
        (tmp_path / directory).mkdir()
        content = f'{{"hooks": {{"PreToolUse": [{{"type": "command", "command": "{text}"}}]}}}}'
        (tmp_path / directory / file).write_text(content)

    loaded = load_settings(tmp_path, user_directory=tmp_path / "user", trust=TrustEverything(), environ={})

    assert ([hook.target for hook in loaded.hooks], loaded.problems) == (["a", "b"], ())


@pytest.mark.requirement("B5")
@pytest.mark.parametrize(
    ("given", "seconds"),
    [({}, 60), ({"timeout": None}, 60), ({"timeout": 0}, 60), ({"timeout": -1}, 60), ({"timeout": 0.5}, 0.5)],
)
def test_timeout_defaults_to_a_minute(given: dict[str, Any], seconds: float) -> None:
    assert configured("PreToolUse", GOOD | given).timeout == seconds


@pytest.mark.requirement("B6", "B7")
@pytest.mark.parametrize("event", EVENTS)
def test_only_some_events_can_block_and_none_does_by_itself(event: str) -> None:
    can_block = event in ("PreToolUse", "UserPromptSubmit", "TaskCreated", "TaskCompleted")

    assert configured(event, GOOD | {"blocking": True}).blocking is can_block
    assert configured(event, GOOD).blocking is False


@pytest.mark.requirement("B13")
def test_established_shape_is_read_group_by_group() -> None:
    inner = [GOOD | {"timeout": 5}, {"type": "command", "command": "other"}]
    hooks, mistakes = parsed({"PreToolUse": [{"matcher": "Bash|Edit", "hooks": inner}, GOOD]})

    assert mistakes == {}
    assert [(hook.target, hook.timeout, hook.established, hook.blocking) for hook in hooks] == [
        ("true", 5, True, True),
        ("other", 60, True, True),
        ("true", 60, False, False),
    ]
    assert [hook.matcher.matches("Edit") for hook in hooks] == [True, True, True]
    assert [hook.matcher.matches("Read") for hook in hooks] == [False, False, True]


@pytest.mark.requirement("B7", "B13")
def test_established_shape_may_say_that_it_does_not_block() -> None:
    assert established(GOOD | {"blocking": False}).blocking is False
    assert established(GOOD, event="PostToolUse").blocking is False


@pytest.mark.requirement("R13")
def test_stop_is_accepted_in_the_established_shape() -> None:
    hook = established(GOOD, event="Stop")

    assert (hook.event, hook.blocking) == ("Stop", True)
