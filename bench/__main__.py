"""Runs the measurements, prints one table and writes it as JSON: ``python -m bench [--quick] [--only P5]``."""

import argparse
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from bench import hooks, sessions, startup, turns
from bench.measure import Line

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--only", metavar="ID", help="one line, for example P5")
    options = parser.parse_args()
    measurements = {
        "P1": startup.initialize,
        "P2": startup.quick_commands,
        "P3": startup.first_request,
        "P5": turns.per_turn,
        "P6": hooks.one_hook,
        "P10": sessions.long_sessions,
    }
    if options.only is not None and options.only not in measurements:
        parser.error(f"measured are {', '.join(measurements)}")
    lines: list[Line] = []
    for id_, measure in measurements.items():
        if options.only in (None, id_):
            lines += measure(quick=options.quick)
    print(f"{'id':4} {'what':48} {'ours':>10} {'floor':>10} {'ratio':>7} {'budget':>7}")
    for line in lines:
        print(
            f"{line.id:4} {line.what:48} {line.ours * 1000:7.1f} ms {line.floor * 1000:7.1f} ms {line.ratio:6.2f}x"
            f" {f'{line.budget:.2f}x' if line.budget else '-':>7}"
        )
    RESULTS.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "quick": options.quick}
    body = {"machine": machine, "lines": [asdict(line) | {"ratio": line.ratio} for line in lines]}
    (RESULTS / "latest.json").write_text(json.dumps(body, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
