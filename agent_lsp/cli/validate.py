"""``agent-lsp validate``: the same validators that run when the agent stops."""

import argparse
import json
import signal
import sys

import anyio
from anyio.abc import TaskStatus

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

    report, killed_by = anyio.run(_run, session)
    if killed_by == signal.SIGINT:
        raise KeyboardInterrupt
    if killed_by is not None:
        return 128 + killed_by
    if options.json:
        print(json.dumps({"report": to_json(report), "validators": to_json(results)}, ensure_ascii=False))
    else:
        _print(report, results)
    return EXIT_OK if report.status in ("green", "none") else EXIT_FAILED


async def _run(session: Session) -> tuple[ValidationReport, int | None]:
    """The report, and the signal that ended it early. No validator is left running, however often the signal comes."""
    killed_by: int | None = None
    report = ValidationReport(status="none")

    async def heed_signals(*, task_status: TaskStatus[None]) -> None:
        nonlocal killed_by
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            task_status.started()
            async for number in signals:
                killed_by = killed_by or number
                work.cancel()

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as work:
            if sys.platform != "win32":
                await group.start(heed_signals)
            report = await session.validate()
        group.cancel_scope.cancel()
    return report, killed_by


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
