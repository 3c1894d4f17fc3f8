"""``agent-lsp doctor``: one line for each check, ok, warn or fail, with what to do."""

import argparse
import json
from dataclasses import asdict

import anyio

from agent_lsp.cli.exit_codes import EXIT_FAILED, EXIT_OK
from agent_lsp.cli.lines import one_line
from agent_lsp.session.doctor import Check, diagnose


def examine(options: argparse.Namespace) -> int:
    """Run all checks; returns 1 where one fails."""
    options.cwd = options.cwd.resolve()
    return anyio.run(_examine, options)


async def _examine(options: argparse.Namespace) -> int:
    checks: list[Check] = []
    found = diagnose(options.cwd, ask_model=not options.offline, forget=options.forget, timeout=options.timeout)
    async for check in found:
        checks.append(check)
        if not options.json:
            print(_line(check), flush=True)
    ok = all(check.status != "fail" for check in checks)
    if options.json:
        print(json.dumps({"ok": ok, "checks": [asdict(check) for check in checks]}, ensure_ascii=False))
    return EXIT_OK if ok else EXIT_FAILED


def _line(check: Check) -> str:
    advice = ""
    if check.status != "ok":
        told = [check.advice, f"setting: {check.setting}" if check.setting else ""]
        advice = "".join(f"\n{'':17}→ {one_line(text)}" for text in told if text)
    return f"{check.status:5} {check.name:10} {one_line(check.text)}{advice}"
