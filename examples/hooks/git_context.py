#!/usr/bin/env python3
"""UserPromptSubmit: tell the model the current branch; silent outside of a git repository.

Not what is changed: the repository's own settings may name programs (filters, fsmonitor) that `git status` starts.
"""

import json
import subprocess
import sys

payload = json.load(sys.stdin)
try:
    done = subprocess.run(
        ["git", "branch", "--show-current"],
        cwd=payload["cwd"],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
except OSError:
    sys.exit(0)
branch = done.stdout.strip()
if branch:
    print(json.dumps({"additional_context": f"git branch: {branch}"}))
