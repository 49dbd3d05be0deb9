"""Removing what is kept, giving it out, and counting it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec

from malbox_tui.model.upkeep import Cause, SampleForm, StoreFigures


class Removal(msgspec.Struct, frozen=True):
    """Something that the store has forgotten and whose files are to go: the results of `task_ids` and, unless it is empty, the content
    `sha256`. It is open until `UpkeepBook.close_removal`, over any end of the process."""

    number: int
    sha256: str
    task_ids: tuple[int, ...]


class Aged(msgspec.Struct, frozen=True):
    """A sample (`sha256`), or a task's results (`task_id`), and when it was last of use: the end of its latest task."""

    sha256: str
    task_id: int
    at: float


class UpkeepBook(Protocol):
    """What a store has for its upkeep. Every call may raise `StoreError`."""

    async def remove_sample(self, sha256: str, at: float, cause: Cause) -> Removal | None:
        """Forget a sample, its names and marks and all its tasks, with `SampleRemoved`; None: there is none. Their ids are never given
        again. Raises `SampleInUse` when a task of it is pending or owned, with nothing changed."""
        ...

    async def remove_results(self, task_ids: Sequence[int], at: float, cause: Cause) -> Removal | None:
        """Mark the results of those of the tasks that are final, and have not been marked so, as removed, with `ResultsRemoved`; None:
        there are none."""
        ...

    async def open_removals(self) -> Sequence[Removal]:
        """Those whose files may still be there, at most a thousand, in the order they came."""
        ...

    async def close_removal(self, number: int) -> None:
        """Its files are gone."""
        ...

    async def holds(self, sha256: str) -> bool:
        """Whether there is such a sample."""
        ...

    async def oldest_samples(self, before: float, limit: int) -> Sequence[Aged]:
        """Samples whose latest task ended before then, the oldest first; none of which a task is pending or owned."""
        ...

    async def oldest_results(self, before: float, limit: int) -> Sequence[Aged]:
        """Tasks that ended before then and whose results were not removed, the oldest first."""
        ...

    async def close(self) -> None:
        """Let go. A second call does nothing."""
        ...


class Stockroom(Protocol):
    """What takes files out of a data folder: to give them out, and to count them. Nothing of it holds the loop up."""

    def packed(self, sha256: str, form: SampleForm) -> AsyncIterator[bytes]:
        """A content in a form, its sum checked before the first chunk. Raises `SampleMissing`, `SampleChanged`, `StoreError`,
        `StoreFull`. Closed or cancelled: nothing is left."""
        ...

    async def figures(self, at: float) -> StoreFigures:
        """What there is. Raises `StoreError`."""
        ...

    async def kept_bytes(self, sha256: str) -> int:
        """What a content takes on disk; 0 when it is not there."""
        ...

    async def result_bytes(self, task_id: int) -> int:
        """What the results of a task take on disk."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let go. A second call does nothing."""
        ...
