"""The command line front: arguments in, the final answer on stdout, everything else on stderr (A66)."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from pathlib import Path

from agent_lsp import __version__
from agent_lsp.cli.exit_codes import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE
from agent_lsp.errors import AgentLspError, ConfigurationError


def run_command_line(arguments: Sequence[str]) -> int:
    """Parse and run; returns the exit code (A69)."""
    options = _parser().parse_args(arguments)
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    try:
        command: Callable[[argparse.Namespace], int] = options.run_command
        return command(options)
    except ConfigurationError as error:
        _say(error)
        return EXIT_USAGE
    except AgentLspError as error:
        _say(error)
        return EXIT_FAILED
    except BrokenPipeError:  # whoever read the answer has gone; what is left in the buffer has nowhere to go either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except OSError as error:
        _say(error)
        return EXIT_FAILED
    except KeyboardInterrupt:
        _say("interrupted")
        return EXIT_INTERRUPTED


def _say(what: object) -> None:
    from agent_lsp.approvals import visible  # what failed may tell texts of settings, hooks and servers

    print(f"agent-lsp: {visible(str(what))}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agent-lsp", description="An AI coding agent for any editor, through the language server protocol."
    )
    parser.add_argument("--version", action="version", version=f"agent-lsp {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    serve = _command(commands, "serve", "language server on stdio, for editors", "agent-lsp serve --log-level info")
    serve.add_argument("--stdio", action="store_true", help="the default; many editors add it")
    serve.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="warning")
    serve.add_argument("--log-file", type=Path, metavar="FILE", help="write the log to FILE instead of stderr")
    serve.set_defaults(run_command=_serve)

    run = _command(commands, "run", "run one prompt without an editor", 'agent-lsp run --prompt "Fix the failing test"')
    run.add_argument("--prompt", required=True, metavar="TEXT", help="what to do; - reads it from stdin")
    run.add_argument("--chapter", type=int, metavar="N", help="capability level, 1 to 4 (default: the whole product)")
    run.add_argument("--model", metavar="NAME", help="model name, instead of the one in settings")
    run.add_argument("--mode", help="permission mode: default, accept_edits, plan, dont_ask or bypass")
    run.add_argument("--output", choices=["text", "json", "stream-json"], default="text", help="what stdout carries")
    run.add_argument("--trust", action="store_true", help="trust what this workspace's settings execute and allow")
    run.add_argument("--no-validate", action="store_true", help="do not run the project's linters and tests at the end")
    which = run.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="ID", help="go on with this session; the beginning of its id will do")
    which.add_argument("--continue", action="store_true", dest="continue_", help="go on with the last session here")
    run.add_argument("--max-turns", type=int, metavar="N", help="bound on the model requests of the run")
    _add_workspace(run)
    run.set_defaults(run_command=_run)

    validate = _command(commands, "validate", "run the project's own linters and tests", "agent-lsp validate --json")
    validate.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    validate.add_argument("--trust", action="store_true", help="run them without a question")
    _add_workspace(validate)
    validate.set_defaults(run_command=_validate)

    doctor = _command(commands, "doctor", "whether all that a session needs is there", "agent-lsp doctor --json")
    doctor.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    doctor.add_argument("--offline", action="store_true", help="do not ask the model server")
    doctor.add_argument("--forget", action="store_true", help="forget what was found out about the model server before")
    doctor.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS", help="for the model's answers")
    _add_workspace(doctor)
    doctor.set_defaults(run_command=_doctor)

    schema = _command(
        commands, "schema", "the JSON Schema of the settings file", "agent-lsp schema > agent-lsp.schema.json"
    )
    schema.set_defaults(run_command=_schema)

    demo = _command(commands, "demo", "the whole loop on a small project, without key or network", "agent-lsp demo")
    demo.add_argument("--keep", action="store_true", help="keep the project's folder and print its path")
    demo.add_argument("--interactive", action="store_true", help="answer the permission prompts yourself")
    demo.set_defaults(run_command=_demo)

    hooks = commands.add_parser("hooks", help="what is configured to run at the hook events, and a dry run of it")
    _add_hooks(hooks.add_subparsers(required=True, metavar="COMMAND"))

    sessions = commands.add_parser("sessions", help="stored sessions: list, show, export, undo, delete")
    _add_sessions(sessions.add_subparsers(required=True, metavar="COMMAND"))

    trust = _command(commands, "trust", "what this workspace would execute, and your word on it", "agent-lsp trust")
    decision = trust.add_mutually_exclusive_group()
    decision.add_argument("--show", action="store_true", help="only show it")
    decision.add_argument("--revoke", action="store_true", help="trust none of it any longer")
    decision.add_argument("--yes", action="store_true", help="trust all of it without a question")
    _add_workspace(trust)
    trust.set_defaults(run_command=_trust)
    return parser


def _add_hooks(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    listing = _command(commands, "list", "all configured hooks, and why one is not run", "agent-lsp hooks list")
    _add_workspace(listing)
    listing.set_defaults(run_command=_hooks_list)

    test = _command(
        commands,
        "test",
        "which hooks an event would run",
        """agent-lsp hooks test PreToolUse --tool shell --args '{"command": "git push"}'""",
    )
    test.add_argument("event", metavar="EVENT", help="for example PreToolUse")
    test.add_argument("--tool", default="", metavar="NAME", help="the tool, or the sub-agent, that the event is about")
    test.add_argument("--args", metavar="JSON", help="the tool's arguments, or the task (default: none)")
    test.add_argument(
        "--run", nargs="?", const="", metavar="HOOK", help="really run one hook: that with this name, else the first"
    )
    test.add_argument("--trust", action="store_true", help="run it without a question")
    _add_workspace(test)
    test.set_defaults(run_command=_hooks_test)


def _add_sessions(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    listing = _command(
        commands, "list", "the sessions of this workspace, the last one first", "agent-lsp sessions list"
    )
    listing.add_argument("--json", action="store_true", help="one JSON array instead of a table")
    listing.set_defaults(run_command=_sessions("list_sessions"))

    show = _command(commands, "show", "one session as text", "agent-lsp sessions show 3f2a")
    _add_session(show)
    show.set_defaults(run_command=_sessions("show_session"))

    export = _command(commands, "export", "one session as a file", "agent-lsp sessions export 3f2a --output talk.md")
    _add_session(export)
    export.add_argument("--format", choices=["markdown", "json"], default="markdown")
    export.add_argument("--output", type=Path, metavar="FILE", help="where to write it (default: stdout)")
    export.set_defaults(run_command=_sessions("export_session"))

    undo = _command(commands, "undo", "put back what a turn changed in files", "agent-lsp sessions undo 3f2a")
    _add_session(undo)
    undo.add_argument("--turn", metavar="ID", help="the turn (default: the last one that changed anything)")
    undo.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    undo.set_defaults(run_command=_sessions("undo_turn"))

    delete = _command(commands, "delete", "delete sessions with all that was kept", "agent-lsp sessions delete 3f2a")
    delete.add_argument("sessions", nargs="+", metavar="ID", help="the beginning of the id will do")
    delete.set_defaults(run_command=_sessions("delete_sessions"))

    for command in (listing, show, export, undo, delete):
        _add_workspace(command)


def _add_session(command: argparse.ArgumentParser) -> None:
    command.add_argument("session", nargs="?", metavar="ID", help="the beginning of it will do (default: the last one)")


def _add_workspace(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cwd", type=Path, default=Path(), metavar="DIR", help="the workspace (default: here)")


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=summary, description=f"{summary}.", epilog=f"example: {example}")


# Each command is imported when it is run: none pays for another.


def _serve(options: argparse.Namespace) -> int:
    from agent_lsp.lsp.setup import serve_stdio

    return serve_stdio(log_level=options.log_level, log_file=options.log_file)


def _run(options: argparse.Namespace) -> int:
    from agent_lsp.cli.run import run_prompt

    return run_prompt(options)


def _demo(options: argparse.Namespace) -> int:
    from agent_lsp.cli.run import run_demo

    return run_demo(options)


def _hooks_list(options: argparse.Namespace) -> int:
    from agent_lsp.cli.hooks import show_hooks

    return show_hooks(options)


def _hooks_test(options: argparse.Namespace) -> int:
    from agent_lsp.cli.hooks import test_hooks

    return test_hooks(options)


def _sessions(name: str) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        from agent_lsp.cli import sessions

        command: Callable[[argparse.Namespace], int] = getattr(sessions, name)
        return command(options)

    return run


def _validate(options: argparse.Namespace) -> int:
    from agent_lsp.cli.validate import validate

    return validate(options)


def _doctor(options: argparse.Namespace) -> int:
    from agent_lsp.cli.doctor import examine

    return examine(options)


def _schema(options: argparse.Namespace) -> int:
    from agent_lsp.cli.schema import show_schema

    return show_schema(options)


def _trust(options: argparse.Namespace) -> int:
    from agent_lsp.cli.trust import decide_trust

    return decide_trust(options)
