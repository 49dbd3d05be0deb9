"""The result store of a simulated world: results in memory, under the paths they would have on disk."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from malbox_tui.model.errors import StoreError, StoreFull
from malbox_tui.model.report import ResultRef
from malbox_tui.ports import ResultWriter
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.open_calls import OpenCalls
from malbox_tui.simulated.world import World

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

_INCOMING = Path("/incoming")

_PLACE = "The simulated result store"


class SimulatedResults:
    """Implements `ResultStore` over `world.results`: `<task id>/<token>/<plugin>/<name>` → content."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._era = world.era
        self._calls = OpenCalls(world, _PLACE)

    async def open(self) -> None:
        """As `ResultStore.open`."""
        self._calls.check()

    def begin(self, task_id: int, token: str, plugin: str, name: str, format: str) -> ResultWriter:
        """As `ResultStore.begin`; `token` and `plugin` must be plain names too."""
        self._world.check_era(self._era)
        return SimulatedWriter(self._world, _path(task_id, token, plugin, name), format)

    def place_for(self, task_id: int, token: str, plugin: str, name: str) -> Path:
        """As `ResultStore.place_for`: a path among the world's files."""
        self._world.check_era(self._era)
        return _INCOMING / _path(task_id, token, plugin, name)

    async def take_in(self, task_id: int, token: str, plugin: str, name: str, max_bytes: int) -> tuple[ResultRef, bool]:
        """As `ResultStore.take_in`."""
        with self._calls.one():
            await self._world.take(self._era, self._world.durations.disk)
            content = self._world.files.pop(self.place_for(task_id, token, plugin, name), None)
            if content is None:
                raise StoreError(f"There is no file {name} to take in.")
            writer = self.begin(task_id, token, plugin, name, "file")
            writer.write(content[: max(0, max_bytes)])
            return writer.commit(), len(content) <= max_bytes

    async def lay_out(self, reference: ResultRef, target: Path) -> None:
        """As `ResultStore.lay_out`: among the world's files."""
        content = await self.read(reference, 1 << 62)
        if target in self._world.files:
            raise StoreError(f"{target} exists already.")
        self._world.leave_file(target, content)

    async def settle(self, task_id: int, token: str) -> None:
        """As `ResultStore.settle`. Raises `StoreError`, `StoreFull`."""
        with self._calls.one():
            await self._work("settle")
            self._remove(lambda path: path[0] == str(task_id) and path[1] != token)

    async def discard(self, task_id: int, token: str) -> None:
        """As `ResultStore.discard`. Raises `StoreError`; removing needs no room."""
        with self._calls.one():
            await self._work("discard")
            self._remove(lambda path: path[:2] == [str(task_id), token])

    async def remove(self, task_id: int) -> int:
        """As `ResultStore.remove`."""
        with self._calls.one():
            await self._work("remove")
            size_bytes = sum(len(content) for path, content in self._world.results.items() if path.split("/")[0] == str(task_id))
            self._remove(lambda path: path[0] == str(task_id))
            return size_bytes

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        """As `ResultStore.read`."""
        with self._calls.one():
            await self._world.take(self._era, self._world.durations.disk)
            content = self._world.results.get(reference.path)
            if content is None:
                raise StoreError(f"The result {reference.name} is gone ({reference.path}).")
            return content[: max(0, max_bytes)]

    async def close(self) -> None:
        """As `ResultStore.close`."""
        await self._calls.close()

    async def _work(self, call: str) -> None:
        slow = self._world.faults.strikes(Fault.RESULTS_SLOW, call)
        await self._world.take(self._era, self._world.durations.slow if slow else self._world.durations.disk)
        _raise_disk_faults(self._world, call)

    def _remove(self, unwanted: Callable[[list[str]], bool]) -> None:
        for path in [path for path in self._world.results if unwanted(path.split("/"))]:
            del self._world.results[path]


def _path(task_id: int, token: str, plugin: str, name: str) -> str:
    for part in (token, plugin, name):
        if _PLAIN_NAME.fullmatch(part) is None:
            raise ValueError(f"{part!r} is not a plain name")
    return f"{task_id}/{token}/{plugin}/{name}"


class SimulatedWriter:
    """Implements `ResultWriter`. Its commit may raise `StoreError` or `StoreFull`, and then leaves nothing."""

    def __init__(self, world: World, path: str, format: str) -> None:
        self._world = world
        self._era = world.era
        self._path = path
        self._format = format
        self._chunks: list[bytes] | None = []

    def write(self, chunk: bytes) -> None:
        """As `ResultWriter.write`."""
        if self._chunks is None:
            raise ValueError("this result was committed or aborted already")
        self._chunks.append(chunk)

    def commit(self) -> ResultRef:
        """As `ResultWriter.commit`."""
        self._world.check_era(self._era)
        chunks, self._chunks = self._chunks, None
        if chunks is None:
            raise ValueError("this result was committed or aborted already")
        _raise_disk_faults(self._world, "commit")
        content = b"".join(chunks)
        self._world.results[self._path] = content
        name = self._path.rsplit("/", 1)[-1]
        return ResultRef(name, self._format, len(content), hashlib.sha256(content).hexdigest(), self._path)

    def abort(self) -> None:
        """As `ResultWriter.abort`; after `commit` or another `abort` it does nothing."""
        self._chunks = None


def _raise_disk_faults(world: World, call: str) -> None:
    if call not in ("discard", "remove") and world.faults.strikes(Fault.RESULTS_FULL, call):
        raise StoreFull(f"The disk under {_PLACE.lower()} is full. Free some space.")
    if world.faults.strikes(Fault.RESULTS_FAIL, call):
        raise StoreError(f"{_PLACE} could not be used: input/output error.")
