#!/usr/bin/env python3
"""UserPromptSubmit: tell the model the current branch and what is changed; silent outside of a git repository."""

import json
import os
import subprocess
import sys

MOST_LINES = 40

payload = json.load(sys.stdin)
try:
    done = subprocess.run(
        # The repository's own settings must not start a program here, and no lock must get into the user's way.
        ["git", "-c", "core.fsmonitor=false", "status", "--short", "--branch"],
        cwd=payload["cwd"],
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
except OSError:
    sys.exit(0)
if done.returncode == 0:
    branch, *changes = done.stdout.splitlines()
    shown = changes[:MOST_LINES]
    if len(changes) > MOST_LINES:
        shown.append(f"and {len(changes) - MOST_LINES} more")
    lines = [f"git branch: {branch.removeprefix('## ')}", "git status:", *(shown or ["nothing is changed"])]
    print(json.dumps({"additional_context": "\n".join(lines)}))
