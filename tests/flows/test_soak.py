"""A short soak: a user, cancels and restarts at random, and nothing is lost; ``make soak`` is the long one."""

import sys
from pathlib import Path

import pytest

from bench.soak.run import Soak

pytestmark = [
    pytest.mark.requirement("F60", "F62"),
    pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc"),
]

PROMPTS = 30


async def test_soak_of_a_few_prompts(tmp_path: Path) -> None:
    report = await Soak(tmp_path, prompts=PROMPTS, restarts=PROMPTS, seed=2).run()
    prompts = {name: count for name, count in report.counts.items() if name.startswith("prompts, ")}
    assert sum(prompts.values()) == PROMPTS
    assert prompts["prompts, completed"] > 0
    assert len(report.lives) > 1
