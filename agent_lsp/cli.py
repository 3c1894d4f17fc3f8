"""The command line front: arguments in, the final answer on stdout, everything else on stderr (A66)."""

import argparse
import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from agent_lsp import __version__
from agent_lsp.errors import AgentLspError, ConfigurationError

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130


def run_command_line(arguments: Sequence[str]) -> int:
    """Parse and run; returns the exit code (A69)."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        command: str = options.command
        if command == "serve":
            return _serve(options)
        if command == "demo":
            return _demo(options)
        return _run(options)
    except ConfigurationError as error:
        print(f"agent-lsp: {error}", file=sys.stderr)
        return EXIT_USAGE
    except AgentLspError as error:
        print(f"agent-lsp: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("agent-lsp: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agent-lsp", description="An AI coding agent for any editor, through the language server protocol."
    )
    parser.add_argument("--version", action="version", version=f"agent-lsp {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = _command(commands, "serve", "language server on stdio, for editors", "agent-lsp serve --log-level info")
    serve.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="warning")
    serve.add_argument("--log-file", type=Path, metavar="FILE", help="write the log to FILE instead of stderr")

    run = _command(commands, "run", "run one prompt without an editor", 'agent-lsp run --prompt "Fix the failing test"')
    run.add_argument("--prompt", required=True, metavar="TEXT", help="what to do; - reads it from stdin")
    run.add_argument("--chapter", type=int, metavar="N", help="capability level, 1 to 4 (default: 4, all of them)")
    run.add_argument("--model", metavar="NAME", help="model name, instead of the one in settings")
    run.add_argument("--mode", help="permission mode: default, accept_edits, plan, dont_ask or bypass")
    run.add_argument("--output", choices=["text", "json", "stream-json"], default="text", help="what stdout carries")
    run.add_argument("--trust", action="store_true", help="let this workspace's settings widen permissions")
    run.add_argument("--max-turns", type=int, metavar="N", help="bound on the model requests of the run")
    run.add_argument("--cwd", type=Path, default=Path(), metavar="DIR", help="the workspace (default: here)")

    demo = _command(commands, "demo", "the whole loop on a small project, without key or network", "agent-lsp demo")
    demo.add_argument("--keep", action="store_true", help="keep the project's folder and print its path")
    demo.add_argument("--interactive", action="store_true", help="answer the permission prompts yourself")
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=summary, description=f"{summary}.", epilog=f"example: {example}")


def _serve(options: argparse.Namespace) -> int:
    from agent_lsp.lsp.setup import serve_stdio

    return serve_stdio(log_level=options.log_level, log_file=options.log_file)


def _demo(options: argparse.Namespace) -> int:
    import anyio

    from agent_lsp.session.demo import run_demo
    from agent_lsp.terminal import LifecycleLog, TerminalApprover

    gc.enable()
    approver = TerminalApprover(sys.stdin, sys.stderr) if options.interactive else None
    report = anyio.run(lambda: run_demo(LifecycleLog(sys.stderr), approver=approver, keep=options.keep))
    print(report.text)
    return EXIT_OK if report.fixed else EXIT_FAILED


def _run(options: argparse.Namespace) -> int:
    import anyio

    from agent_lsp.agent.events import TurnFinished, event_json, to_json
    from agent_lsp.session.assemble import SessionOptions, open_session
    from agent_lsp.terminal import LifecycleLog, TerminalApprover

    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    if not prompt.strip():
        raise ConfigurationError("The prompt is empty; give --prompt TEXT, or --prompt - and text on stdin")
    session = open_session(
        SessionOptions(
            root=options.cwd,
            approver=TerminalApprover(sys.stdin, sys.stderr),
            level=options.chapter,
            model_name=options.model,
            mode=options.mode,
            max_turns=options.max_turns,
            trusted=options.trust,
        )
    )
    for problem in session.problems:
        print(f"[Settings] {problem}", file=sys.stderr)
    session.subscribe(LifecycleLog(sys.stderr))
    if options.output == "stream-json":
        session.subscribe(lambda event: _print_json(sys.stdout, {"session_id": session.id, "event": event_json(event)}))

    session.connect()
    gc.freeze()
    gc.enable()
    finished: TurnFinished = anyio.run(session.run, prompt)
    if options.output == "json":
        body = to_json(finished)
        _print_json(sys.stdout, {"session_id": session.id, **(body if isinstance(body, dict) else {})})
    elif options.output == "text" and finished.error is None:
        print(finished.text)
    if finished.error is not None:
        raise AgentLspError(finished.error)
    return EXIT_INTERRUPTED if finished.stop_reason == "cancelled" else EXIT_OK


def _print_json(stream: TextIO, value: object) -> None:
    print(json.dumps(value, ensure_ascii=False), file=stream, flush=True)
