"""How often what fails in a run, drawn from its seed."""

from __future__ import annotations

from random import Random

from malbox_tui.simulated.faults import Fault

MACHINE_FAULTS = (
    Fault.CHECK_FAILS,
    Fault.REVERT_FAILS,
    Fault.REVERT_HANGS,
    Fault.REVERT_LEAVES_OFF,
    Fault.REVERT_LEAVES_DIRT,
    Fault.STOP_FAILS,
    Fault.STOP_HANGS,
    Fault.MACHINE_MISSING,
    Fault.MACHINE_SLOW,
    Fault.GUEST_NEVER_UP,
)
GUEST_FAULTS = (
    Fault.GUEST_REFUSES,
    Fault.GUEST_LOST_IN_PUT,
    Fault.GUEST_LOST_IN_EXECUTE,
    Fault.GUEST_REBOOTED,
    Fault.SCREENSHOT_FAILS,
    Fault.DUMP_FAILS,
    Fault.CAPTURE_BREAKS,
    Fault.GUEST_POWERED_OFF,
    Fault.SAMPLE_NEVER_ENDS,
    Fault.OUTPUT_FLOODS,
    Fault.OUTPUT_TORN,
)
PLUGIN_FAULTS = (Fault.PLUGIN_CRASHES, Fault.PLUGIN_HANGS, Fault.PLUGIN_DEAF)
BENCH_FAULTS = (
    Fault.BENCH_BREAKS,
    Fault.ACQUIRE_FAILS,
    Fault.ACQUIRE_SLOW,
    Fault.RELEASE_FAILS,
    Fault.RELEASE_SLOW,
    Fault.SAMPLE_MISSING,
    Fault.SAMPLE_CHANGED,
    Fault.LEASE_TAKEN_OVER,
)
DISK_FAULTS = (
    Fault.QUARANTINE_FULL,
    Fault.QUARANTINE_FAILS,
    Fault.QUARANTINE_SLOW,
    Fault.RESULTS_FULL,
    Fault.RESULTS_FAIL,
    Fault.RESULTS_SLOW,
    Fault.STORE_FULL,
    Fault.STORE_FAILS,
    Fault.STORE_SLOW,
)


_SELDOM = (
    Fault.GUEST_REFUSES,
    Fault.GUEST_LOST_IN_PUT,
    Fault.GUEST_LOST_WHEN_ASKED,
    Fault.GUEST_REBOOTED,
    Fault.SCREENSHOT_FAILS,
    Fault.DUMP_FAILS,
    Fault.DUMP_FAILS,
    Fault.CAPTURE_BREAKS,
    Fault.MACHINE_MISCONFIGURED,
    Fault.MACHINE_UNABLE,
    Fault.GUEST_POWERED_OFF,
    Fault.GUEST_LOST_IN_EXECUTE,
    Fault.SAMPLE_NEVER_ENDS,
    Fault.OUTPUT_FLOODS,
    Fault.OUTPUT_TORN,
    Fault.PLUGIN_DEAF,
    Fault.REVERT_LEAVES_DIRT,
    Fault.RESULTS_SLOW,
)
"""What chance alone reaches too rarely."""
_RAREST = (
    Fault.OUTPUT_FLOODS,
    Fault.OUTPUT_TORN,
    Fault.OUTPUT_TORN,
    Fault.OUTPUT_TORN,
    Fault.GUEST_LOST_IN_EXECUTE,
    Fault.GUEST_LOST_IN_PUT,
    Fault.GUEST_LOST_WHEN_ASKED,
    Fault.GUEST_POWERED_OFF,
    Fault.GUEST_POWERED_OFF,
    Fault.GUEST_POWERED_OFF,
    Fault.GUEST_REBOOTED,
    Fault.GUEST_REBOOTED,
    Fault.GUEST_REBOOTED,
    Fault.GUEST_REFUSES,
    Fault.GUEST_REBOOTED,
    Fault.MACHINE_UNABLE,
    Fault.DUMP_FAILS,
    Fault.DUMP_FAILS,
    Fault.DUMP_FAILS,
    Fault.PLUGIN_DEAF,
    Fault.SAMPLE_NEVER_ENDS,
    Fault.SAMPLE_NEVER_ENDS,
    Fault.SAMPLE_NEVER_ENDS,
    Fault.SAMPLE_NEVER_ENDS,
    Fault.SAMPLE_NEVER_ENDS,
)
INJECTED = (*GUEST_FAULTS, *BENCH_FAULTS, *Fault, *_SELDOM, *_SELDOM, *_SELDOM, *_RAREST, *_RAREST, *_RAREST)

_RATES: tuple[tuple[tuple[Fault, ...], tuple[float, ...]], ...] = (
    (MACHINE_FAULTS, (0.05, 0.2, 0.4)),
    (GUEST_FAULTS, (0.2, 0.4, 0.8)),
    (PLUGIN_FAULTS, (0.02, 0.1, 0.3)),
    (BENCH_FAULTS, (0.1, 0.3)),
    (DISK_FAULTS, (0.01, 0.05, 0.15)),
)
"""Faults of a kind → how often one of them comes in a run that has it. What is called seldom fails more often."""


def rates(chance: Random) -> dict[Fault, float]:
    """Some faults in most runs, none in some: a run in which everything fails reaches little."""
    if chance.random() < 0.15:
        return {}
    drawn = {}
    for faults, values in _RATES:
        for fault in faults:
            if chance.random() < 0.2:
                drawn[fault] = chance.choice(values)
    return drawn
