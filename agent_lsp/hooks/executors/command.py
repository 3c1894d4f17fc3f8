"""Runs a hook as a program: the payload on stdin, the exit code and the output as the answer (B8, B9)."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent_lsp.hooks.answer import DEFAULT_REASON, Answer, UnreadableAnswer, parse_envelope
from agent_lsp.hooks.settings import VALIDATION, ConfiguredHook
from agent_lsp.processes import Program, ProgramResult, run_program

BLOCK_EXIT_CODE = 2
STDERR_SHOWN = 4_000  # characters
VALIDATION_SHOWN = 12_000  # characters of each stream: it is what the model mends the project by

_SHELL = ("cmd", "/d", "/c") if sys.platform == "win32" else ("/bin/sh", "-c")


async def run_command(
    hook: ConfiguredHook, payload: str, *, root: Path, environment: Mapping[str, str], variables: Mapping[str, str]
) -> Answer:
    """Run the hook's program at the workspace root. ``variables`` tells it what it is about."""
    command = (*_SHELL, hook.target) if isinstance(hook.target, str) else hook.target
    program = Program(
        command=command,
        cwd=root,
        environment={**environment, **variables},
        stdin=payload.encode("ascii"),
        timeout=hook.timeout,
    )
    try:
        result = await run_program(program)
    except (OSError, ValueError) as error:
        return Answer(failure=f"cannot be started: {error}")
    stderr = result.stderr.readable(STDERR_SHOWN).strip()
    answer = replace(_judge(result, stderr, hook), exit_code=result.exit_code, stderr=stderr)
    if hook.event == VALIDATION:
        printed = (result.stdout.readable(VALIDATION_SHOWN).strip(), result.stderr.readable(VALIDATION_SHOWN).strip())
        return replace(answer, output="\n".join(filter(None, printed)))
    return answer


def _judge(result: ProgramResult, stderr: str, hook: ConfiguredHook) -> Answer:
    if result.timed_out:
        return Answer(failure=f"timed out after {hook.timeout:g} s")
    try:
        answer = parse_envelope(result.stdout.text())
    except UnreadableAnswer as error:
        answer = Answer(failure=str(error))
    if result.exit_code == BLOCK_EXIT_CODE:  # whatever stdout says (F4)
        return Answer(blocked=True, reason=stderr or answer.reason or DEFAULT_REASON, message=answer.message)
    if result.exit_code != 0 and not answer.blocked:
        return Answer(failure=f"exit code {result.exit_code}{f': {stderr}' if stderr else ''}")
    return answer
