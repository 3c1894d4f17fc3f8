"""What a measurement is, and how two programs are compared: interleaved runs, medians."""

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table; ``ours`` and ``floor`` are median seconds."""

    id: str
    what: str
    ours: float
    floor: float
    budget: float | None

    @property
    def ratio(self) -> float:
        return self.ours / self.floor


def medians(runs: int, measures: Mapping[str, Callable[[], tuple[float, ...]]]) -> dict[str, tuple[float, ...]]:
    """Run each measure in turn, ``runs`` times after one warm-up, and give the median of each of its figures."""
    figures: dict[str, list[tuple[float, ...]]] = {name: [] for name in measures}
    for number in range(runs + 1):
        for name, measure in measures.items():
            result = measure()
            if number:
                figures[name].append(result)
    return {name: tuple(map(statistics.median, zip(*rows, strict=True))) for name, rows in figures.items()}


def children_cpu() -> float:
    """CPU seconds of all children that have ended and been waited for."""
    times = os.times()
    return times.children_user + times.children_system


def clock() -> float:
    return time.perf_counter()
