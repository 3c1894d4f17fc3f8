"""``agent-lsp hooks``: what is configured, and what an event would run (F11)."""

import argparse
import json
import sys

from agent_lsp.approvals import visible
from agent_lsp.cli.exit_codes import EXIT_FAILED, EXIT_OK
from agent_lsp.cli.lines import one_line
from agent_lsp.errors import ConfigurationError
from agent_lsp.session.inspect import HookState, list_hooks


def show_hooks(options: argparse.Namespace) -> int:
    """List all hooks with their place and state, then what is wrong with others."""
    report = list_hooks(options.cwd)
    for state in report.hooks:
        print(_described(state))
    if not report.hooks:
        print("No hooks are configured.")
    for problem in report.problems:
        print(f"problem: {one_line(problem)}")
    return EXIT_OK


def _described(state: HookState) -> str:
    hook = state.hook
    details = [
        f"matcher {hook.matcher.text}" if hook.matcher.text else "",
        f"if {hook.condition.text}" if hook.condition is not None else "",
        "blocking" if hook.blocking else "",
        f"on failure {hook.on_failure}" if hook.on_failure != "ignore" else "",
        f"timeout {hook.timeout:g} s",
        "trusted" if state.trusted else "not trusted, so it is not run: see agent-lsp trust",
    ]
    lines = f"{hook.event}  {hook.type}  {hook.text}", str(hook.place), ", ".join(filter(None, details))
    return "\n    ".join(map(one_line, lines))


def test_hooks(options: argparse.Namespace) -> int:
    """Say which hooks of an event match and why others do not; with ``--run``, run one."""
    from agent_lsp.session.hook_test import dry_run, run_hook

    try:
        args = None if options.args is None else json.loads(options.args)
    except ValueError as error:
        raise ConfigurationError(f"--args is not JSON: {error}") from error
    if not isinstance(args, dict | None):
        raise ConfigurationError("--args must be a JSON object")
    tests = dry_run(options.cwd, options.event, options.tool, args)
    for test in tests:
        print(f"{'runs' if test.mismatch is None else 'not '}  {one_line(f'{test.hook.name}  ({test.hook.place})')}")
        if test.mismatch is not None:
            print(f"      {one_line(test.mismatch)}")
    if not tests:
        print(f"No hook is configured for {options.event}.")
    if options.run is None:
        return EXIT_OK
    named = [test for test in tests if test.hook.name == options.run]
    chosen = named or [test for test in tests if test.mismatch is None and not options.run]
    if not chosen:
        raise ConfigurationError(f"There is no hook {options.run or 'that matches'} for {options.event}")

    import anyio

    from agent_lsp.cli.terminal import TerminalApprover

    approver = TerminalApprover(sys.stdin, sys.stderr)
    ran = anyio.run(run_hook, options.cwd.resolve(), chosen[0].hook, options.tool, args, approver, options.trust)
    print(f"{ran.decision}{f': {one_line(ran.reason)}' if ran.reason else ''}")
    print(f"exit code {ran.exit_code}, {ran.duration:.2f} s" if ran.exit_code is not None else f"{ran.duration:.2f} s")
    if ran.stderr:
        print(f"stderr:\n{visible(ran.stderr)}")
    if ran.message:
        print(f"message: {one_line(ran.message)}")
    if ran.effect:
        print(f"answer: {one_line(json.dumps(dict(ran.effect), ensure_ascii=False))}")
    return EXIT_FAILED if ran.decision in ("failed", "skipped") else EXIT_OK
