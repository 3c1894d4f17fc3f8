"""P1, P2, P3: what it takes to start."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Line, children_cpu, clock, medians
from bench.server import BenchServer

FLOORS = Path(__file__).parent / "floors"
AGENT = (str(Path(sys.executable).with_name("agent-lsp")),)


def initialize(*, quick: bool) -> list[Line]:
    """P1: spawn until ``initialize`` is answered, and the CPU of the whole life of the process."""
    found = medians(
        5 if quick else 21,
        {
            "ours": lambda: _initialize([*AGENT, "serve"]),
            "floor": lambda: _initialize([sys.executable, str(FLOORS / "bare_pygls.py")]),
        },
    )
    return [
        Line(id="P1", what=f"spawn to initialize, {kind}", ours=ours, floor=floor, budget=1.10)
        for kind, ours, floor in zip(("wall", "CPU"), found["ours"], found["floor"], strict=True)
    ]


def _initialize(command: Sequence[str]) -> tuple[float, float]:
    cpu, begun = children_cpu(), clock()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        params: dict[str, object] = {"processId": None, "rootUri": None, "capabilities": {}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
        process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        process.stdin.flush()
        length = 0
        while (header := process.stdout.readline()) not in (b"\r\n", b""):
            if header.lower().startswith(b"content-length"):
                length = int(header.split(b":")[1])
        assert b'"capabilities"' in process.stdout.read(length)
        answered = clock() - begun
        process.kill()
    return answered, children_cpu() - cpu


def quick_commands(*, quick: bool) -> list[Line]:
    """P2: ``agent-lsp --version`` against Python itself, ``hooks list`` against importing pydantic."""
    with tempfile.TemporaryDirectory() as bare, tempfile.TemporaryDirectory() as configured:
        settings = Path(configured) / ".agent-lsp" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"type": "command", "command": "true"}]}}))
        found = medians(
            9 if quick else 41,
            {
                "version": lambda: _run([*AGENT, "--version"]),
                "pass": lambda: _run([sys.executable, "-c", "pass"]),
                "bare": lambda: _run([*AGENT, "hooks", "list", "--cwd", bare]),
                "configured": lambda: _run([*AGENT, "hooks", "list", "--cwd", configured]),
                "pydantic": lambda: _run([sys.executable, "-c", "import pydantic"]),
            },
        )
    return [
        Line(id="P2", what=what, ours=found[ours][0], floor=found[floor][0], budget=1.5)
        for what, ours, floor in (
            ("agent-lsp --version", "version", "pass"),
            ("hooks list, no settings file", "bare", "pydantic"),
            ("hooks list, one settings file", "configured", "pydantic"),
        )
    ]


def _run(command: Sequence[str]) -> tuple[float]:
    begun = clock()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (clock() - begun,)


def first_request(*, quick: bool) -> list[Line]:
    """P3: spawn until the first model request arrives."""
    with BenchServer() as server, tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "OPENAI_API_KEY": "bench",
            "OPENAI_BASE_URL": server.base_url,
            "AGENT_LSP_MODEL": "bench",
            "XDG_CONFIG_HOME": folder,
            "XDG_STATE_HOME": folder,
        }

        def until_request(command: Sequence[str]) -> tuple[float]:
            server.arrivals.clear()
            begun = clock()
            subprocess.run(
                command, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            return (server.arrivals[0] - begun,)

        found = medians(
            3 if quick else 15,
            {
                "ours": lambda: until_request([*AGENT, "run", "--prompt", "hi"]),
                "openai": lambda: until_request([sys.executable, str(FLOORS / "openai_script.py")]),
                "stdlib": lambda: until_request([sys.executable, str(FLOORS / "stdlib_script.py")]),
            },
        )
    ours = found["ours"][0]
    return [
        Line(id="P3", what="spawn to first request, openai script", ours=ours, floor=found["openai"][0], budget=1.15),
        Line(id="P3", what="spawn to first request, stdlib (stretch)", ours=ours, floor=found["stdlib"][0], budget=3.5),
    ]
