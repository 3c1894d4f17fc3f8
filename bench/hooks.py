"""P6: what one passing command hook adds to a tool call."""

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

import anyio

from agent_lsp.approvals import ApprovalReply, ApprovalRequest
from agent_lsp.hooks.gate import TrustGate
from agent_lsp.hooks.runner import HookRunner, Occasion, Surroundings
from agent_lsp.hooks.settings import ConfiguredHook
from agent_lsp.models.scripted import ScriptedModel
from agent_lsp.processes import child_environment
from agent_lsp.settings.trust import TrustEverything
from agent_lsp.workspace import Place
from bench.measure import Line, clock

_TRUE = ("/bin/true",)
_ARGS = {"path": "src/example.py", "content": "a line of a file\n" * 200}


class _Nobody:
    async def ask(self, request: ApprovalRequest) -> ApprovalReply:
        raise AssertionError(request)


def one_hook(*, quick: bool) -> list[Line]:
    """The event's whole way through the runner, against spawn and wait of the same program with the same stdin."""
    ours, floor = anyio.run(_one_hook, 40 if quick else 400)
    return [Line(id="P6", what="one command hook that passes", ours=ours, floor=floor, budget=1.3)]


async def _one_hook(rounds: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        environment = child_environment(os.environ)
        runner = _runner(root, environment)
        occasion = Occasion(event="PreToolUse", subject="write_file", args=_ARGS, payload={"tool": "write_file"})
        payload = json.dumps({"event": "PreToolUse", "session_id": "bench", "args": _ARGS}).encode()
        ours, floor = [], []
        for number in range(rounds + 10):
            begun = clock()
            await runner.run(occasion)
            between = clock()
            subprocess.run(_TRUE, input=payload, env=environment, cwd=root, check=True)  # noqa: ASYNC221 (the floor)
            if number >= 10:
                ours.append(between - begun)
                floor.append(clock() - between)
        if any(run.decision != "passed" for run in runner.runs):
            raise AssertionError(runner.runs[-1])
        return statistics.median(ours), statistics.median(floor)


def _runner(root: Path, environment: dict[str, str]) -> HookRunner:
    hook = ConfiguredHook(
        event="PreToolUse", type="command", target=_TRUE, place=Place(source="bench"), name="true", blocking=True
    )
    runner = HookRunner(
        gate=TrustGate(trust=TrustEverything(), approver=_Nobody()), waiting=tuple, report=lambda _run: None
    )
    surroundings = Surroundings(root=root, session_id="bench", environment=environment, model=lambda: ScriptedModel(()))
    runner.configure((hook,), surroundings)
    return runner
