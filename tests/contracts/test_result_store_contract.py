"""What every `ResultStore` does."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.model.errors import StoreError
from malbox_tui.model.report import ResultRef
from malbox_tui.ports import ResultStore
from malbox_tui.store.results import FileResultStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
async def results(folder: Path) -> AsyncIterator[ResultStore]:
    results = FileResultStore(folder)
    await results.open()
    yield results
    await results.close()


def put(
    results: ResultStore, token: str = "token-1", name: str = "report", content: bytes = b"{}", task_id: int = 7
) -> ResultRef:
    writer = results.begin(task_id, token, "yara", name, "json")
    writer.write(content)
    return writer.commit()


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


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


async def test_a_result_appears_only_when_it_is_whole(results: ResultStore, folder: Path) -> None:
    writer = results.begin(7, "token-1", "yara", "report", "json")
    writer.write(b"{")
    assert not (folder / "7/token-1/yara/report").exists()
    writer.write(b"}")
    writer.commit()
    assert files_in(folder) == ["7/token-1/yara/report"]


async def test_an_aborted_result_leaves_nothing(results: ResultStore, folder: Path) -> None:
    writer = results.begin(7, "token-1", "yara", "report", "json")
    writer.write(b"x" * 100_000)
    writer.abort()
    writer.abort()
    assert files_in(folder) == []


async def test_a_result_of_the_same_name_is_replaced(results: ResultStore, folder: Path) -> None:
    put(results, content=b"first")
    reference = put(results, content=b"second")
    assert await results.read(reference, 100) == b"second"
    assert len(files_in(folder)) == 1


async def test_aborting_leaves_an_earlier_result_of_the_name(results: ResultStore) -> None:
    reference = put(results, content=b"first")
    results.begin(7, "token-1", "yara", "report", "json").abort()
    assert await results.read(reference, 100) == b"first"


async def test_results_are_the_owners_alone(results: ResultStore, folder: Path) -> None:
    put(results)
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert modes == {True: 0o700, False: 0o600}


BAD_NAMES = ["", ".", "..", ".hidden", "a/b", "../x", "/etc/passwd", "a\x00b", "a\n", "ä", "x" * 101, "-rf", "a b"]


@pytest.mark.parametrize("bad", BAD_NAMES)
async def test_a_name_that_is_not_plain_is_refused(results: ResultStore, folder: Path, bad: str) -> None:
    for token, plugin, name in ((bad, "yara", "report"), ("token-1", bad, "report"), ("token-1", "yara", bad)):
        with pytest.raises(ValueError, match="plain name"):
            results.begin(7, token, plugin, name, "json")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["a", "A-1_b.c..d", "x" * 100, "report.partial"])
async def test_a_plain_name_is_taken(results: ResultStore, name: str) -> None:
    reference = put(results, name=name)
    await results.settle(7, "token-1")
    assert await results.read(reference, 10) == b"{}"


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd",
        "/etc/passwd",
        "7/token-1/../../../secret",
        "7/token-1/yara/../../../secret",
        "7/token-1/yara/..",
        "7/token-1/yara",
        "secret",
        "",
        "7//yara/report",
        "7/token-1/yara/link",
        "7/token-1/yara/missing",
    ],
)
async def test_reading_never_leads_outside(results: ResultStore, folder: Path, path: str) -> None:
    put(results)
    (folder / "secret").write_text("secret")
    (folder / "7/token-1/yara/link").symlink_to("/etc/passwd")
    with pytest.raises(StoreError):
        await results.read(ResultRef("report", "json", 2, "", path), 100)


async def test_settling_keeps_the_attempts_results_and_removes_the_others(results: ResultStore, folder: Path) -> None:
    put(results, "old-1")
    put(results, "old-2")
    kept = put(results, "token-1")
    put(results, "token-9", task_id=8)
    await results.settle(7, "token-1")
    assert files_in(folder) == ["7/token-1/yara/report", "8/token-9/yara/report"]
    assert await results.read(kept, 10) == b"{}"


async def test_settling_removes_results_that_never_became_whole(results: ResultStore, folder: Path) -> None:
    put(results)
    unfinished = results.begin(7, "token-1", "yara", "more", "json")
    await results.settle(7, "token-1")
    assert files_in(folder) == ["7/token-1/yara/report"]
    unfinished.abort()


async def test_an_attempt_without_results_can_be_settled_and_discarded(results: ResultStore, folder: Path) -> None:
    put(results, "old")
    await results.settle(7, "token-1")
    await results.settle(8, "token-1")
    await results.discard(9, "token-1")
    assert files_in(folder) == []


async def test_discarding_removes_only_the_attempts_results(results: ResultStore, folder: Path) -> None:
    gone = put(results, "token-1")
    put(results, "token-2")
    await results.discard(7, "token-1")
    assert files_in(folder) == ["7/token-2/yara/report"]
    with pytest.raises(StoreError):
        await results.read(gone, 10)
    await results.discard(7, "token-2")
    assert list(folder.iterdir()) == []


async def test_settled_results_are_there_after_reopening(results: ResultStore, folder: Path) -> None:
    reference = put(results)
    await results.settle(7, "token-1")
    await results.close()
    await results.close()
    other = FileResultStore(folder)
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
