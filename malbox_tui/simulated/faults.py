"""What can go wrong in a simulated world, how often it does, and how often it did.

A fault strikes one call for one subject: a machine, a plugin, or what else the fault's name says. It strikes when a test asked for it
(`inject`), and else by chance, at its rate. A hit is counted where the fault takes effect, so a count says that it was felt.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from random import Random


class Fault(StrEnum):
    """Every fault there is; the comment above a group says what its subject is."""

    # a machine's name: calls of the provider
    CHECK_FAILS = "check_fails"
    REVERT_FAILS = "revert_fails"
    REVERT_HANGS = "revert_hangs"
    REVERT_LEAVES_OFF = "revert_leaves_off"
    REVERT_LEAVES_DIRT = "revert_leaves_dirt"
    STOP_FAILS = "stop_fails"
    STOP_HANGS = "stop_hangs"
    MACHINE_MISSING = "machine_missing"
    MACHINE_MISCONFIGURED = "machine_misconfigured"
    MACHINE_UNABLE = "machine_unable"
    SCREENSHOT_FAILS = "screenshot_fails"
    DUMP_FAILS = "dump_fails"
    CAPTURE_BREAKS = "capture_breaks"
    MACHINE_SLOW = "machine_slow"
    # a machine's name: its guest
    GUEST_NEVER_UP = "guest_never_up"
    GUEST_REFUSES = "guest_refuses"
    GUEST_LOST_IN_PUT = "guest_lost_in_put"
    GUEST_LOST_IN_EXECUTE = "guest_lost_in_execute"
    GUEST_LOST_WHEN_ASKED = "guest_lost_when_asked"
    GUEST_POWERED_OFF = "guest_powered_off"
    GUEST_REBOOTED = "guest_rebooted"
    SAMPLE_NEVER_ENDS = "sample_never_ends"
    OUTPUT_FLOODS = "output_floods"
    OUTPUT_TORN = "output_torn"
    # a plugin's name
    PLUGIN_CRASHES = "plugin_crashes"
    PLUGIN_HANGS = "plugin_hangs"
    PLUGIN_DEAF = "plugin_deaf"
    # a bench's name
    BENCH_BREAKS = "bench_breaks"
    ACQUIRE_FAILS = "acquire_fails"
    ACQUIRE_SLOW = "acquire_slow"
    RELEASE_FAILS = "release_fails"
    RELEASE_SLOW = "release_slow"
    # a sample's SHA-256
    SAMPLE_MISSING = "sample_missing"
    SAMPLE_CHANGED = "sample_changed"
    # the name of the call: store, extract
    QUARANTINE_FULL = "quarantine_full"
    QUARANTINE_FAILS = "quarantine_fails"
    QUARANTINE_SLOW = "quarantine_slow"
    # the name of the call: commit, settle, discard
    RESULTS_FULL = "results_full"
    RESULTS_FAIL = "results_fail"
    RESULTS_SLOW = "results_slow"
    # the name of the call: add, claim, write, note, renew, identify; the first two begin an outage
    STORE_FULL = "store_full"
    STORE_FAILS = "store_fails"
    STORE_SLOW = "store_slow"
    # a task's id, in digits: at a renewal of its lease
    LEASE_TAKEN_OVER = "lease_taken_over"


ALWAYS = math.inf
"""As many `times` as `Faults.inject` can be asked for."""


class Faults:
    """Says of each call whether a fault strikes it.

    `rates`: the chance of each fault, 0 to 1 a call; one that isn't named never comes by itself. `hits`: how often each struck.
    """

    def __init__(self, chance: Random, rates: Mapping[Fault, float]) -> None:
        self.rates = dict(rates)
        self.hits: Counter[Fault] = Counter()
        self._chance = chance
        self._asked_for: dict[tuple[Fault, str | None], float] = {}

    def inject(self, fault: Fault, subject: str | None = None, times: float = 1) -> None:
        """Let `fault` strike the next `times` calls for `subject`; None: for any subject."""
        self._asked_for[fault, subject] = self._asked_for.get((fault, subject), 0) + times

    def mend(self, fault: Fault, subject: str | None = None) -> None:
        """Take back what was injected and has not struck yet."""
        self._asked_for.pop((fault, subject), None)

    def calm(self) -> None:
        """From now on nothing goes wrong unless it is injected anew."""
        self.rates.clear()
        self._asked_for.clear()

    def strikes(self, fault: Fault, subject: str) -> bool:
        """Whether this call is struck; then it is counted as a hit."""
        struck = self._was_asked_for(fault, subject) or self._by_chance(fault)
        if struck:
            self.hits[fault] += 1
        return struck

    def _was_asked_for(self, fault: Fault, subject: str) -> bool:
        for key in ((fault, subject), (fault, None)):
            left = self._asked_for.get(key, 0)
            if left > 0:
                self._asked_for[key] = left - 1
                return True
        return False

    def _by_chance(self, fault: Fault) -> bool:
        rate = self.rates.get(fault, 0.0)
        return rate > 0 and self._chance.random() < rate
