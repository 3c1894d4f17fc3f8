"""``python -m bench.soak [--prompts 2000] [--seed N]``: runs the soak and prints what happened; N is random without."""

import argparse
import json
import secrets
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import anyio

from bench.soak.run import Soak

RESULTS = Path(__file__).parents[1] / "results"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.soak", description=__doc__)
    parser.add_argument("--prompts", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="agent-lsp-soak-") as directory:
        soak = Soak(Path(directory), prompts=options.prompts, restarts=options.prompts // 2, seed=options.seed)
        report = anyio.run(soak.run)
    print(*report.lines(), sep="\n")
    RESULTS.mkdir(exist_ok=True)
    lives = [[asdict(sample) for sample in life] for life in report.lives]
    (RESULTS / "soak.json").write_text(json.dumps({"seed": options.seed, "counts": report.counts, "lives": lives}))
    return 1 if report.leaks else 0


if __name__ == "__main__":
    sys.exit(main())
