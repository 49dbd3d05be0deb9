"""What may be noted of a sample, asked of the engine's own desk for it."""

from __future__ import annotations

import pytest

from malbox_tui.engine.clock import SystemClock
from malbox_tui.engine.sample_marks import SampleMarks
from malbox_tui.model.commands import MarkSample
from malbox_tui.model.errors import RefusedCommand
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.sample import MAX_NOTES, Sample
from malbox_tui.store.memory import MemoryStore
from tests.store.builders import NOON, new_task, sha256_of

SHA = sha256_of("sample")


async def desk() -> tuple[MemoryStore, SampleMarks]:
    store = MemoryStore()
    await store.open(lambda events: None)
    await store.add(new_task())
    return store, SampleMarks(store, SystemClock())


async def sample_in(store: MemoryStore) -> Sample:
    (row,) = (await store.tasks(TaskQuery(), NOON)).rows
    return row.sample


async def test_a_note_has_its_author_and_a_sample_only_so_many() -> None:
    store, marks = await desk()
    for number in range(MAX_NOTES):
        assert (await marks.carry_out(MarkSample(sha256=SHA, note=f"note {number}"), "ana")).done
    with pytest.raises(RefusedCommand, match="can have no more"):
        await marks.carry_out(MarkSample(sha256=SHA, note="one more"), "ana")
    notes = (await sample_in(store)).notes
    assert len(notes) == MAX_NOTES
    assert {note.actor for note in notes} == {"ana"}
    assert (await marks.carry_out(MarkSample(sha256=SHA, tags=("still",)), "ben")).done


@pytest.mark.parametrize("sha256", [SHA[:8], SHA.upper(), "", "f" * 64, "\x1b" * 64])
async def test_a_sample_is_named_by_its_whole_sum(sha256: str) -> None:
    store, marks = await desk()
    with pytest.raises(RefusedCommand, match="There is no sample") as refused:
        await marks.carry_out(MarkSample(sha256=sha256, tags=("x",)), "ana")
    assert str(refused.value).isprintable()
    assert (await sample_in(store)).tags == ()


async def test_nothing_to_note_is_refused() -> None:
    _, marks = await desk()
    with pytest.raises(RefusedCommand, match="nothing to note"):
        await marks.carry_out(MarkSample(sha256=SHA), "ana")
