"""``agent-lsp validate``: the same validators that run when the agent stops."""

import argparse
import json
import signal
import sys

import anyio

from agent_lsp.agent.events import AgentEvent, ValidationReport, ValidatorFinished, to_json
from agent_lsp.approvals import visible
from agent_lsp.cli.exit_codes import EXIT_FAILED, EXIT_OK
from agent_lsp.cli.lines import one_line
from agent_lsp.cli.terminal import LifecycleLog, TerminalApprover
from agent_lsp.session.assemble import SessionOptions, open_session
from agent_lsp.session.session import Session


def validate(options: argparse.Namespace) -> int:
    """Run all validators now; returns 1 where one is red or was refused."""
    results: list[ValidatorFinished] = []
    log = LifecycleLog(sys.stderr)

    def hear(event: AgentEvent) -> None:
        log(event)
        if isinstance(event, ValidatorFinished):
            results.append(event)

    approver = TerminalApprover(sys.stdin, sys.stderr)
    session = open_session(SessionOptions(root=options.cwd, approver=approver, trusted=options.trust))
    session.subscribe(hear)

    report = anyio.run(_run, session)
    if isinstance(report, int):
        return 128 + report
    if options.json:
        print(json.dumps({"report": to_json(report), "validators": to_json(results)}, ensure_ascii=False))
    else:
        _print(report, results)
    return EXIT_OK if report.status in ("green", "none") else EXIT_FAILED


async def _run(session: Session) -> ValidationReport | int:
    """The report, or the signal that ended it; either way no validator is left running."""
    killed_by: int | None = None

    async def heed_signals() -> None:
        nonlocal killed_by
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                killed_by = number
                group.cancel_scope.cancel()

    report = ValidationReport(status="none")
    async with anyio.create_task_group() as group:
        if sys.platform != "win32":
            group.start_soon(heed_signals)
        report = await session.validate()
        group.cancel_scope.cancel()
    return report if killed_by is None else killed_by


def _print(report: ValidationReport, results: list[ValidatorFinished]) -> None:
    for result in results:
        print(f"{result.status:8} {one_line(result.name):24} {result.duration:6.1f} s")
    for finding in report.findings:
        place = ":".join(map(str, filter(None, (finding.path, finding.line, finding.column))))
        print(one_line(f"{place}: {' '.join(filter(None, (finding.code, finding.message)))}"))
    for result in results:
        if result.status in ("red", "timeout") and not any(finding.tool == result.name for finding in report.findings):
            print(f"\n{one_line(result.name)}:\n{visible(result.output)}")
    if not results:
        print("There is no validator: none is configured, and none was found.")
