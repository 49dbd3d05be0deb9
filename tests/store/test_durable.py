"""Rounds of syncs serve everyone who waits, and one's failure is no other's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.model.errors import StoreError
from malbox_tui.store import durable
from malbox_tui.store.durable import SHARED_FROM, Durable, GroupSync
from malbox_tui.store.quarantine import CartQuarantine
from malbox_tui.store.results import FileResultStore

PATIENCE_S = 30.0


def entry(folder: Path, name: str) -> Durable:
    source = folder / f"{name}.new"
    source.write_text(name)
    return Durable((source,), ((source, folder / name),), (folder,))


@pytest.mark.parametrize("entries", [1, SHARED_FROM, 40])
async def test_what_is_made_durable_lies_under_its_name(tmp_path: Path, entries: int) -> None:
    sync = GroupSync("the test")
    names = {f"file {number}" for number in range(entries)}
    await asyncio.gather(*(sync.make_durable(entry(tmp_path, name)) for name in names))
    sync.close()
    assert {path.name for path in tmp_path.iterdir()} == names


@pytest.mark.parametrize("syncfs_works", [True, False])
async def test_the_failure_of_one_is_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, syncfs_works: bool) -> None:
    if not syncfs_works:
        monkeypatch.setattr(durable, "_sync_file_systems", lambda round_: False)
    sync = GroupSync("the test")
    wanted = [entry(tmp_path, f"file {number}") for number in range(9)]
    wanted[4].files[0].unlink()
    results = await asyncio.gather(*(sync.make_durable(each) for each in wanted), return_exceptions=True)
    sync.close()
    assert [index for index, result in enumerate(results) if isinstance(result, StoreError)] == [4]
    assert len(list(tmp_path.iterdir())) == 8


async def test_those_who_wait_share_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    run_round = durable._run_round
    monkeypatch.setattr(durable, "_run_round", lambda round_: rounds.append(len(round_)) or run_round(round_))  # type: ignore[func-returns-value]
    sync = GroupSync("the test")
    await asyncio.gather(*(sync.make_durable(entry(tmp_path, f"file {number}")) for number in range(20)))
    sync.close()
    assert rounds == [1, 19]


async def test_one_who_left_before_the_round_is_not_served(tmp_path: Path) -> None:
    sync = GroupSync("the test")
    first = sync.make_durable(entry(tmp_path, "first"))
    second = sync.make_durable(entry(tmp_path, "second"))
    third = sync.make_durable(entry(tmp_path, "third"))
    second.cancel()
    await asyncio.gather(first, third)
    sync.close()
    assert {path.name for path in tmp_path.iterdir()} == {"first", "second.new", "third"}


class Disk:
    """What is asked of the disk, in order: (call, file name)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, str]] = []
        rename = Path.replace

        def renamed(source: Path, target: Path) -> Path:
            self.calls.append(("rename", source.name))
            return rename(source, target)

        monkeypatch.setattr("os.fsync", lambda descriptor: self.calls.append(("fsync", _name_of(descriptor))))
        monkeypatch.setattr(durable, "_libc", self)
        monkeypatch.setattr(Path, "replace", renamed)

    def syncfs(self, descriptor: int) -> int:
        self.calls.append(("syncfs", _name_of(descriptor)))
        return 0


def _name_of(descriptor: int) -> str:
    return Path(f"/proc/self/fd/{descriptor}").readlink().name


def test_few_are_synced_one_by_one_content_then_name_then_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    round_ = [entry(tmp_path, "a"), entry(tmp_path, "b")]
    disk = Disk(monkeypatch)
    assert durable._run_round(round_) == [None, None]
    contents, renames, folders = disk.calls[:2], disk.calls[2:4], disk.calls[4:]
    assert contents == [("fsync", "a.new"), ("fsync", "b.new")]
    assert renames == [("rename", "a.new"), ("rename", "b.new")]
    assert folders == [("fsync", tmp_path.name)] * 2


def test_many_are_synced_with_their_file_system_before_the_renames_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = [entry(tmp_path, f"file {number}") for number in range(SHARED_FROM)]
    disk = Disk(monkeypatch)
    assert durable._run_round(round_) == [None] * SHARED_FROM
    assert [call for call, _ in disk.calls] == ["syncfs", *["rename"] * SHARED_FROM, "syncfs"]


async def test_nobody_is_told_that_a_content_is_kept_before_its_round_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quarantine = CartQuarantine(tmp_path / "quarantine")
    await quarantine.open()
    with HeldRounds(monkeypatch) as rounds:
        storing = asyncio.ensure_future(quarantine.store(_chunks(b"content"), 100))  # noqa: TID251 - the test's own
        assert await asyncio.to_thread(rounds.begun.wait, PATIENCE_S)
        assert not storing.done()
        assert list(tmp_path.rglob("*.cart")) == []
        rounds.go_on.set()
        kept = await storing
    await quarantine.close()
    assert [path.stem for path in tmp_path.rglob("*.cart")] == [kept.sha256]


async def test_results_are_settled_only_when_their_round_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = FileResultStore(tmp_path / "results")
    await results.open()
    writer = results.begin(1, "token", "plugin", "report", "json")
    writer.write(b"{}")
    reference = writer.commit()
    with HeldRounds(monkeypatch) as rounds:
        settling = asyncio.ensure_future(results.settle(1, "token"))  # noqa: TID251 - the test's own
        assert await asyncio.to_thread(rounds.begun.wait, PATIENCE_S)
        assert not settling.done()
        rounds.go_on.set()
        await settling
    await results.close()
    assert any(path.name == reference.name for wanted in rounds.wanted for path in wanted.files)


class HeldRounds:
    """Rounds of syncs that wait to be let go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.wanted: list[Durable] = []
        self._run_round = durable._run_round
        monkeypatch.setattr(durable, "_run_round", self._run)

    def __enter__(self) -> HeldRounds:
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()

    def _run(self, round_: list[Durable]) -> list[OSError | None]:
        self.wanted += round_
        self.begun.set()
        self.go_on.wait()
        return self._run_round(round_)


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content
