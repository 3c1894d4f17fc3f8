#!/usr/bin/env python3
"""PostToolUse on every tool: append one JSON line for each executed call to .agent-lsp/audit.jsonl."""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

payload = json.load(sys.stdin)
entry = {
    "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
    "session": payload["session_id"],
    "agent": payload.get("agent", ""),
    "tool": payload["tool"],
    "args": payload["args"],
    "is_error": payload.get("is_error", False),
    "output_characters": len(payload.get("output", "")),
}
path = Path(payload["cwd"], ".agent-lsp", "audit.jsonl")
path.parent.mkdir(exist_ok=True)
descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
with os.fdopen(descriptor, "ab", buffering=0) as log:
    log.write(json.dumps(entry).encode() + b"\n")  # in one write, because hooks of several calls run side by side
