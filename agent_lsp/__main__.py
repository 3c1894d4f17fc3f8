"""argv → front, imported lazily."""

import gc
import sys


def main() -> int:
    """The console script; returns the exit code (A69)."""
    if sys.argv[1:] == ["--version"]:  # answered without argparse: scripts ask this often, and it should cost nothing
        from agent_lsp import __version__

        sys.stdout.write(f"agent-lsp {__version__}\n")
        return 0
    gc.disable()  # imports make only what stays; each front switches it on when it has what it needs
    from agent_lsp.cli.main import run_command_line

    return run_command_line(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
