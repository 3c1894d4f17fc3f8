"""What a soak measures: a sample of the server after each prompt, and what grew."""

import os
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

WARM_UP = 100
"""Prompts after which all is imported and all buffers are as large as they get."""
GROWTH = 4.0
"""Bytes of memory for each byte of history, at most (P12); shown, and not what a soak fails for."""
LEAK = 1.0
"""Descriptors or threads more after 100 prompts than before; a pool may have one more or less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A server after a prompt; sizes in bytes, ``cpu`` in seconds for this prompt."""

    seconds: float
    cpu: float
    memory: int
    history: int
    descriptors: int
    threads: int


@dataclass
class Report:
    """What happened. ``lives`` holds, of each server, a sample after each of its prompts."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0
    lives: list[list[Sample]] = field(default_factory=list)

    @property
    def longest(self) -> list[Sample]:
        return max(self.lives, key=len, default=[])

    def lines(self) -> Iterator[str]:
        yield from (f"{name:48} {count:>12,}" for name, count in sorted(self.counts.items()))
        yield f"{'seconds':48} {self.seconds:>12,.0f}"
        yield f"{'servers':48} {len(self.lives):>12,}"
        if len(warm := self.longest[WARM_UP:]) < 2:
            return
        yield f"of the server that lived longest, after {WARM_UP} prompts, until its prompt {len(self.longest)}:"
        for name in ("memory", "history", "descriptors", "threads"):
            first, last = getattr(warm[0], name), getattr(warm[-1], name)
            yield f"{name:48} {first:>12,} → {last:>12,}, {growth(warm, name):+,.1f} in 100 prompts"
        quarter = max(len(warm) // 4, 1)
        for name in ("seconds", "cpu"):
            first, last = (
                statistics.median(getattr(each, name) for each in some) for some in (warm[:quarter], warm[-quarter:])
            )
            yield f"{f'{name} a prompt, median of a quarter':48} {first:>12.3f} → {last:>12.3f}"
        yield f"{'memory by history':48} {self.memory_by_history:>12.2f} (P12: {GROWTH})"

    @property
    def leaks(self) -> bool:
        """Whether descriptors or threads grew."""
        warm = self.longest[WARM_UP:]
        return len(warm) > WARM_UP and any(growth(warm, name) > LEAK for name in ("descriptors", "threads"))

    @property
    def memory_by_history(self) -> float:
        """How many bytes the server has grown by for each byte of history, after it was warm."""
        warm = self.longest[WARM_UP:]
        return growth(warm, "memory") / max(growth(warm, "history"), 1) if len(warm) > WARM_UP else 0


def growth(samples: Sequence[Sample], name: str) -> float:
    """By how much something grew in 100 prompts."""
    values = [getattr(sample, name) for sample in samples]
    return 100 * statistics.linear_regression(range(len(values)), values).slope


def cpu_seconds(process_id: int) -> float:
    """What a process has used until now."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sample(process_id: int, *, seconds: float, cpu: float, history: int) -> Sample:
    """Measure a process."""
    process = Path(f"/proc/{process_id}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return Sample(
        seconds=seconds,
        cpu=cpu,
        memory=int(status["VmRSS"].split()[0]) * 1024,
        history=history,
        descriptors=len(list((process / "fd").iterdir())),
        threads=int(status["Threads"]),
    )
