"""Our engine and its peers on one machine in one run, in turns: ours, a peer, ours, the next peer, and that for some rounds."""

from __future__ import annotations

import importlib.util
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import embedded_peers, ours, server_peers, servers
from tests.benchmarks.figures import Comparison, Figure, median, percentile
from tests.benchmarks.fresh_process import MeasurementFailed, in_a_fresh_process
from tests.benchmarks.servers import ServerMissing
from tests.benchmarks.workload import Measured, Workload

ROUNDS = 3
RATE, DISPATCH, CANCEL = "durable_noop_tasks_per_s", "dispatch_{}_ms", "cancel_{}_ms"
CANCEL_STORED = "cancel_stored_{}_ms"
OURS = Workload(tasks=10_000, dispatches=30, cancels=10)


Address = str | ServerMissing
"""Where a server listens, or why it doesn't."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One engine that we stand beside. `module` is what it is imported as; `server` (None: embedded) the name of what it needs."""

    name: str
    module: str
    run: Callable[[str, Workload], Measured]
    load: Workload
    server: str | None = None

    def compared(self, ratio: float | None) -> Comparison:
        """What a figure of this peer says of it."""
        return Comparison(peer=str(self), embedded=self.server is None, ratio=ratio)

    def __str__(self) -> str:
        return self.name if self.server is None else f"{self.name} ({self.server})"


# The slower ones get fewer tasks, so that all of it takes minutes.
PEERS = (
    Peer("SqliteHuey", "huey", embedded_peers.huey, Workload(tasks=5_000, dispatches=30)),
    Peer("persist-queue", "persistqueue", embedded_peers.persist_queue, Workload(tasks=2_000)),
    Peer("litequeue", "litequeue", embedded_peers.litequeue, Workload(tasks=5_000)),
    Peer("litequeue with syncs", "litequeue", embedded_peers.litequeue_synced, Workload(tasks=5_000)),
    Peer("SAQ", "saq", server_peers.saq, Workload(tasks=5_000, dispatches=50, cancels=3), "Redis"),
    Peer("pgqueuer", "pgqueuer", server_peers.pgqueuer, Workload(tasks=5_000, dispatches=50, cancels=10), "PostgreSQL"),
    Peer(
        "procrastinate",
        "procrastinate",
        server_peers.procrastinate,
        Workload(tasks=2_000, dispatches=50, cancels=10),
        "PostgreSQL",
    ),
)


def measure() -> Iterator[Figure]:
    """Rates, dispatch and cancel of ours; then of each peer, with the ratio, or with why it could not be measured."""
    with ExitStack() as running:
        addresses = _serve(running)
        missing = {peer: why for peer in PEERS if (why := _why_missing(peer, addresses))}
        mine, theirs = _rounds(addresses, missing)
    yield from _of_ours(mine)
    for peer in PEERS:
        if peer in missing:
            yield Figure(RATE, None, "1/s", 0, compared=peer.compared(None), missing=missing[peer])
        else:
            yield from _of_peer(mine, peer, theirs[peer])


def _serve(running: ExitStack) -> dict[str, Address]:
    """By the name of each server that is needed; `running` stops them."""
    found: dict[str, Address] = {}
    starts: Mapping[str, Callable[[Path], str]] = {
        "Redis": lambda folder: running.enter_context(servers.redis(folder)),
        "PostgreSQL": lambda folder: running.enter_context(servers.postgres(folder, ("pgqueuer", "procrastinate"))),
    }
    for name, start in starts.items():
        if not any(peer.server == name for peer in PEERS):
            continue
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        try:
            found[name] = start(folder)
        except ServerMissing as why:
            found[name] = why
    return found


def _why_missing(peer: Peer, addresses: Mapping[str, Address]) -> str:
    if importlib.util.find_spec(peer.module) is None:
        return f"the package {peer.module} is not installed; make bench BENCH=engine installs it"
    address = addresses[peer.server] if peer.server is not None else ""
    return str(address) if isinstance(address, ServerMissing) else ""


def _rounds(addresses: Mapping[str, Address], missing: dict[Peer, str]) -> tuple[list[Measured], dict[Peer, list[Measured]]]:
    """All runs of ours, and of each peer; one that fails is added to `missing`."""
    mine: list[Measured] = []
    theirs: dict[Peer, list[Measured]] = {peer: [] for peer in PEERS}
    for number in range(ROUNDS):
        if len(missing) == len(PEERS):
            mine.append(in_a_fresh_process(ours.run, OURS))
        for peer in [peer for peer in PEERS if peer not in missing]:
            sys.stderr.write(f"round {number + 1} of {ROUNDS}: ours, {peer}\n")
            mine.append(in_a_fresh_process(ours.run, OURS))
            try:
                theirs[peer].append(in_a_fresh_process(peer.run, str(addresses.get(peer.server or "", "")), peer.load))
            except MeasurementFailed as failed:
                missing[peer] = f"it failed: {failed}"
    return mine, theirs


def _of_ours(mine: Sequence[Measured]) -> Iterator[Figure]:
    yield median(RATE, [run.tasks_per_s for run in mine], "1/s", tasks=OURS.tasks)
    yield median("durable_noop_processor_us", [run.processor_us for run in mine], "µs", tasks=OURS.tasks)
    for name, milliseconds in _waits(mine):
        for which, value in _summary(name, milliseconds):
            yield Figure(name.format(which), value, "ms", len(milliseconds))


def _of_peer(mine: Sequence[Measured], peer: Peer, theirs: Sequence[Measured]) -> Iterator[Figure]:
    rate = statistics.median(run.tasks_per_s for run in theirs)
    ratio = statistics.median(run.tasks_per_s for run in mine) / rate
    yield Figure(RATE, rate, "1/s", len(theirs), compared=peer.compared(ratio), tasks=peer.load.tasks)
    for (name, milliseconds), (_, our_milliseconds) in zip(_waits(theirs), _waits(mine), strict=True):
        if milliseconds:
            pairs = zip(_summary(name, milliseconds), _summary(name, our_milliseconds), strict=True)
            for (which, value), (_, our_value) in pairs:
                compared = peer.compared(value / our_value)
                yield Figure(name.format(which), value, "ms", len(milliseconds), compared=compared)


def _waits(runs: Sequence[Measured]) -> list[tuple[str, list[float]]]:
    """Each kind of wait, of all runs together."""
    return [
        (DISPATCH, [wait for run in runs for wait in run.dispatch_ms]),
        (CANCEL, [wait for run in runs for wait in run.cancel_ms]),
        (CANCEL_STORED, [wait for run in runs for wait in run.canceled_ms]),
    ]


def _summary(name: str, milliseconds: Sequence[float]) -> list[tuple[str, float]]:
    """The middle, and how bad it gets: of few cancels the worst, of many dispatches the 99th percentile."""
    worst = ("p99", percentile(milliseconds, 0.99)) if name == DISPATCH else ("max", max(milliseconds))
    return [("p50", statistics.median(milliseconds)), worst]
