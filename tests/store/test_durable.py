"""Rounds of syncs serve everyone who waits, and one's failure is no other's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from malbox_tui.model.errors import StoreError
from malbox_tui.store import durable
from malbox_tui.store.durable import SHARED_FROM, Durable, GroupSync


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
