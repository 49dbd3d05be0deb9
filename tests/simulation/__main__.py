"""`python -m tests.simulation --seeds N --first-seed M [--jobs J]`: run seeds, show what they reached, and how one of them failed."""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation import hits
from tests.simulation.run import run_seed
from tests.simulation.seeds import Tally, run_seeds

TOLD_EVERY_S = 15.0
FAILURES_SHOWN = 5


def main() -> int:
    """The exit status: 0 when every seed held and everything was reached often enough."""
    asked = _arguments()
    began = time.monotonic()
    tally = run_seeds(asked.first_seed, asked.seeds, asked.jobs, _Progress(asked.seeds), first_failure=asked.first_failure)
    seconds = time.monotonic() - began
    rare = hits.too_rare(tally.hits, tally.seeds)
    if tally.failed:
        _show_failures(tally)
    if asked.seeds > 1:
        _say(*hits.table(tally.hits))
    speed = tally.seeds / seconds
    _say(f"{tally.seeds:,} seeds, {tally.steps:,} steps, {seconds:.1f} s: {speed:.1f} seeds/s, {tally.failed} failed")
    if rare:
        _say(f"Reached less than {hits.ENOUGH} times in {hits.ENOUGH_IN} seeds:", *(f"  {name}" for name in rare))
    return 1 if tally.failed or rare else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="how many seeds to run")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=None, help="how many processes; one a core by itself")
    parser.add_argument("--first-failure", action="store_true", help="stop at the first chunk of seeds in which one fails")
    return parser.parse_args()


class _Progress:
    """Tells now and then how far it is."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._told_at = time.monotonic()

    def __call__(self, tally: Tally) -> None:
        if time.monotonic() - self._told_at > TOLD_EVERY_S:
            self._told_at = time.monotonic()
            sys.stderr.write(f"{tally.seeds:,} of {self._seeds:,} seeds, {tally.failed} failed\n")


def _show_failures(tally: Tally) -> None:
    first = run_seed(tally.failures[0].seed, remember=True)
    _say(f"seed {first.seed}, the latest steps and events:", *(f"  {line}" for line in first.story))
    for verdict in tally.failures[:FAILURES_SHOWN]:
        _say("", f"seed {verdict.seed} failed: {verdict.failure}", f"Replay it: make simulate SEEDS=1 FIRST_SEED={verdict.seed}")
    if tally.failed > FAILURES_SHOWN:
        more = ", ".join(str(verdict.seed) for verdict in tally.failures[FAILURES_SHOWN:])
        _say("", f"{tally.failed} seeds failed in all; some more: {more}")


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
