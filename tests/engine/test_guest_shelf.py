"""How what a run left is kept: whole, and without holding the others up."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from malbox_tui.engine import clock
from malbox_tui.engine.guest_shelf import PIECE_BYTES, Shelf
from malbox_tui.model.errors import StoreError
from malbox_tui.model.report import ResultRef
from malbox_tui.ports import PluginJob, ResultStore

JOB = PluginJob(task_id=1, token="t", sample_name="sample")


class Paper:
    """A result store of one result, and its writer."""

    def __init__(self, room: int = 2**40) -> None:
        self.pieces: list[bytes] = []
        self.is_aborted = False
        self._room = room

    def begin(self, *_words: Any) -> Paper:
        return self

    def write(self, piece: bytes) -> None:
        self.pieces.append(piece)
        if sum(map(len, self.pieces)) > self._room:
            raise StoreError("no room")

    def commit(self) -> ResultRef:
        return ResultRef("picture", "file", sum(map(len, self.pieces)), "", "")

    def abort(self) -> None:
        self.is_aborted = True


@pytest.mark.parametrize("size_bytes", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 10 * PIECE_BYTES])
async def test_others_have_their_turn_after_each_piece_of_a_large_content(size_bytes: int) -> None:
    paper = Paper()
    content = bytes(range(256)) * (size_bytes // 256) + b"x" * (size_bytes % 256)
    seen: set[int] = set()

    async def another() -> None:
        while True:
            seen.add(len(paper.pieces))
            await clock.sleep(0)

    async with asyncio.TaskGroup() as group:
        turning = group.create_task(another())
        await clock.sleep(0)
        await Shelf(cast(ResultStore, paper), JOB, "guest-run").keep("picture", content, "file")
        turning.cancel()
    assert b"".join(paper.pieces) == content
    assert all(len(piece) <= PIECE_BYTES for piece in paper.pieces)
    assert seen >= set(range(len(paper.pieces)))


async def test_what_could_not_be_kept_whole_is_not_there_at_all() -> None:
    paper = Paper(PIECE_BYTES)
    shelf = Shelf(cast(ResultStore, paper), JOB, "guest-run")
    with pytest.raises(StoreError, match="no room"):
        await shelf.keep("picture", b"x" * 3 * PIECE_BYTES, "file")
    assert paper.is_aborted
    assert shelf.kept == ()
