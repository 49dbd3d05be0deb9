"""Results on disk: `<task id>/<token>/<plugin>/<name>` under one folder, readable by the owner alone.

A result appears under its name when it is whole. It is made durable only when its attempt is settled: until then nothing refers to it
that survives a power cut.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from malbox_tui.model.errors import StoreError
from malbox_tui.model.report import ResultRef
from malbox_tui.store.calls import OpenCalls
from malbox_tui.store.durable import Durable, GroupSync
from malbox_tui.store.failures import store_error
from malbox_tui.store.regular import open_regular

T = TypeVar("T")

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

_COPY_BYTES = 1024 * 1024

_HIDDEN = "."
"""Begins the name of a file that is not whole, as it does no plain name."""


class FileResultStore:
    """A `ResultStore` under `folder`, whose parent must exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._place = f"the result store {folder}"
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="malbox-results")
        self._sync = GroupSync(self._place)
        self._writers = 0
        self._calls = OpenCalls(self._place)

    async def open(self) -> None:
        """As `ResultStore.open`. Raises `StoreError`."""
        with self._calls.one():
            await self._in_thread(self._make_root)

    def begin(self, task_id: int, token: str, plugin: str, name: str, format: str) -> FileResultWriter:
        """As `ResultStore.begin`; `token` and `plugin` must be plain names too. Raises `StoreError`, `StoreFull`."""
        relative = _relative(task_id, token, plugin, name)
        self._writers += 1
        try:
            return FileResultWriter(self._folder, relative, format, self._writers)
        except OSError as exc:
            raise store_error(exc, self._place) from exc

    def place_for(self, task_id: int, token: str, plugin: str, name: str) -> Path:
        """As `ResultStore.place_for`. Raises `StoreError`, `StoreFull`."""
        target = self._folder / _relative(task_id, token, plugin, name)
        try:
            _make_folders(self._folder, target.parent)
        except OSError as exc:
            raise store_error(exc, self._place) from exc
        return _incoming(target)

    async def take_in(self, task_id: int, token: str, plugin: str, name: str, max_bytes: int) -> tuple[ResultRef, bool]:
        """As `ResultStore.take_in`. Cancelled: it goes on in its thread."""
        relative = _relative(task_id, token, plugin, name)
        self._writers += 1
        number = self._writers
        with self._calls.one():
            return await self._in_thread(lambda: self._take_in(relative, number, max_bytes))

    async def lay_out(self, reference: ResultRef, target: Path) -> None:
        """As `ResultStore.lay_out`."""
        with self._calls.one():
            await self._in_thread(lambda: self._lay_out(reference, target))

    async def settle(self, task_id: int, token: str) -> None:
        """As `ResultStore.settle`. Raises `StoreError`, `StoreFull`. An attempt without results is no error."""
        with self._calls.one():
            wanted = await self._in_thread(lambda: self._what_to_sync(task_id, token))
            await self._sync.make_durable(wanted)
            await self._in_thread(lambda: self._remove_others(task_id, token))

    async def discard(self, task_id: int, token: str) -> None:
        """As `ResultStore.discard`. Raises `StoreError`. An attempt without results is no error."""
        with self._calls.one():
            await self._in_thread(lambda: self._remove(task_id, token))

    async def remove(self, task_id: int) -> int:
        """As `ResultStore.remove`."""
        with self._calls.one():
            return await self._in_thread(lambda: self._remove_task(task_id))

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        """As `ResultStore.read`; a path that leads anywhere but to a result is gone too."""
        with self._calls.one():
            return await self._in_thread(lambda: self._read(reference, max_bytes))

    async def close(self) -> None:
        """As `ResultStore.close`."""
        await self._calls.close()
        self._threads.shutdown(wait=True)
        self._sync.close()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Where every blocking call of this store but the writers' crosses to a thread. Cancelled: it goes on there."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except OSError as exc:
            raise store_error(exc, self._place) from exc

    def _make_root(self) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)

    def _attempt(self, task_id: int, token: str) -> Path:
        if _PLAIN_NAME.fullmatch(token) is None:
            raise ValueError(f"{token!r} is not a plain name")
        return self._folder / str(int(task_id)) / token

    def _what_to_sync(self, task_id: int, token: str) -> Durable:
        """The attempt's files and every folder on the way to them. Files that never became whole are removed."""
        attempt = self._attempt(task_id, token)
        files: list[Path] = []
        folders: list[Path] = []
        for folder, _, names in os.walk(attempt):
            folders.append(Path(folder))
            for name in names:
                path = Path(folder, name)
                if name.startswith(_HIDDEN):
                    path.unlink(missing_ok=True)
                else:
                    files.append(path)
        if folders:
            folders += [attempt.parent, self._folder]
        return Durable(tuple(files), folders=tuple(folders))

    def _remove_others(self, task_id: int, token: str) -> None:
        attempt = self._attempt(task_id, token)
        if attempt.parent.is_dir():
            for other in attempt.parent.iterdir():
                if other.name != token:
                    shutil.rmtree(other)

    def _remove(self, task_id: int, token: str) -> None:
        attempt = self._attempt(task_id, token)
        try:
            shutil.rmtree(attempt)
            attempt.parent.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            # Other attempts of the task have results.
            if attempt.exists():
                raise

    def _remove_task(self, task_id: int) -> int:
        folder = self._folder / str(int(task_id))
        size_bytes = disk_bytes(folder)
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            return 0
        return size_bytes

    def _take_in(self, relative: str, number: int, max_bytes: int) -> tuple[ResultRef, bool]:
        """It is copied, since it may be another user's, and longer than it is to be."""
        incoming = _incoming(self._folder / relative)
        with open_regular(incoming) as source:
            writer = FileResultWriter(self._folder, relative, "file", number)
            try:
                left = max_bytes
                while left > 0 and (chunk := source.read(min(_COPY_BYTES, left))):
                    writer.write(chunk)
                    left -= len(chunk)
                is_whole = not source.read(1)
                reference = writer.commit()
            except BaseException:
                writer.abort()
                raise
            finally:
                incoming.unlink(missing_ok=True)
        return reference, is_whole

    def _lay_out(self, reference: ResultRef, target: Path) -> None:
        with self._open(reference) as source:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o444)
            try:
                with os.fdopen(descriptor, "wb") as copy:
                    shutil.copyfileobj(source, copy, _COPY_BYTES)
            except BaseException:
                target.unlink(missing_ok=True)
                raise

    def _read(self, reference: ResultRef, max_bytes: int) -> bytes:
        with self._open(reference) as file:
            return file.read(max(0, max_bytes))

    def _open(self, reference: ResultRef) -> BinaryIO:
        parts = reference.path.split("/")
        if len(parts) != 4 or not all(_PLAIN_NAME.fullmatch(part) for part in parts):
            raise StoreError(f"There is no result at {reference.path!r}.")
        try:
            return open_regular(self._folder.joinpath(*parts))
        except OSError as exc:
            raise StoreError(f"The result {reference.name} is gone ({reference.path}).") from exc


class FileResultWriter:
    """A `ResultWriter` of one file. Its calls raise `StoreError` or `StoreFull` when the disk fails; then `abort` it."""

    def __init__(self, root: Path, relative: str, format: str, number: int) -> None:
        self._target = root / relative
        self._relative = relative
        self._format = format
        self._partial = self._target.with_name(f"{_HIDDEN}{self._target.name}.{number}")
        self._sum = hashlib.sha256()
        self._size_bytes = 0
        _make_folders(root, self._target.parent)
        self._file: BinaryIO | None = _open_new(self._partial)

    def write(self, chunk: bytes) -> None:
        """As `ResultWriter.write`."""
        file = self._open_file()
        try:
            file.write(chunk)
        except OSError as exc:
            raise store_error(exc, str(self._target)) from exc
        self._sum.update(chunk)
        self._size_bytes += len(chunk)

    def commit(self) -> ResultRef:
        """As `ResultWriter.commit`. Durable only after `ResultStore.settle`. A failed commit leaves nothing."""
        file = self._open_file()
        try:
            file.close()
            self._partial.replace(self._target)
        except OSError as exc:
            self.abort()
            raise store_error(exc, str(self._target)) from exc
        self._file = None
        return ResultRef(self._target.name, self._format, self._size_bytes, self._sum.hexdigest(), self._relative)

    def abort(self) -> None:
        """As `ResultWriter.abort`; after `commit` or another `abort` it does nothing."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.close()
        except OSError:
            # What could not be written is not wanted.
            pass
        finally:
            self._partial.unlink(missing_ok=True)

    def _open_file(self) -> BinaryIO:
        if self._file is None:
            raise ValueError("this result was committed or aborted already")
        return self._file


def disk_bytes(folder: Path) -> int:
    """How much room the files under `folder` take; 0 where there is none. What vanishes meanwhile counts nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += Path(place, name).lstat().st_size
    return total


def _relative(task_id: int, token: str, plugin: str, name: str) -> str:
    for part in (token, plugin, name):
        if _PLAIN_NAME.fullmatch(part) is None:
            raise ValueError(f"{part!r} is not a plain name")
    return f"{int(task_id)}/{token}/{plugin}/{name}"


def _incoming(target: Path) -> Path:
    return target.with_name(f"{_HIDDEN}{target.name}.incoming")


def _make_folders(root: Path, folder: Path) -> None:
    """Each with mode 0700; `Path.mkdir` gives the mode to the last only."""
    if not folder.is_dir() and folder != root:
        _make_folders(root, folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _open_new(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "wb")
