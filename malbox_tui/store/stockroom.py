"""Takes files out of a data folder: a sample in the form that somebody wants it in, and how much there is.

A content is laid out in the scratch folder first, so that its sum is known to be right before the first byte goes out; what lies there
has no name any more when it does, so nothing is left whatever ends it.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sqlite3
import stat
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyzipper

from malbox_tui.model.upkeep import ZIP_PASSWORD, SampleForm, StoreFigures
from malbox_tui.store import carts
from malbox_tui.store.calls import OpenCalls
from malbox_tui.store.failures import store_error
from malbox_tui.store.read_only import read_only
from malbox_tui.store.results import disk_bytes
from malbox_tui.store.statements import statement

T = TypeVar("T")

CHUNK_BYTES = 256 << 10
_COPY_BYTES = 1 << 20
_TWO_DIGITS = re.compile(r"[0-9a-f]{2}")
EXPORT_PREFIX = "export-"


@dataclass(frozen=True, slots=True)
class Places:
    """What a data folder has: a file with the store, and folders."""

    store: Path
    quarantine: Path
    results: Path
    scratch: Path

    def content(self, sha256: str) -> Path:
        """Where a content lies, if it does."""
        return self.quarantine / sha256[:2] / sha256[2:4] / f"{sha256}.cart"


class FileStockroom:
    """Implements `Stockroom` over files."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="malbox-stock")
        self._calls = OpenCalls(f"the quarantine {places.quarantine}")

    async def packed(self, sha256: str, form: SampleForm) -> AsyncIterator[bytes]:
        """As `Stockroom.packed`."""
        with self._calls.one():
            abandoned = threading.Event()
            making = asyncio.get_running_loop().run_in_executor(
                self._threads, lambda: _made(self._places, sha256, form, abandoned.is_set)
            )
            try:
                descriptor = await asyncio.shield(making)
            except asyncio.CancelledError:
                abandoned.set()
                await asyncio.wait({making})
                if making.exception() is None:
                    os.close(making.result())
                raise
            except OSError as exc:
                raise store_error(exc, str(self._places.scratch)) from exc
            try:
                offset = 0
                while chunk := await self._in_thread(partial(os.pread, descriptor, CHUNK_BYTES, offset)):
                    offset += len(chunk)
                    yield chunk
            finally:
                os.close(descriptor)

    async def figures(self, at: float) -> StoreFigures:
        """As `Stockroom.figures`. What comes and goes meanwhile is counted or not."""
        with self._calls.one():
            return await self._in_thread(lambda: figures_of(self._places, at))

    async def kept_bytes(self, sha256: str) -> int:
        """As `Stockroom.kept_bytes`."""
        with self._calls.one():
            return await self._in_thread(lambda: _size(self._places.content(sha256)))

    async def result_bytes(self, task_id: int) -> int:
        """As `Stockroom.result_bytes`."""
        with self._calls.one():
            return await self._in_thread(lambda: disk_bytes(self._places.results / str(int(task_id))))

    async def close(self) -> None:
        """As `Stockroom.close`."""
        await self._calls.close()
        self._threads.shutdown(wait=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Where every blocking call crosses to a thread. Cancelled: it goes on there."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except (OSError, sqlite3.Error) as exc:
            raise store_error(exc, str(self._places.quarantine)) from exc


def figures_of(places: Places, at: float) -> StoreFigures:
    """What lies in a data folder. Blocking; raises OSError and sqlite3.Error."""
    with closing(read_only(places.store)) as connection:
        ((samples, sample_bytes, oldest_at, removing),) = connection.execute(statement("store_figures")).fetchall()
    results, result_bytes = _counted(places.results)
    _, kept_bytes = _counted(places.quarantine, lambda folder: _TWO_DIGITS.fullmatch(folder) is not None)
    return StoreFigures(
        at=at,
        samples=samples,
        sample_bytes=sample_bytes,
        kept_bytes=kept_bytes,
        results=results,
        result_bytes=result_bytes,
        oldest_at=oldest_at,
        removing=removing,
    )


def _counted(root: Path, is_meant: Callable[[str], bool] = lambda folder: True) -> tuple[int, int]:
    """How many files lie under those folders of `root` that are meant, and their bytes. One folder is held at a time."""
    files = size_bytes = 0
    for folder, folders, names in os.walk(root):
        if folder == str(root):
            folders[:] = [name for name in folders if is_meant(name)]
        for name in names:
            if not name.startswith("."):
                files += 1
                size_bytes += _size(Path(folder, name))
    return files, size_bytes


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0


def _made(places: Places, sha256: str, form: SampleForm, is_abandoned: Callable[[], bool]) -> int:
    """A descriptor of the content in this form, whose file has no name. Raises as `carts.unpack` does."""
    places.scratch.mkdir(mode=0o700, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=EXPORT_PREFIX, dir=places.scratch))
    try:
        raw = folder / sha256
        source = places.content(sha256)
        carts.unpack(source, sha256, raw, is_abandoned)
        if form is SampleForm.CART:
            return os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        if form is SampleForm.ZIP:
            packed = folder / "zip"
            _zip(raw, packed, is_abandoned)
            return os.open(packed, os.O_RDONLY | os.O_CLOEXEC)
        return os.open(raw, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _zip(raw: Path, target: Path, is_abandoned: Callable[[], bool]) -> None:
    """One member, named by its sum: a name that it came with could lead anywhere, and would make it run at a click."""
    entry = pyzipper.zipfile_aes.AESZipInfo(raw.name)
    entry.compress_type = pyzipper.ZIP_DEFLATED
    entry.external_attr = (stat.S_IFREG | 0o400) << 16
    entry.file_size = raw.stat().st_size
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file, pyzipper.AESZipFile(file, "w", encryption=pyzipper.WZ_AES) as archive:
        archive.setpassword(ZIP_PASSWORD.encode())
        with raw.open("rb") as content, archive.open(entry, "w") as member:
            while chunk := content.read(_COPY_BYTES):
                if is_abandoned():
                    raise carts.Abandoned
                member.write(chunk)
