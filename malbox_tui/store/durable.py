"""Makes files durable, many callers at a time.

A sync makes the file system commit its journal, which takes everything that changed with it; one after the other, N files cost N
commits. Here, whoever asks while a round is under way is served by the next round. A round starts the writing of all its files, then
syncs them, renames them, and syncs the folders: on ext4 about two commits, however many the files.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.model.errors import StoreError
from malbox_tui.store.failures import store_error


@dataclass(frozen=True, slots=True)
class Durable:
    """What one caller wants durable: the content of `files`, then the renames (from, to), then the entries of `folders`."""

    files: tuple[Path, ...]
    renames: tuple[tuple[Path, Path], ...] = ()
    folders: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    wanted: Durable
    answer: asyncio.Future[None]


class GroupSync:
    """Rounds of syncs in a thread of its own. `place` names what it works for in errors."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="malbox-sync")
        self._waiting: list[_Waiting] = []
        self._busy = False

    def make_durable(self, wanted: Durable) -> asyncio.Future[None]:
        """Done when `wanted` would survive a power cut. Raises `StoreError`, `StoreFull`; what was renamed then is not said.

        Cancelled before its round began: nothing is done. Later: it is done all the same.
        """
        entry = _Waiting(wanted, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        self._start_round()
        return entry.answer

    def close(self) -> None:
        """End the thread. Nobody may be waiting."""
        self._thread.shutdown(wait=True)

    def _start_round(self) -> None:
        entries = [entry for entry in self._waiting if not entry.answer.done()]
        if self._busy or not entries:
            return
        self._waiting = []
        self._busy = True
        loop = asyncio.get_running_loop()
        work = self._thread.submit(_run_round, [entry.wanted for entry in entries])
        work.add_done_callback(lambda done: loop.call_soon_threadsafe(self._end_round, entries, done))

    def _end_round(self, entries: Sequence[_Waiting], done: Future[list[OSError | None]]) -> None:
        self._busy = False
        for entry, failure in zip(entries, self._failures(entries, done), strict=True):
            if entry.answer.done():
                continue
            if failure is None:
                entry.answer.set_result(None)
            else:
                entry.answer.set_exception(failure)
        self._start_round()

    def _failures(self, entries: Sequence[_Waiting], done: Future[list[OSError | None]]) -> list[StoreError | None]:
        failure = done.exception()
        if failure is not None:
            return [store_error(failure, self._place) for _ in entries]
        return [None if error is None else store_error(error, self._place) for error in done.result()]


def _run_round(round_: Sequence[Durable]) -> list[OSError | None]:
    """What went wrong for each entry, None where nothing did. One entry's failure is no other's."""
    failures: list[OSError | None] = [None] * len(round_)

    @contextmanager
    def blamed(index: int) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            failures[index] = failures[index] or exc

    for step in (_begin_writing, _sync_files, _rename):
        for index, wanted in enumerate(round_):
            if failures[index] is None:
                with blamed(index):
                    step(wanted)
    synced: dict[Path, OSError | None] = {}
    for index, wanted in enumerate(round_):
        for folder in wanted.folders:
            if folder not in synced:
                synced[folder] = _sync_folder(folder)
            failures[index] = failures[index] or synced[folder]
    return failures


def _begin_writing(wanted: Durable) -> None:
    """Have the kernel start on these pages without waiting for them, as POSIX_FADV_DONTNEED does (posix_fadvise(2))."""
    for path in wanted.files:
        with _opened(path, os.O_RDONLY) as descriptor:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _sync_files(wanted: Durable) -> None:
    for path in wanted.files:
        with _opened(path, os.O_RDONLY) as descriptor:
            os.fsync(descriptor)


def _rename(wanted: Durable) -> None:
    for source, target in wanted.renames:
        source.replace(target)


def _sync_folder(folder: Path) -> OSError | None:
    try:
        with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            os.fsync(descriptor)
    except OSError as exc:
        return exc
    return None


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
