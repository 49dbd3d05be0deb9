"""Notes and tags of samples: what people may keep of a content, and how much of it."""

from __future__ import annotations

import re

from malbox_tui.model.commands import CommandOutcome, MarkSample
from malbox_tui.model.errors import RefusedCommand
from malbox_tui.model.events import SampleMarked
from malbox_tui.model.queries import TaskFilter, TaskQuery
from malbox_tui.model.sample import (
    MAX_NOTE_CHARACTERS,
    MAX_NOTES,
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
    Marks,
    Note,
    Sample,
    marks_after,
    visible,
)
from malbox_tui.ports import Clock, Store

_SHA256 = re.compile(r"[0-9a-f]{64}")


class SampleMarks:
    """Checks what is to be noted, and has the store keep it."""

    def __init__(self, store: Store, wall: Clock) -> None:
        self._store = store
        self._wall = wall

    async def carry_out(self, action: MarkSample, actor: str) -> CommandOutcome:
        """Keep it, durably. Raises `RefusedCommand`, `StoreError`."""
        if not (action.note or action.tags or action.untags):
            raise RefusedCommand("There is nothing to note.")
        _check_texts(action)
        now = self._wall.now()
        sample = await self._sample(action.sha256)
        before = (sample.notes, sample.tags)
        after = marks_after(before, Note(now, actor, action.note) if action.note else None, action.tags, action.untags)
        if len(after[0]) > MAX_NOTES:
            raise RefusedCommand(f"The sample has {MAX_NOTES} notes, and can have no more; nothing was noted.")
        if len(after[1]) > MAX_TAGS:
            raise RefusedCommand(f"A sample has {MAX_TAGS} tags at most; nothing was noted.")
        if after == before:
            return CommandOutcome(done=True, message=f"Sample {sample.sha256[:12]} is so already.")
        await self._store.note(
            now, SampleMarked(sha256=sample.sha256, actor=actor, note=action.note, tags=action.tags, untags=action.untags)
        )
        return CommandOutcome(done=True, message=f"Sample {sample.sha256[:12]}: {_in_words(after)}.")

    async def _sample(self, sha256: str) -> Sample:
        """Raises `RefusedCommand` when there is none."""
        if _SHA256.fullmatch(sha256) is not None:
            page = await self._store.tasks(TaskQuery(where=TaskFilter(sha256_prefix=sha256), limit=1), self._wall.now())
            if page.rows:
                return page.rows[0].sample
        raise RefusedCommand(f"There is no sample {visible(sha256[:64])!r}.")


def _check_texts(action: MarkSample) -> None:
    if len(action.note) > MAX_NOTE_CHARACTERS:
        raise RefusedCommand(f"A note has {MAX_NOTE_CHARACTERS} characters at most; nothing was noted.")
    for tag in (*action.tags, *action.untags):
        if not 0 < len(tag) <= MAX_TAG_CHARACTERS or tag != tag.strip() or not tag.isprintable():
            problem = f"has to have 1 to {MAX_TAG_CHARACTERS} characters that can be printed, and no spaces around them"
            raise RefusedCommand(f"A tag {problem}; nothing was noted.")


def _in_words(marks: Marks) -> str:
    notes, tags = marks
    tagged = f"tags {', '.join(map(visible, tags))}" if tags else "no tags"
    return f"{len(notes)} note{'' if len(notes) == 1 else 's'}, {tagged}"
