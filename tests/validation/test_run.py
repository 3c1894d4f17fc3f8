"""Validators as real programs: how they end, what is kept of them, and which of them a change concerns."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_lsp.validation.run import (
    MAX_OUTPUT,
    Surroundings,
    ValidatorResult,
    concerned,
    run_validator,
    run_validators,
    shorten,
)
from agent_lsp.validation.validator import REPORT, Finding, Validator
from agent_lsp.workspace import Place

PLACE = Place(source="settings.json", line=1, column=1)


def validator(command: str | tuple[str, ...], name: str = "check", **more: Any) -> Validator:
    return Validator(**{"name": name, "command": command, "place": PLACE, "timeout": 60.0, **more})


def python(code: str, **more: Any) -> Validator:
    return validator((sys.executable, "-c", code), **more)


@pytest.fixture
def around(tmp_path: Path, environment: dict[str, str]) -> Surroundings:
    root = tmp_path / "work"
    root.mkdir()
    return Surroundings(root=root, environment=environment, logs=tmp_path / "logs")


def facts(result: ValidatorResult) -> dict[str, Any]:
    return {"status": result.status, "output": result.output, "exit_code": result.exit_code}


@pytest.mark.requirement("B36", "F40")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("true", {"status": "green", "output": "", "exit_code": 0}),
        ("echo fine", {"status": "green", "output": "fine", "exit_code": 0}),
        ("echo out; echo err >&2; exit 3", {"status": "red", "output": "out\nerr", "exit_code": 3}),
        (
            r"printf '\033[31mred\033[0m\n10%%\r100%%\n'; exit 1",
            {"status": "red", "output": "red\n100%", "exit_code": 1},
        ),
        (r"printf 'caf\351\n'; exit 1", {"status": "red", "output": "caf\N{REPLACEMENT CHARACTER}", "exit_code": 1}),
        ("kill -KILL $$", {"status": "red", "output": "", "exit_code": -9}),
        ("read answer || echo no input; exit 1", {"status": "red", "output": "no input", "exit_code": 1}),
        ("test -t 0 || test -t 1 || echo $CI $TERM; exit 1", {"status": "red", "output": "1 dumb", "exit_code": 1}),
    ],
)
async def test_validator_ends_as_its_program_does(
    around: Surroundings, command: str, expected: Mapping[str, Any]
) -> None:
    assert facts(await run_validator(validator(command), around)) == expected


@pytest.mark.requirement("F40", "F2")
async def test_watcher_ends_at_its_timeout_with_its_partial_output(around: Surroundings) -> None:
    watcher = validator("echo watching; sleep 300 & while :; do sleep 300; done", timeout=0.3)

    result = await run_validator(watcher, around)

    assert facts(result) == {"status": "timeout", "output": "watching", "exit_code": None}


@pytest.mark.requirement("F42")
@pytest.mark.parametrize(
    "missing",
    [
        validator("no-such-tool-here ."),
        validator(("no-such-tool-here",)),
        validator((sys.executable, "-m", "no_such_tool"), tool="no_such_tool"),
    ],
)
async def test_tool_that_is_not_there_says_nothing_about_the_project_unless_somebody_configured_it(
    around: Surroundings, missing: Validator
) -> None:
    found = await run_validator(replace(missing, detected=True), around)
    configured = await run_validator(missing, around)

    assert (found.status, found.failed, configured.status) == ("missing", False, "red")


@pytest.mark.requirement("F42")
async def test_module_that_the_project_lacks_is_a_failure(around: Surroundings) -> None:
    result = await run_validator(python("import x", tool="x", detected=True), around)

    assert result.status == "red"


@pytest.mark.requirement("F43")
async def test_fixer_that_fails_after_fixing_is_run_once_more(around: Surroundings) -> None:
    (around.root / "a.txt").write_text("bad")
    fixer = validator("grep -q bad a.txt && { echo good > a.txt; echo fixed; exit 1; }; exit 0")

    result = await run_validator(fixer, around)

    assert (result.status, result.changed) == ("green", ("a.txt",))


@pytest.mark.requirement("F43")
async def test_failure_without_a_change_is_not_run_again(around: Surroundings) -> None:
    failing = validator(f"echo x >> {around.root.parent / 'runs'}; exit 1")

    assert (await run_validator(failing, around)).status == "red"
    assert (around.root.parent / "runs").read_text() == "x\n"


@pytest.mark.requirement("F43", "F40")
async def test_fixer_that_hangs_after_fixing_is_not_run_again(around: Surroundings) -> None:
    (around.root / "a.txt").write_text("bad")
    hanging = validator(f"echo x >> {around.root.parent / 'runs'}; echo good > a.txt; exec sleep 300", timeout=0.5)

    assert (await run_validator(hanging, around)).status == "timeout"
    assert (around.root.parent / "runs").read_text() == "x\n"
    assert (around.root / "a.txt").read_text() == "good\n"


@pytest.mark.requirement("F41")
async def test_long_output_keeps_its_ends_its_failing_lines_and_all_of_it_in_a_log(around: Surroundings) -> None:
    code = "print('first'); [print('noise', n, 'x' * 60) for n in range(70_000)]; print('FAILED here');"
    code += "[print('noise', n) for n in range(70_000)]; print('last'); raise SystemExit(1)"

    result = await run_validator(python(code), around)

    assert result.log is not None
    assert len(result.output) < 2 * MAX_OUTPUT
    assert result.output.startswith("first\nnoise 0")
    assert result.output.endswith("noise 69999\nlast")
    assert "\nFAILED here\n" in result.output
    assert str(result.log) in result.output
    assert result.log.read_text().count("\n") > 100_000
    assert result.log.stat().st_mode & 0o077 == 0


def test_short_output_is_kept_whole() -> None:
    assert shorten("x" * MAX_OUTPUT, None) == "x" * MAX_OUTPUT


@pytest.mark.requirement("F42")
async def test_validator_runs_in_its_own_directory_and_writes_its_report_aside(around: Surroundings) -> None:
    (around.root / "sub").mkdir()
    code = "import sys, os; open(sys.argv[1], 'w').write('<x/>'); print(os.getcwd()); raise SystemExit(1)"
    reporter = validator((sys.executable, "-c", code, REPORT), directory="sub")

    result = await run_validator(reporter, around)

    assert result.output == str(around.root / "sub")
    assert list((around.root / "sub").iterdir()) == []


@pytest.mark.requirement("B39")
async def test_all_validators_together_are_bounded_and_keep_their_order(around: Surroundings) -> None:
    slow, quick = validator("exec sleep 300", name="slow"), validator("exit 1", name="quick")

    results = await run_validators([slow, quick], around, timeout=0.5)

    assert [(result.validator.name, result.status) for result in results] == [("slow", "timeout"), ("quick", "red")]


@pytest.mark.requirement("B39")
async def test_validator_whose_turn_comes_after_the_cap_is_not_called_red(around: Surroundings) -> None:
    many = [validator("exec sleep 300", name=str(number)) for number in range(3)]

    results = await run_validators(many, around, timeout=0.5)

    assert [result.status for result in results] == ["timeout", "timeout", "not run"]
    assert results[0].validator.timeout <= 0.5


@pytest.mark.requirement("F60")
async def test_cancel_ends_validators_and_their_children(around: Surroundings, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "began")
    hanging = validator(f"echo yes > {tmp_path / 'began'}; sleep 300 & sleep 300")

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: run_validators([hanging], around, timeout=300))
        await anyio.to_thread.run_sync((tmp_path / "began").read_text)
        group.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (("src/a.py",), ["ruff", "tests", "all"]),
        (("docs/a.md",), ["all"]),
        (("web/a.ts", "b.py"), ["ruff", "eslint", "tests", "all"]),
        (None, ["ruff", "eslint", "tests", "all"]),
        ((), ["all"]),
    ],
)
@pytest.mark.requirement("S2-validation")
def test_change_concerns_validators_by_their_paths_fast_ones_first(
    changed: tuple[str, ...] | None, expected: list[str]
) -> None:
    validators = [
        validator("x", name="all", kind="test"),
        validator("x", name="tests", kind="test", paths=("**/*.py",)),
        validator("x", name="ruff", paths=("*.py",)),
        validator("x", name="eslint", paths=("web/**",)),
    ]

    names = [each.name for each in concerned(validators, changed)]

    assert sorted(names) == sorted(expected)
    assert [name for name in names if name in ("ruff", "eslint")] == names[
        : len(names) - sum(n in ("all", "tests") for n in names)
    ]


@pytest.mark.requirement("B39")
def test_fingerprint_ignores_what_differs_between_two_runs_of_the_same() -> None:
    def result(output: str, *findings: Finding) -> ValidatorResult:
        return ValidatorResult(validator=validator("x"), status="red", text=output, findings=findings)

    first = Finding(path="a.py", line=3, message="unused", code="F401")

    assert result("2 failed in 0.31s").fingerprint == result("2 failed in 1.02s").fingerprint
    assert result("a failed").fingerprint != result("b failed").fingerprint
    assert result("x", first).fingerprint == result("y", replace(first, line=9)).fingerprint
    assert result("x", first).fingerprint != result("x", replace(first, message="other")).fingerprint
