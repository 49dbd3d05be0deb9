"""`python -m tests.benchmarks [--json] [NAME…]`: the groups of figures by name, all when none is named."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial

from tests.benchmarks import (
    batches,
    console,
    cost,
    intake,
    machine,
    machines,
    pending,
    plugins,
    served,
    side_by_side,
    sqlite_writers,
    usr_bin,
    watched,
)
from tests.benchmarks.figures import Figure

GROUPS: dict[str, list[Callable[[], Iterator[Figure]]]] = {
    "machine": [machine.measure],
    "engine": [
        partial(machine.measure_load, "before"),
        machine.measure,
        side_by_side.measure,
        pending.measure,
        cost.measure,
        sqlite_writers.measure,
        partial(machine.measure_load, "after"),
    ],
    "batches": [batches.measure],
    "plugins": [plugins.measure],
    "usr-bin": [usr_bin.measure],
    "console": [console.measure],
    "served": [served.measure],
    "rig": [machines.measure],
    "watched": [watched.measure],
    "intake": [intake.measure],
}


def main(arguments: list[str]) -> int:
    """Measure and print; 2 for a name that isn't there. What was started is stopped, also when a signal ends it."""
    as_json = "--json" in arguments
    names = [argument for argument in arguments if argument != "--json"] or ["engine", "usr-bin", "console"]
    if unknown := sorted(set(names) - set(GROUPS)):
        sys.stderr.write(f"There is no benchmark {', '.join(unknown)}; there are {', '.join(GROUPS)}.\n")
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: sys.exit(128 + received))
    for name in names:
        for measure in GROUPS[name]:
            for figure in measure():
                sys.stdout.write((figure.as_json() if as_json else figure.as_line()) + "\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
