"""The simulation itself: that it is the same at every run, that it tells how to replay what failed, and five hundred seeds of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation import hits
from tests.simulation.run import run_seed
from tests.simulation.seeds import run_seeds

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TRACES = "from tests.simulation.run import run_seed; print(*(run_seed(seed).trace for seed in range(12)))"


def test_a_seed_takes_the_same_turns_and_tells_the_same_story_twice() -> None:
    first, second = (run_seed(3, remember=True) for _ in range(2))
    assert first == second
    assert first.trace == run_seed(3).trace, "remembering steps changes none"


@pytest.mark.slow
def test_a_seed_takes_the_same_turns_in_every_process() -> None:
    traces = {
        subprocess.run(
            [sys.executable, "-c", TRACES],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2", "random")
    }
    assert len(traces) == 1


@pytest.mark.slow
def test_five_hundred_seeds_hold_and_reach_everything() -> None:
    tally = run_seeds(0, hits.ENOUGH_IN)
    failures = [f"seed {failed.seed}: {failed.failure}" for failed in tally.failures]
    assert not failures, f"replay with: make simulate SEEDS=1 FIRST_SEED={tally.failures[0].seed}"
    assert hits.too_rare(tally.hits, tally.seeds) == []


def test_what_was_reached_too_rarely_is_named() -> None:
    reached = hits.Hits(dict.fromkeys(hits.EXPECTED, hits.ENOUGH))
    assert hits.too_rare(reached, hits.ENOUGH_IN) == []
    reached["ending: crash"] -= 1
    assert hits.too_rare(reached, hits.ENOUGH_IN) == [f"ending: crash: {hits.ENOUGH - 1} hits in {hits.ENOUGH_IN} seeds"]
    assert hits.too_rare(hits.Hits(), hits.ENOUGH_IN - 1) == [], "nothing is asked of a short run"


def test_moves_that_are_said_to_be_never_made_are_not_made() -> None:
    reached = run_seeds(0, 30, jobs=1).hits
    assert [name for name in hits.NEVER_MADE if reached[name]] == []
