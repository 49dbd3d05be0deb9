"""Whoever stopped the intake finds it stopped after the next start."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from malbox_tui.model.errors import StoreError
from malbox_tui.store.pause_file import PauseFile, read_pause


async def test_what_was_kept_last_is_what_the_next_engine_finds(tmp_path: Path) -> None:
    path = tmp_path / "pause.json"
    book = PauseFile(path)
    assert await book.kept() is None
    await book.keep(None)
    await asyncio.gather(book.keep("paused by ana"), book.keep(None), book.keep("paused by b\\xf6b"))
    assert (await PauseFile(path).kept(), read_pause(path)) == ("paused by b\\xf6b",) * 2
    await book.keep(None)
    assert await PauseFile(path).kept() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"reason": 1}', b"\xff", b"[" * 100_000], ids=range(6))
async def test_one_that_can_not_be_read_pauses_and_can_be_resumed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pause.json"
    path.write_bytes(content)
    assert await PauseFile(path).kept() == "paused, by whom is not known (pause.json can't be read)"
    await PauseFile(path).keep(None)
    assert await PauseFile(path).kept() is None


async def test_where_it_can_not_be_written_it_is_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        await PauseFile(tmp_path / "nowhere" / "pause.json").keep("paused by ana")
    assert await PauseFile(tmp_path / "nowhere" / "pause.json").kept() is None
