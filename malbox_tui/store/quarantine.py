"""Where samples are kept: `ab/cd/<sha256>.cart` under one folder, files of mode 0600 in folders of mode 0700.

1. A file under a content's name is whole: it was written under another name, synced, and renamed.
2. Nobody is told that a content is stored before its file and its name are synced.
3. A file that lies under the name already is compared byte by byte with what would have been put there, and replaced when it differs:
   one that was damaged is not taken for the content.
4. Stores of one content take turns from the comparison on, so a cancelled one can take back what it put there without taking it from
   another.
"""

from __future__ import annotations

import asyncio
import filecmp
import io
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar

from malbox_tui.model.errors import RefusedContent, StoreError
from malbox_tui.ports import StoredContent
from malbox_tui.store import carts
from malbox_tui.store.calls import OpenCalls
from malbox_tui.store.chunk_pipe import ChunkPipe, PipeBroken
from malbox_tui.store.durable import Durable, GroupSync
from malbox_tui.store.failures import store_error

T = TypeVar("T")

GATHERED_BYTES = 256 << 10
"""A content up to this size is gathered before its packing begins, so that no thread waits for it."""

PACKING_THREADS = 8
"""More than there are cores: a thread that packs a large content waits while its content comes slowly."""

READING_THREADS = 4


class CartQuarantine:
    """A `Quarantine` under `folder`, whose parent must exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._incoming = folder / "incoming"
        self._place = f"the quarantine {folder}"
        self._numbers = count(1)
        self._packing = ThreadPoolExecutor(PACKING_THREADS, thread_name_prefix="malbox-pack")
        self._reading = ThreadPoolExecutor(READING_THREADS, thread_name_prefix="malbox-unpack")
        self._sync = GroupSync(self._place)
        self._calls = OpenCalls(self._place)
        self._turns: dict[str, _Turns] = {}

    async def open(self) -> None:
        """As `Quarantine.open`. Raises `StoreError`, `StoreFull`."""
        with self._calls.one(), self._os_errors():
            await self._in_thread(self._reading, self._make_folders)

    async def store(self, content: AsyncIterator[bytes], max_bytes: int) -> StoredContent:
        """As `Quarantine.store`. `content` is iterated in the caller's own task, and left to the caller to close."""
        with self._calls.one(), self._os_errors():
            packed = self._incoming / str(next(self._numbers))
            sha256, size_bytes = await self._pack(content, max_bytes, packed)
            try:
                await self._keep(packed, sha256)
            finally:
                _remove(packed)
            return StoredContent(sha256, size_bytes)

    async def extract(self, sha256: str, target: Path) -> int:
        """As `Quarantine.extract`; also raises `StoreError` when `target` exists, which is then left as it was, and `StoreFull`."""
        abandoned = threading.Event()
        with self._calls.one(), self._os_errors():
            work = self._in_thread(self._reading, lambda: carts.unpack(self._path(sha256), sha256, target, abandoned.is_set))
            return await _outcome(work, target, abandoned.set)

    async def remove(self, sha256: str, is_wanted: Callable[[], Awaitable[bool]]) -> int:
        """As `Quarantine.remove`. Cancelled: it is removed or not."""
        with self._calls.one(), self._os_errors():
            async with self._turn(sha256):
                if await is_wanted():
                    return 0
                return await self._in_thread(self._reading, lambda: _taken_away(self._path(sha256)))

    async def close(self) -> None:
        """As `Quarantine.close`."""
        await self._calls.close()
        self._packing.shutdown(wait=True)
        self._reading.shutdown(wait=True)
        self._sync.close()

    # --- packing ---

    async def _pack(self, content: AsyncIterator[bytes], max_bytes: int, target: Path) -> tuple[str, int]:
        """Pack into `target`; the sum and the size. Cancelled or failed: there is no `target`."""
        gathered: list[bytes] = []
        size_bytes = 0
        async for chunk in content:
            size_bytes += len(chunk)
            _check_size(size_bytes, max_bytes)
            gathered.append(chunk)
            if size_bytes > GATHERED_BYTES:
                return await self._pack_coming(b"".join(gathered), content, max_bytes, target)
        if not size_bytes:
            raise RefusedContent("empty", "It is empty.")
        whole = io.BytesIO(b"".join(gathered))
        packing = self._in_thread(self._packing, lambda: carts.pack(whole, target))
        return await _outcome(packing, target)

    async def _pack_coming(self, begin: bytes, content: AsyncIterator[bytes], max_bytes: int, target: Path) -> tuple[str, int]:
        """Pack in a thread what comes on the loop, of which `begin` has come already."""
        pipe = ChunkPipe()
        packing = self._in_thread(self._packing, lambda: _pack_from(pipe, target))
        size_bytes = len(begin)
        try:
            await pipe.put(begin)
            async for chunk in content:
                size_bytes += len(chunk)
                _check_size(size_bytes, max_bytes)
                await pipe.put(chunk)
            pipe.finish()
        except PipeBroken:
            return await packing
        except BaseException:
            pipe.break_off()
            await asyncio.wait({packing})
            packing.exception()
            raise
        return await _outcome(packing, target)

    # --- keeping ---

    async def _keep(self, packed: Path, sha256: str) -> None:
        """Put a packed content under its name, durably. Cancelled or failed: it is taken back if it was not there before."""
        target = self._path(sha256)
        async with self._turn(sha256):
            already = await self._in_thread(self._reading, lambda: _prepared(packed, target))
            folders = (target.parent, target.parent.parent, self._folder)
            if already:
                await self._sync.make_durable(Durable((target,), folders=folders))
                return
            keeping = self._sync.make_durable(Durable((packed,), ((packed, target),), folders))
            try:
                await _outcome(keeping, target)
            except StoreError:
                _remove(target)
                raise

    def _turn(self, sha256: str) -> _Turns:
        return self._turns.setdefault(sha256, _Turns(self._turns, sha256))

    # --- paths and threads ---

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256[2:4] / f"{sha256}.cart"

    def _make_folders(self) -> None:
        shutil.rmtree(self._incoming, ignore_errors=True)
        for folder in (self._folder, self._incoming):
            folder.mkdir(mode=0o700, exist_ok=True)

    def _in_thread(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> asyncio.Future[T]:
        """Where every blocking call crosses to a thread."""
        return asyncio.get_running_loop().run_in_executor(threads, work)

    @contextmanager
    def _os_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise store_error(exc, self._place) from exc


class _Turns:
    """A lock for one content that is forgotten when nobody wants it any more."""

    def __init__(self, all_turns: dict[str, _Turns], sha256: str) -> None:
        self._all_turns = all_turns
        self._sha256 = sha256
        self._lock = asyncio.Lock()
        self._wanted = 0

    async def __aenter__(self) -> None:
        self._wanted += 1
        try:
            await self._lock.acquire()
        except BaseException:
            self._done_with()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
        self._done_with()

    def _done_with(self) -> None:
        self._wanted -= 1
        if not self._wanted:
            self._all_turns.pop(self._sha256, None)


async def _outcome(work: asyncio.Future[T], made: Path, give_up: Callable[[], None] = lambda: None) -> T:
    """What `work` comes to. Cancelled: it is told to give up and waited for; what it made all the same is removed."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        give_up()
        await asyncio.wait({work})
        if work.exception() is None:
            _remove(made)
        raise


def _check_size(size_bytes: int, max_bytes: int) -> None:
    if size_bytes > max_bytes:
        raise RefusedContent("too_large", f"It is larger than the limit of {max_bytes} bytes.")


def _pack_from(pipe: ChunkPipe, target: Path) -> tuple[str, int]:
    try:
        return carts.pack(pipe, target)
    finally:
        pipe.leave()


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _taken_away(path: Path) -> int:
    """The bytes that it took. The folders stay: another content may be on its way into them."""
    try:
        size_bytes = path.lstat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    return size_bytes


def _prepared(packed: Path, target: Path) -> bool:
    """True when `target` holds the bytes of `packed` already; else the folders to it are made."""
    if target.is_file() and not target.is_symlink():
        return filecmp.cmp(packed, target, shallow=False)
    for folder in (target.parent.parent, target.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    return False
