#!/usr/bin/env python3
"""Notification: show it on the desktop, else in the agent's own log. Never fails."""

import json
import shutil
import subprocess
import sys

SHOWN = 200  # characters

message = json.load(sys.stdin).get("message", "")
if len(message) > SHOWN:
    message = f"{message[: SHOWN - 1]}…"

COMMANDS = (
    ["notify-send", "--app-name=agent-lsp", "--", "agent-lsp", message],
    [
        *("osascript", "-e", "on run arguments"),
        *("-e", 'display notification (item 1 of arguments) with title "agent-lsp"', "-e", "end run"),
        *("--", message),
    ],
)
for command in COMMANDS:
    if shutil.which(command[0]) is not None:
        try:
            if subprocess.run(command, capture_output=True, timeout=5, check=False).returncode == 0:
                sys.exit(0)
        except (OSError, subprocess.TimeoutExpired):
            pass
print(json.dumps({"systemMessage": message}))
