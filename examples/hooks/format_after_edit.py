#!/usr/bin/env python3
"""PostToolUse on write_file and edit_file: format a Python file with ruff, where there is one; silent otherwise."""

import json
import shutil
import subprocess
import sys
from pathlib import Path


def main() -> int:
    payload = json.load(sys.stdin)
    root = Path(payload["cwd"])
    path = root / payload["args"]["path"]
    own = root / ".venv" / "bin" / "ruff"
    ruff = str(own) if own.is_file() else shutil.which("ruff")
    if ruff is None or payload.get("is_error") or path.suffix not in (".py", ".pyi"):
        return 0
    return subprocess.run([ruff, "format", "--quiet", "--force-exclude", "--", str(path)], check=False).returncode


sys.exit(main())
