"""What a hook answered: one envelope in two spellings, in whatever noise, beside any exit code."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.hooks.answer import DEFAULT_REASON, Answer, UnreadableAnswer, find_objects, parse_envelope
from agent_lsp.hooks.executors.command import run_command
from tests.hooks.configured import command


def specific(**values: Any) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **values}})


@pytest.mark.requirement("B13", "B14")
@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("", Answer()),
        (" \n", Answer()),
        ("all is well", Answer()),
        ("[1, 2]", Answer()),
        ("{}", Answer()),
        ('{"block": true}', Answer(blocked=True)),
        ('{"block": true, "reason": "no"}', Answer(blocked=True, reason="no")),
        ('{"block": false}', Answer()),
        ('{"additional_context": "c"}', Answer(context="c")),
        ('{"updated_input": {"a": [1]}}', Answer(updated_input={"a": [1]})),
        ('{"something": "else"}', Answer()),
        ('{"block": null, "reason": null, "hookSpecificOutput": null, "decision": null}', Answer()),
        ('{"continue": false, "stopReason": "enough"}', Answer(blocked=True, reason="enough")),
        ('{"continue": true, "stopReason": "enough"}', Answer()),
        ('{"decision": "block", "reason": "no"}', Answer(blocked=True, reason="no")),
        ('{"systemMessage": "for you"}', Answer(message="for you")),
        (specific(permissionDecision="allow"), Answer(advice=PermissionBehavior.ALLOW)),
        (
            specific(permissionDecision="ask", permissionDecisionReason="why"),
            Answer(advice=PermissionBehavior.ASK, reason="why"),
        ),
        (
            specific(permissionDecision="deny", permissionDecisionReason="no"),
            Answer(blocked=True, advice=PermissionBehavior.DENY, reason="no"),
        ),
        (specific(updatedInput={"a": 1}, additionalContext="c"), Answer(updated_input={"a": 1}, context="c")),
        ('{"block": true, "decision": "approve"}', Answer(blocked=True, advice=PermissionBehavior.ALLOW)),
    ],
)
def test_envelope_is_read_in_both_spellings(output: str, answer: Answer) -> None:
    assert parse_envelope(output) == answer


@pytest.mark.requirement("B13", "F5")
@pytest.mark.parametrize("output", ['{"updated_input": {}}', specific(updatedInput={})])
def test_rewrite_to_no_arguments_is_a_rewrite(output: str) -> None:
    assert parse_envelope(output) == Answer(updated_input={})


@pytest.mark.requirement("B13", "F3")
@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ('{"decision": "maybe"}', "decision is 'maybe'"),
        ('{"decision": "Block"}', "decision is 'Block'"),
        ('{"decision": true}', "decision must be a string"),
        (specific(permissionDecision="perhaps"), "permissionDecision is 'perhaps'"),
        (specific(permissionDecision=1), "permissionDecision must be a string"),
        (specific(updatedInput="ls"), "updatedInput must be an object"),
        (specific(additionalContext=["c"]), "additionalContext must be a string"),
        ('{"hookSpecificOutput": "deny"}', "hookSpecificOutput must be an object"),
        ('{"block": "true"}', "block must be true or false"),
        ('{"block": 1}', "block must be true or false"),
        ('{"continue": "false"}', "continue must be true or false"),
        ('{"reason": 5}', "reason must be a string"),
        ('{"additional_context": {}}', "additional_context must be a string"),
        ('{"updated_input": [1]}', "updated_input must be an object"),
        ('{"block": true', r"begins like JSON and is not: .*line 1 column 15"),
        ("{\n  'block': true\n}", r"begins like JSON and is not: .*line 2 column 3"),
        ('{"a": ' * 100_000, "begins like JSON and is not: "),
    ],
)
def test_envelope_that_cannot_be_understood_is_an_error(output: str, problem: str) -> None:
    with pytest.raises(UnreadableAnswer, match=problem):
        parse_envelope(output)


@pytest.mark.requirement("B14", "F3")
@pytest.mark.parametrize(
    "output",
    [
        'Welcome\n{"block": true}\n',
        'Welcome {you}\n{"block": true}',
        '{not json}\n{"block": true}',
        '{"level": "info"}\n{"level": "warning"}\n{"block": true}',
        'mesg: ttyname failed: {"block": true}',
        '\ufeff{"block": true}',
        'a\r\nb\r\n{"block": true}\r\n',
        '}\n{\n  "block": true,\n  "x": {\n"y": [\n{}\n]}\n}',
        '\x1b]0;title\x07\n{"block": true}',
        'direnv: loading {.envrc} {"block": true}',
        '{"level": "info"}\n' * 500 + '{"block": true}',
    ],
)
def test_noise_before_the_object_does_not_hide_it(output: str) -> None:
    assert parse_envelope(output).blocked


@pytest.mark.requirement("F3", "F4")
@pytest.mark.parametrize("after", ["took {} s", '{"level": "info"}', "{", '{"continue": true}'])
def test_block_is_not_lost_by_what_is_printed_after_it(after: str) -> None:
    assert parse_envelope(f'{{"block": true, "reason": "no"}}\n{after}\n') == Answer(blocked=True, reason="no")


@pytest.mark.requirement("B13")
def test_context_is_bounded_and_says_so() -> None:
    context = parse_envelope(json.dumps({"additional_context": "x" * 3_000_000})).context

    assert len(context) < 31_000
    assert "characters cut" in context


NOISE_LINES = st.text(alphabet='ab {}[]":,0\t\\é', max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.requirement("F3")
@given(
    noise=st.lists(NOISE_LINES, max_size=20),
    wanted=st.dictionaries(st.text(max_size=5), VALUES, max_size=4),
    indent=st.sampled_from([None, 0, 2]),
    ascii_only=st.booleans(),
)
def test_find_object_finds_the_object_behind_any_lines(
    noise: list[str], wanted: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(wanted, indent=indent, ensure_ascii=ascii_only)

    assert find_objects("".join(f"{line}\n" for line in noise) + text)[-1] == wanted


@pytest.mark.requirement("F3")
@given(st.text(alphabet='ab{}[]":,0 \n\\', max_size=60))
def test_find_object_answers_every_output(output: str) -> None:
    try:
        found = find_objects(output)
    except UnreadableAnswer:
        assert output.strip().startswith("{")
    else:
        assert all(isinstance(each, dict) for each in found)


ALLOW = specific(permissionDecision="allow")


@pytest.mark.requirement("B9", "B14", "F4")
@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "answer"),
    [
        (0, "", "", Answer()),
        (0, "", "why", Answer()),
        (0, "text", "", Answer()),
        (0, '{"block": true}', "", Answer(blocked=True)),
        (0, '{"block": true, "reason": "no"}', "why", Answer(blocked=True, reason="no")),
        (0, ALLOW, "", Answer(advice=PermissionBehavior.ALLOW)),
        (0, '{"decision": "x"}', "", Answer(failure="decision is 'x'; known are block, approve")),
        (1, "", "", Answer(failure="exit code 1")),
        (1, "", "why", Answer(failure="exit code 1: why")),
        (1, '{"block": false}', "", Answer(failure="exit code 1")),
        (1, ALLOW, "", Answer(failure="exit code 1")),
        (127, "text", "", Answer(failure="exit code 127")),
        (2, "", "", Answer(blocked=True, reason=DEFAULT_REASON)),
        (2, "", "why", Answer(blocked=True, reason="why")),
        (2, "", " \n", Answer(blocked=True, reason=DEFAULT_REASON)),
        (2, "text", "", Answer(blocked=True, reason=DEFAULT_REASON)),
        (2, '{"block": false}', "why", Answer(blocked=True, reason="why")),
        (2, '{"reason": "no"}', "", Answer(blocked=True, reason="no")),
        (2, '{"updated_input": {"a": 1}}', "why", Answer(blocked=True, reason="why")),
        (2, ALLOW, "why", Answer(blocked=True, reason="why")),
        (2, '{"decision": "x"}', "why", Answer(blocked=True, reason="why")),
        (2, "{", "", Answer(blocked=True, reason=DEFAULT_REASON)),
    ],
)
async def test_exit_code_and_output_are_judged_together(
    tmp_path: Path, environment: dict[str, str], code: int, stdout: str, stderr: str, answer: Answer
) -> None:
    text = f"printf %s {shlex.quote(stdout)}; printf %s {shlex.quote(stderr)} >&2; exit {code}"

    given = await run_command(command(text), "{}", root=tmp_path, environment=environment, variables={})

    assert (given.exit_code, given.stderr) == (code, stderr.strip())
    assert (given.blocked, given.reason, given.advice) == (answer.blocked, answer.reason, answer.advice)
    assert (given.failure, given.updated_input) == (answer.failure, answer.updated_input)


@pytest.mark.requirement("B14")
async def test_block_beside_another_exit_code_blocks(tmp_path: Path, environment: dict[str, str]) -> None:
    hook = command("""echo '{"block": true, "reason": "no"}'; exit 1""")

    given = await run_command(hook, "{}", root=tmp_path, environment=environment, variables={})

    assert (given.blocked, given.reason) == (True, "no")
