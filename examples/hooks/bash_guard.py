#!/usr/bin/env python3
"""PreToolUse on Bash, written for other agents: a download is not piped into a shell, and `rm -r` asks first."""

import json
import re
import sys

DOWNLOAD_AND_RUN = re.compile(r"\b(curl|wget)\b[^;&]*\|\s*(sudo\s+)?(ba|z|k|da)?sh\b")
RECURSIVE_REMOVAL = re.compile(r"\brm\s+(-\S+\s+)*(-\w*[rR]|--recursive\b)")

payload = json.load(sys.stdin)
command = payload["tool_input"]["command"]
decision = None
if payload["tool_name"] == "Bash" and DOWNLOAD_AND_RUN.search(command):
    decision = ("deny", "Save the download to a file and read it before you run it.")
elif payload["tool_name"] == "Bash" and RECURSIVE_REMOVAL.search(command):
    decision = ("ask", "This removes directories.")

if decision is not None:
    output = {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision[0],
        "permissionDecisionReason": decision[1],
    }
    print(json.dumps({"hookSpecificOutput": output}))
