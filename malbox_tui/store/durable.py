"""Makes files durable, many callers at a time.

A sync flushes the disk's cache whether or not the file's journal entry was written with another one's, so N files and their folders
cost N flushes and more. Here, whoever asks while a round is under way is served by the next round, and a round of many syncs the whole
file system, twice: before its renames and after them. That also waits for what other programs have written there; a round of few syncs
file by file.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.model.errors import StoreError
from malbox_tui.store.failures import store_error

SHARED_FROM = 3
"""How many entries make a round one of many. Measured on ext4, 32 files of 4 KiB: 39 ms one by one, 28 ms with the flushes in a row,
4 ms with two syncs of the file system; one file: 1.4 ms and 0.8 ms."""

_libc = ctypes.CDLL(None, use_errno=True)
"""For syncfs(2), which Python lacks. It reports failed writes since Linux 5.8."""


@dataclass(frozen=True, slots=True)
class Durable:
    """What one caller wants durable: the content of `files`, then the renames (from, to), then the entries of `folders`.

    All of it is on the file system of the last folder.
    """

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

    def for_each(step: Callable[[Durable], None]) -> None:
        for index, wanted in enumerate(round_):
            if failures[index] is None:
                try:
                    step(wanted)
                except OSError as exc:
                    failures[index] = exc

    shared = len(round_) >= SHARED_FROM
    if not (shared and _sync_file_systems(round_)):
        for_each(_sync_files)
    for_each(_rename)
    if not (shared and _sync_file_systems(round_)):
        for_each(_sync_folders)
    return failures


def _sync_files(wanted: Durable) -> None:
    for path in wanted.files:
        with _opened(path, os.O_RDONLY) as descriptor:
            os.fsync(descriptor)


def _rename(wanted: Durable) -> None:
    for source, target in wanted.renames:
        source.replace(target)


def _sync_folders(wanted: Durable) -> None:
    for folder in wanted.folders:
        with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            os.fsync(descriptor)


def _sync_file_systems(round_: Sequence[Durable]) -> bool:
    """Sync the file systems that the entries' folders are on. False when that is not known to have worked."""
    synced: set[int] = set()
    try:
        for folder in dict.fromkeys(folder for wanted in round_ for folder in wanted.folders[-1:]):
            with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
                device = os.fstat(descriptor).st_dev
                if device not in synced and _libc.syncfs(descriptor) != 0:
                    return False
                synced.add(device)
    except OSError:
        return False
    return bool(synced)


def sync_file_system(folder: Path) -> None:
    """Make durable all that was written to the file system that `folder` is on. Raises OSError."""
    with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        if _libc.syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
