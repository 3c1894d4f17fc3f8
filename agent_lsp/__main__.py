"""argv → front, imported lazily."""


def main() -> int:
    """The console script."""
    from agent_lsp.cli import run_command_line

    return run_command_line()


if __name__ == "__main__":
    raise SystemExit(main())
