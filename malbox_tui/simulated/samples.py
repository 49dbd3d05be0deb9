"""The quarantine of a simulated world: contents in memory, by their real sums."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from malbox_tui.model.errors import RefusedContent, SampleChanged, SampleMissing, StoreError, StoreFull
from malbox_tui.ports import StoredContent
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.open_calls import OpenCalls
from malbox_tui.simulated.world import World

_PLACE = "The simulated quarantine"


class SimulatedQuarantine:
    """Implements `Quarantine` over `world.samples`. What is extracted lies in `world.files`, and on disk where the folder exists."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._era = world.era
        self._calls = OpenCalls(world, _PLACE)
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """As `Quarantine.open`."""
        self._calls.check()

    async def store(self, content: AsyncIterator[bytes], max_bytes: int) -> StoredContent:
        """As `Quarantine.store`."""
        with self._calls.one():
            whole = await _gathered(content, max_bytes)
            await self._work("store")
            sha256 = hashlib.sha256(whole).hexdigest()
            async with self._turn:
                self._world.samples[sha256] = whole
            return StoredContent(sha256, len(whole))

    async def extract(self, sha256: str, target: Path) -> int:
        """As `Quarantine.extract`; also raises `StoreError` when `target` exists, and `StoreFull`."""
        with self._calls.one():
            await self._work("extract")
            content = self._world.samples.get(sha256)
            if content is None or self._strikes(Fault.SAMPLE_MISSING, sha256):
                raise SampleMissing(sha256)
            if hashlib.sha256(content).hexdigest() != sha256 or self._strikes(Fault.SAMPLE_CHANGED, sha256):
                raise SampleChanged(sha256, "its sum is another one")
            if _is_on_disk(target.parent):
                _write_new(target, content)
            elif target in self._world.files:
                raise StoreError(f"{target} exists already.")
            self._world.files[target] = content
            return len(content)

    async def remove(self, sha256: str, is_wanted: Callable[[], Awaitable[bool]]) -> int:
        """As `Quarantine.remove`."""
        with self._calls.one():
            await self._work("remove")
            async with self._turn:
                return 0 if await is_wanted() else len(self._world.samples.pop(sha256, b""))

    async def close(self) -> None:
        """As `Quarantine.close`."""
        await self._calls.close()

    async def _work(self, call: str) -> None:
        slow = self._strikes(Fault.QUARANTINE_SLOW, call)
        await self._world.take(self._era, self._world.durations.slow if slow else self._world.durations.disk)
        if call != "remove" and self._strikes(Fault.QUARANTINE_FULL, call):
            raise StoreFull(f"The disk under {_PLACE.lower()} is full. Free some space.")
        if self._strikes(Fault.QUARANTINE_FAILS, call):
            raise StoreError(f"{_PLACE} could not be used: input/output error.")

    def _strikes(self, fault: Fault, subject: str) -> bool:
        return self._world.faults.strikes(fault, subject)


async def _gathered(content: AsyncIterator[bytes], max_bytes: int) -> bytes:
    gathered, size_bytes = [], 0
    async for chunk in content:
        size_bytes += len(chunk)
        if size_bytes > max_bytes:
            raise RefusedContent("too_large", f"It is larger than the limit of {max_bytes} bytes.")
        gathered.append(chunk)
    if not size_bytes:
        raise RefusedContent("empty", "It is empty.")
    return b"".join(gathered)


def _is_on_disk(folder: Path) -> bool:
    return folder.is_dir()


def _write_new(target: Path, content: bytes) -> None:
    """Small and seldom: only tests and demos lay simulated samples out on a disk."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444)
    except OSError as exc:
        raise StoreError(f"{target} could not be made: {exc.strerror or exc}.") from exc
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
