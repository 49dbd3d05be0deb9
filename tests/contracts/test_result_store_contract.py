"""What every `ResultStore` does."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

import pytest

from malbox_tui.model.errors import StoreError
from malbox_tui.model.report import ResultRef
from malbox_tui.ports import ResultStore
from malbox_tui.simulated.results import SimulatedResults
from malbox_tui.simulated.world import World
from malbox_tui.store.results import FileResultStore
from tests.support.virtual_time import settle_loop


class Shelves(Protocol):
    """Where a result store keeps its things: `results()` gives an object over the same things each time."""

    def results(self) -> ResultStore: ...

    def paths(self) -> list[str]:
        """Where results lie, in order; what became no result would be there too."""
        ...

    def write(self, path: Path, content: bytes) -> None:
        """Write a file, as somebody else does."""
        ...

    def read(self, path: Path) -> bytes:
        """The content of a file."""
        ...

    def is_there(self, path: Path) -> bool:
        """Whether there is such a file."""
        ...


class DiskShelves:
    """A folder of `FileResultStore`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def results(self) -> ResultStore:
        return FileResultStore(self.folder)

    def paths(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

    def write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def is_there(self, path: Path) -> bool:
        return path.exists()


class SimulatedShelves:
    """The results of a simulated world, in which everything takes some steps of the loop and no time."""

    def __init__(self) -> None:
        self.world = World(1, lambda _seconds: settle_loop(20))

    def results(self) -> ResultStore:
        return SimulatedResults(self.world)

    def paths(self) -> list[str]:
        return sorted(self.world.results)

    def write(self, path: Path, content: bytes) -> None:
        self.world.files[path] = content

    def read(self, path: Path) -> bytes:
        return self.world.files[path]

    def is_there(self, path: Path) -> bool:
        return path in self.world.files


@pytest.fixture(params=["files", "simulated"])
def shelves(request: pytest.FixtureRequest, tmp_path: Path) -> Shelves:
    return SimulatedShelves() if request.param == "simulated" else DiskShelves(tmp_path / "results")


@pytest.fixture
async def results(shelves: Shelves) -> AsyncIterator[ResultStore]:
    results = shelves.results()
    await results.open()
    yield results
    await results.close()


def put(
    results: ResultStore, token: str = "token-1", name: str = "report", content: bytes = b"{}", task_id: int = 7
) -> ResultRef:
    writer = results.begin(task_id, token, "yara", name, "json")
    writer.write(content)
    return writer.commit()


async def test_a_result_comes_back_as_it_was(results: ResultStore) -> None:
    writer = results.begin(7, "token-1", "yara", "dump.bin", "bytes")
    writer.write(b"\x00\xff" * 1000)
    writer.write(b"")
    writer.write(b"end")
    content = b"\x00\xff" * 1000 + b"end"
    reference = writer.commit()
    assert reference == ResultRef(
        "dump.bin", "bytes", len(content), hashlib.sha256(content).hexdigest(), "7/token-1/yara/dump.bin"
    )
    assert await results.read(reference, 10**6) == content


async def test_an_empty_result_is_a_result(results: ResultStore) -> None:
    reference = results.begin(7, "token-1", "yara", "empty", "bytes").commit()
    assert reference.size_bytes == 0
    assert await results.read(reference, 10) == b""


async def test_reading_is_bounded(results: ResultStore) -> None:
    reference = put(results, content=b"0123456789")
    assert await results.read(reference, 4) == b"0123"
    assert await results.read(reference, 0) == b""
    assert await results.read(reference, -1) == b""


async def test_a_result_appears_only_when_it_is_whole(results: ResultStore, shelves: Shelves) -> None:
    writer = results.begin(7, "token-1", "yara", "report", "json")
    writer.write(b"{")
    assert "7/token-1/yara/report" not in shelves.paths()
    writer.write(b"}")
    writer.commit()
    assert shelves.paths() == ["7/token-1/yara/report"]


async def test_an_aborted_result_leaves_nothing(results: ResultStore, shelves: Shelves) -> None:
    writer = results.begin(7, "token-1", "yara", "report", "json")
    writer.write(b"x" * 100_000)
    writer.abort()
    writer.abort()
    assert shelves.paths() == []


async def test_a_result_of_the_same_name_is_replaced(results: ResultStore, shelves: Shelves) -> None:
    put(results, content=b"first")
    reference = put(results, content=b"second")
    assert await results.read(reference, 100) == b"second"
    assert len(shelves.paths()) == 1


async def test_aborting_leaves_an_earlier_result_of_the_name(results: ResultStore) -> None:
    reference = put(results, content=b"first")
    results.begin(7, "token-1", "yara", "report", "json").abort()
    assert await results.read(reference, 100) == b"first"


BAD_NAMES = ["", ".", "..", ".hidden", "a/b", "../x", "/etc/passwd", "a\x00b", "a\n", "ä", "x" * 101, "-rf", "a b"]


@pytest.mark.parametrize("bad", BAD_NAMES)
async def test_a_name_that_is_not_plain_is_refused(results: ResultStore, shelves: Shelves, bad: str) -> None:
    for token, plugin, name in ((bad, "yara", "report"), ("token-1", bad, "report"), ("token-1", "yara", bad)):
        with pytest.raises(ValueError, match="plain name"):
            results.begin(7, token, plugin, name, "json")
    assert shelves.paths() == []


@pytest.mark.parametrize("name", ["a", "A-1_b.c..d", "x" * 100, "report.partial"])
async def test_a_plain_name_is_taken(results: ResultStore, name: str) -> None:
    reference = put(results, name=name)
    await results.settle(7, "token-1")
    assert await results.read(reference, 10) == b"{}"


async def test_what_lies_nowhere_is_gone(results: ResultStore) -> None:
    put(results)
    for path in ("", "7", "7/token-1/yara", "7/token-1/yara/more", "7/token-1/yara/report/", "../7/token-1/yara/report"):
        with pytest.raises(StoreError):
            await results.read(ResultRef("report", "json", 2, "", path), 100)


async def test_settling_keeps_the_attempts_results_and_removes_the_others(results: ResultStore, shelves: Shelves) -> None:
    put(results, "old-1")
    put(results, "old-2")
    kept = put(results, "token-1")
    put(results, "token-9", task_id=8)
    await results.settle(7, "token-1")
    assert shelves.paths() == ["7/token-1/yara/report", "8/token-9/yara/report"]
    assert await results.read(kept, 10) == b"{}"


async def test_settling_removes_results_that_never_became_whole(results: ResultStore, shelves: Shelves) -> None:
    put(results)
    unfinished = results.begin(7, "token-1", "yara", "more", "json")
    await results.settle(7, "token-1")
    assert shelves.paths() == ["7/token-1/yara/report"]
    unfinished.abort()


async def test_an_attempt_without_results_can_be_settled_and_discarded(results: ResultStore, shelves: Shelves) -> None:
    put(results, "old")
    await results.settle(7, "token-1")
    await results.settle(8, "token-1")
    await results.discard(9, "token-1")
    assert shelves.paths() == []


async def test_discarding_removes_only_the_attempts_results(results: ResultStore, shelves: Shelves) -> None:
    gone = put(results, "token-1")
    put(results, "token-2")
    await results.discard(7, "token-1")
    assert shelves.paths() == ["7/token-2/yara/report"]
    with pytest.raises(StoreError):
        await results.read(gone, 10)
    await results.discard(7, "token-2")
    assert shelves.paths() == []


async def test_settled_results_are_there_after_reopening(results: ResultStore, shelves: Shelves) -> None:
    reference = put(results)
    await results.settle(7, "token-1")
    await results.close()
    await results.close()
    other = shelves.results()
    await other.open()
    assert await other.read(reference, 10) == b"{}"
    await other.close()


async def test_a_closed_result_store_refuses_work(results: ResultStore) -> None:
    reference = put(results)
    await results.close()
    with pytest.raises(StoreError):
        await results.read(reference, 10)
    with pytest.raises(StoreError):
        await results.settle(7, "token-1")


# --- files that somebody else writes, and files for somebody else ---


async def test_a_file_that_somebody_else_wrote_becomes_a_result(results: ResultStore, shelves: Shelves) -> None:
    place = results.place_for(7, "token-1", "guest-run", "network.pcap")
    shelves.write(place, b"0123456789")
    assert await results.take_in(7, "token-1", "guest-run", "network.pcap", 100) == (
        ResultRef(
            "network.pcap",
            "file",
            10,
            hashlib.sha256(b"0123456789").hexdigest(),
            "7/token-1/guest-run/network.pcap",
        ),
        True,
    )
    assert shelves.paths() == ["7/token-1/guest-run/network.pcap"]
    assert not shelves.is_there(place)


async def test_a_file_that_is_taken_in_is_cut_at_the_bound(results: ResultStore, shelves: Shelves) -> None:
    for bound, is_whole in ((10, True), (9, False), (0, False)):
        shelves.write(results.place_for(7, "token-1", "guest-run", "memory"), b"0123456789")
        reference, was_all = await results.take_in(7, "token-1", "guest-run", "memory", bound)
        assert (reference.size_bytes, was_all) == (bound, is_whole)
        assert await results.read(reference, 100) == b"0123456789"[:bound]


async def test_what_nobody_wrote_is_not_taken_in(results: ResultStore, shelves: Shelves) -> None:
    results.place_for(7, "token-1", "guest-run", "memory")
    with pytest.raises(StoreError):
        await results.take_in(7, "token-1", "guest-run", "memory", 100)
    assert shelves.paths() == []
    with pytest.raises(ValueError, match="not a plain name"):
        results.place_for(7, "token-1", "guest-run", "../up")


async def test_what_was_never_taken_in_is_gone_when_the_attempt_is_settled(results: ResultStore, shelves: Shelves) -> None:
    place = results.place_for(7, "token-1", "guest-run", "memory")
    shelves.write(place, b"half of it")
    await results.settle(7, "token-1")
    assert shelves.paths() == []


async def test_a_result_is_laid_out_for_somebody_else(results: ResultStore, shelves: Shelves, tmp_path: Path) -> None:
    reference = put(results, content=b"content")
    target = tmp_path / "laid-out"
    await results.lay_out(reference, target)
    assert shelves.read(target) == b"content"
    with pytest.raises(StoreError):
        await results.lay_out(reference, target)
    assert shelves.read(target) == b"content"


async def test_a_result_that_is_gone_is_not_laid_out(results: ResultStore, shelves: Shelves, tmp_path: Path) -> None:
    reference = put(results)
    await results.discard(7, "token-1")
    with pytest.raises(StoreError):
        await results.lay_out(reference, tmp_path / "laid-out")
    assert not shelves.is_there(tmp_path / "laid-out")


async def test_all_results_of_a_task_are_removed_and_no_other_ones(results: ResultStore, shelves: Shelves) -> None:
    kept = put(results, task_id=12)
    for token in ("first", "second"):
        put(results, token, content=b"12345", task_id=1)
    assert await results.remove(1) == 10
    assert shelves.paths() == [kept.path]
    assert await results.remove(1) == 0
