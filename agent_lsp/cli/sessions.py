"""``agent-lsp sessions``: what is stored of a workspace's sessions, and what can be done with it (S1)."""

import argparse
import json
import os
import sys
import time
from dataclasses import asdict

from agent_lsp.approvals import visible
from agent_lsp.cli.exit_codes import EXIT_FAILED, EXIT_OK
from agent_lsp.cli.lines import one_line
from agent_lsp.session.stored import Summary, stored_sessions

_TITLE = 60


def list_sessions(options: argparse.Namespace) -> int:
    """A line for each session."""
    summaries = stored_sessions(options.cwd).list()
    if options.json:
        print(json.dumps([asdict(summary) for summary in summaries], ensure_ascii=False))
        return EXIT_OK
    for summary in summaries:
        print(_line(summary))
    if not summaries:
        print("There is no session in this workspace.")
    return EXIT_OK


def _line(summary: Summary) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.updated))
    turns = f"{summary.turns} turn{'' if summary.turns == 1 else 's'}"
    title = one_line(summary.title)
    shown = title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…"
    return f"{summary.id[:12]}  {when}  {turns:>9}  {shown}{'  (open)' if summary.is_open else ''}"


def show_session(options: argparse.Namespace) -> int:
    """A session for people to read on a terminal, with nothing in it that could mislead them."""
    print(visible(stored_sessions(options.cwd).markdown(options.session)), end="")
    return EXIT_OK


def export_session(options: argparse.Namespace) -> int:
    """A session as Markdown or JSON, on stdout or in a private file."""
    stored = stored_sessions(options.cwd)
    if options.format == "json":
        text = json.dumps(stored.json(options.session), ensure_ascii=False, indent=2) + "\n"
    else:
        text = stored.markdown(options.session)
    if options.output is None:
        print(text, end="")
        return EXIT_OK
    descriptor = os.open(options.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return EXIT_OK


def undo_turn(options: argparse.Namespace) -> int:
    """Put back what a turn changed; returns 1 where something was refused."""
    import anyio

    from agent_lsp.cli.terminal import TerminalApprover
    from agent_lsp.session.assemble import SessionOptions, open_session

    id_ = stored_sessions(options.cwd).find(options.session)
    approver = TerminalApprover(sys.stdin, sys.stderr)
    session = open_session(SessionOptions(root=options.cwd, approver=approver, resume=id_))
    try:
        report = anyio.run(session.undo, options.turn)
    finally:
        session.history.close()
    if options.json:
        print(json.dumps(asdict(report), ensure_ascii=False, default=str))
        return EXIT_FAILED if report.refused else EXIT_OK
    for restored in report.restored:
        print(f"{restored.what:9} {one_line(restored.display)}")
    for refused in report.refused:
        print(f"refused   {one_line(refused.display)}: {one_line(refused.reason)}")
        print(visible(refused.diff), end="")
    for note in report.not_covered:
        print(f"not covered: {one_line(note)}")
    if not report.restored and not report.refused:
        print("All files are what they were already.")
    return EXIT_FAILED if report.refused else EXIT_OK


def delete_sessions(options: argparse.Namespace) -> int:
    """Delete sessions; one that is open in another process ends it."""
    stored = stored_sessions(options.cwd)
    for text in options.sessions:
        print(f"deleted {stored.delete(text)}")
    return EXIT_OK
