"""The parts of the benchmarks work; with tiny numbers, which say nothing of speed. Peers take part where they are installed."""

from __future__ import annotations

import importlib.util
import sqlite3
from pathlib import Path

import pytest

from tests.benchmarks import batches, cost, debian, intake, ours, pending, side_by_side, sqlite_writers
from tests.benchmarks.filled_store import fill
from tests.benchmarks.fresh_process import MeasurementFailed, in_a_fresh_process
from tests.benchmarks.side_by_side import PEERS, Peer
from tests.benchmarks.workload import Measured, Workload

pytestmark = pytest.mark.slow

TINY = Workload(tasks=20, dispatches=2, cancels=2)
EMBEDDED = [peer for peer in PEERS if peer.server is None and importlib.util.find_spec(peer.module) is not None]


def test_our_engine_runs_a_workload() -> None:
    measured = ours.run(TINY)
    assert measured.tasks_per_s > 0
    assert [len(waits) for waits in (measured.dispatch_ms, measured.cancel_ms, measured.canceled_ms)] == [2, 2, 2]
    assert all(stored >= told > 0 for told, stored in zip(measured.cancel_ms, measured.canceled_ms, strict=True))


def test_each_embedded_peer_that_is_here_runs_a_workload() -> None:
    for peer in EMBEDDED:
        measured = in_a_fresh_process(peer.run, "", TINY)
        assert measured.tasks_per_s > 0, peer.name
        assert len(measured.dispatch_ms) == min(TINY.dispatches, peer.load.dispatches), peer.name


def test_ours_and_a_peer_take_turns_and_the_ratio_is_ours_to_the_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    _only(monkeypatch, Peer("sleeper", "json", _peer_that_takes_its_time, TINY))
    rows = list(side_by_side.measure())
    own = {figure.name: figure for figure in rows if figure.compared is None}
    theirs = {figure.name: figure for figure in rows if figure.compared is not None}
    assert own["durable_noop_tasks_per_s"].runs == theirs["durable_noop_tasks_per_s"].runs == 1
    rate, dispatch = theirs["durable_noop_tasks_per_s"], theirs["dispatch_p50_ms"]
    assert rate.compared is not None
    assert dispatch.compared is not None
    assert rate.compared.embedded
    assert rate.compared.ratio == pytest.approx((own["durable_noop_tasks_per_s"].value or 0) / 0.5)
    assert dispatch.compared.ratio == pytest.approx(1e6 / (own["dispatch_p50_ms"].value or 0))
    assert "cancel_p50_ms" not in theirs


def test_a_peer_that_breaks_is_named_with_what_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _only(monkeypatch, Peer("breaker", "json", _peer_that_breaks, TINY))
    *_, row = side_by_side.measure()
    assert row.compared is not None
    assert (row.compared.peer, row.value) == ("breaker", None)
    assert "ValueError: no such table" in row.missing


def test_a_peer_that_is_not_installed_and_one_without_its_server_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Peer("absent", "no_such_module", _peer_that_breaks, TINY)
    serverless = Peer("serverless", "json", _peer_that_breaks, TINY, "Redis")
    _only(monkeypatch, absent, serverless)
    monkeypatch.setenv("PATH", "/nowhere")
    missing = {row.compared.peer: row.missing for row in side_by_side.measure() if row.compared is not None}
    assert "no_such_module is not installed" in missing["absent"]
    assert missing["serverless (Redis)"] == "redis-server is not here, and there is no apt-get to install redis-server with"


def test_only_root_is_asked_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert debian.install("redis-server") == "only root can install the package redis-server"


def test_a_filled_store_is_one_the_engine_takes_its_tasks_from(tmp_path: Path) -> None:
    fill(tmp_path / "store.sqlite3", 50)
    assert pending.first_run_s(tmp_path / "store.sqlite3") > 0
    assert _states(tmp_path) == {"pending": 50}


def test_tasks_in_front_are_measured_and_those_behind_still_wait(tmp_path: Path) -> None:
    fill(tmp_path / "store.sqlite3", 2000)
    assert len(cost.costs_us(tmp_path / "store.sqlite3", 2000, tasks=20, runs=2)) == 2
    assert _states(tmp_path)["pending"] > 1000


@pytest.mark.parametrize("writer", [sqlite_writers.AiosqliteWriter, sqlite_writers.ThreadWriter])
def test_both_prototypes_of_a_writer_commit(writer: type[sqlite_writers.ThreadWriter]) -> None:
    wall_us, processor_us = sqlite_writers.task_us(writer, 20)
    assert wall_us > 0 < processor_us


def test_files_are_analysed_one_by_one_and_in_batches() -> None:
    figures = list(batches.measure(files=4, rounds=1))
    assert [figure.unit for figure in figures] == ["files/s", "ms/file"] * 4
    assert all(figure.value for figure in figures)


def test_folders_go_into_the_store_beside_a_loop_over_the_same_files() -> None:
    small, large = intake.Files(5, 100), intake.Files(40, 100)
    figures = list(intake.measure((small, large), rounds=1))
    assert [figure.unit for figure in figures] == ["files/s", "files/s", "MB"] * 2 + ["bytes"]
    assert all(figure.value for figure in figures[:-1])
    for ours_of_it, loop in ((figures[0], figures[1]), (figures[3], figures[4])):
        assert loop.compared is not None
        assert loop.compared.ratio == pytest.approx((ours_of_it.value or 0) / (loop.value or 1))


def test_a_measurement_in_a_process_of_its_own_returns_its_result_or_its_last_words() -> None:
    assert in_a_fresh_process(_peer_that_takes_its_time, "", TINY).tasks_per_s == 0.5
    with pytest.raises(MeasurementFailed, match="ValueError: no such table"):
        in_a_fresh_process(_peer_that_breaks, "", TINY)


def _peer_that_takes_its_time(_address: str, _load: Workload) -> Measured:
    return Measured(tasks_per_s=0.5, processor_us=1.0, dispatch_ms=[1e6, 1e6])


def _peer_that_breaks(_address: str, _load: Workload) -> Measured:
    raise ValueError("no such table")


def _only(monkeypatch: pytest.MonkeyPatch, *peers: Peer) -> None:
    """These peers, one round, tiny numbers, and no server but those that `peers` name."""
    monkeypatch.setattr(side_by_side, "PEERS", peers)
    monkeypatch.setattr(side_by_side, "ROUNDS", 1)
    monkeypatch.setattr(side_by_side, "OURS", TINY)


def _states(folder: Path) -> dict[str, int]:
    connection = sqlite3.connect(folder / "store.sqlite3")
    try:
        return dict(connection.execute("SELECT state, count(*) FROM task GROUP BY state"))
    finally:
        connection.close()
