"""Many seeds, on all cores, and what came of them together."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field

from tests.simulation import hits
from tests.simulation.run import Verdict, run_seed
from tests.simulation.same_each_time import quiet

CHUNK = 25
"""How many seeds a process runs before it tells and sweeps."""
FAILURES_KEPT = 20


@dataclass(slots=True)
class Tally:
    """The verdicts of seeds, added up. `failures` are the first, by seed; `failed` counts all."""

    seeds: int = 0
    steps: int = 0
    failed: int = 0
    hits: hits.Hits = field(default_factory=Counter)
    failures: list[Verdict] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.seeds += other.seeds
        self.steps += other.steps
        self.failed += other.failed
        self.hits.update(other.hits)
        self.failures = sorted([*self.failures, *other.failures], key=lambda verdict: verdict.seed)[:FAILURES_KEPT]


def run_seeds(
    first: int,
    seeds: int,
    jobs: int | None = None,
    on_progress: Callable[[Tally], None] | None = None,
    *,
    first_failure: bool = False,
) -> Tally:
    """Run `seeds` seeds from `first` on, in `jobs` processes (None: one a core); `on_progress` hears of each chunk.

    With `first_failure` it ends with the first chunk in which a seed failed.
    """
    jobs = jobs or os.cpu_count() or 1
    tally = Tally()
    chunks = list(_chunks(first, seeds, 1 if first_failure else max(1, min(CHUNK, seeds // jobs))))
    for done in map(_run_chunk, chunks) if jobs == 1 else _in_processes(chunks, jobs):
        tally.add(done)
        if on_progress is not None:
            on_progress(tally)
        if first_failure and tally.failed:
            break
    return tally


def _in_processes(chunks: list[range], jobs: int) -> Iterator[Tally]:
    # Spawned, not forked: nothing of the caller's threads or loops is in them.
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        for done in as_completed([pool.submit(_run_chunk, chunk) for chunk in chunks]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _chunks(first: int, seeds: int, size: int) -> Iterator[range]:
    for start in range(first, first + seeds, size):
        yield range(start, min(start + size, first + seeds))


def _run_chunk(seeds: range) -> Tally:
    tally = Tally()
    for seed in seeds:
        verdict = run_seed(seed)
        tally.seeds += 1
        tally.steps += verdict.steps
        tally.hits.update(verdict.hits)
        if verdict.failure is not None:
            tally.failed += 1
            tally.failures.append(verdict)
    with quiet():
        # What is dropped now has nothing to say.
        gc.collect()
    return tally
