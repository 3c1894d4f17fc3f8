"""argv → front, imported lazily."""

import gc
import sys


def main() -> int:
    """The console script; returns the exit code (A69)."""
    if sys.argv[1:] == ["--version"]:  # answered without argparse: scripts ask this often, and it should cost nothing
        from agent_lsp import __version__

        sys.stdout.write(f"agent-lsp {__version__}\n")
        return 0
    if sys.argv[1:2] == ["serve"]:
        gc.disable()  # while importing, which makes only what stays; the server switches it on with the first answer
    from agent_lsp.cli import run_command_line

    return run_command_line(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
