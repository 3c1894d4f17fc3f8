"""``agent-lsp trust``: what a workspace would execute or widen, and the decision about it (F70)."""

import argparse
import sys

from agent_lsp.cli.exit_codes import EXIT_FAILED, EXIT_OK
from agent_lsp.cli.lines import one_line
from agent_lsp.session.trust import WorkspaceTrust, workspace_trust


def decide_trust(options: argparse.Namespace) -> int:
    """Show everything with its state, then grant or revoke."""
    workspace = workspace_trust(options.cwd)
    _show(workspace)
    if options.revoke:
        print(f"Revoked: {workspace.revoke()}")
        return EXIT_OK
    if options.show or not workspace.waiting:
        return EXIT_OK
    if not options.yes and not _is_yes():
        print("Nothing was trusted.")
        return EXIT_FAILED
    workspace.grant()
    print("Trusted, until it changes.")
    return EXIT_OK


def _show(workspace: WorkspaceTrust) -> None:
    for item in workspace.items:
        print(f"{'waiting' if item in workspace.waiting else 'trusted'}  {one_line(item)}")
    if not workspace.items:
        print("This workspace's settings execute nothing and widen no permission.")


def _is_yes() -> bool:
    if not sys.stdin.isatty():
        print("There is no terminal to ask on; say --yes to trust all of this.", file=sys.stderr)
        return False
    print("Trust all of this? y trusts, anything else does not: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
