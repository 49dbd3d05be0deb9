"""Contents of samples, and files of results: who keeps them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from malbox_tui.model.report import ResultRef


@dataclass(frozen=True, slots=True)
class StoredContent:
    """A content that the quarantine holds durably."""

    sha256: str
    size_bytes: int


class Quarantine(Protocol):
    """Where samples are kept: by content, neutered at rest, never executable, readable by the owner alone."""

    async def open(self) -> None:
        """Make it usable; leftovers of interrupted calls are removed."""
        ...

    async def store(self, content: AsyncIterator[bytes], max_bytes: int) -> StoredContent:
        """Keep a content; durable when this returns. The same content again costs no space.

        Raises `RefusedContent` (`empty`, `too_large`, or whatever `content` raises), `StoreError`, `StoreFull`. Cancelled or
        failed: nothing is kept.
        """
        ...

    async def extract(self, sha256: str, target: Path) -> int:
        """Write the content as it came into the new file `target`, mode 0444; returns its size in bytes.

        The sum is checked on the way. Raises `SampleMissing`, `SampleChanged`, `StoreError`; no file is left then.
        """
        ...

    async def remove(self, sha256: str, is_wanted: Callable[[], Awaitable[bool]]) -> int:
        """Remove a content, unless somebody wants it when its turn has come: no store of it ends between that question and its end.
        Returns the bytes that it took on disk; 0: it is wanted, or was not there. Raises `StoreError`, and what the question raises."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let go. A second call does nothing."""
        ...


class ResultWriter(Protocol):
    """One result on its way to disk. Either `commit` or `abort` ends it."""

    def write(self, chunk: bytes) -> None:
        """Append; small and buffered, so it may be called on the loop."""
        ...

    def commit(self) -> ResultRef:
        """The result is whole: it appears under its name, atomically. A result of the same name is replaced."""
        ...

    def abort(self) -> None:
        """Forget it."""
        ...


class ResultStore(Protocol):
    """Where results are kept: one folder a task and attempt, one file a result."""

    async def open(self) -> None:
        """Make it usable."""
        ...

    def begin(self, task_id: int, token: str, plugin: str, name: str, format: str) -> ResultWriter:
        """A writer for one result. Raises ValueError when `name` is not a plain file name."""
        ...

    def place_for(self, task_id: int, token: str, plugin: str, name: str) -> Path:
        """Where somebody else may write the new file that `take_in` then makes a result of; its folder is there. Raises ValueError as
        `begin`, `StoreError`."""
        ...

    async def take_in(self, task_id: int, token: str, plugin: str, name: str, max_bytes: int) -> tuple[ResultRef, bool]:
        """Make a result of what was written to `place_for`, at most its first `max_bytes`; and whether that was all. Nothing is left
        there. Raises `StoreError`, also when nothing was written."""
        ...

    async def lay_out(self, reference: ResultRef, target: Path) -> None:
        """Write a result into the new file `target`, mode 0444. Raises `StoreError`; no file is left then."""
        ...

    async def settle(self, task_id: int, token: str) -> None:
        """Make the attempt's results durable, and remove those of the task's other attempts."""
        ...

    async def discard(self, task_id: int, token: str) -> None:
        """Remove the attempt's results."""
        ...

    async def remove(self, task_id: int) -> int:
        """Remove all results of a task; returns the bytes that they took. A task without results is no error. Raises `StoreError`."""
        ...

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        """At most `max_bytes` of a result. Raises `StoreError` when it is gone."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let go. A second call does nothing."""
        ...
