"""``agent-lsp schema``: the JSON Schema of a settings file, for editors and for checks in CI."""

import argparse
import json

from agent_lsp.cli.exit_codes import EXIT_OK
from agent_lsp.session.settings_schema import settings_schema


def show_schema(_options: argparse.Namespace) -> int:
    """Print it."""
    print(json.dumps(settings_schema(), indent=2, ensure_ascii=False))
    return EXIT_OK
