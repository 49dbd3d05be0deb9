"""What a run in a real machine costs beside the machine's own work, on the tests' private libvirtd with guests under emulation.

A run's own time is from the moment a worker takes the task, with its machine ready, to the task's end, less the time that the bare
agent takes to run the same sample. Copying is compared with the bare agent, asked in the same pieces over the same libvirt.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.machines import MachinerySettings, MachineSettings, Provider
from malbox_tui.config.settings import GeneralSettings, Settings
from malbox_tui.engine import clock
from malbox_tui.engine.engine import Engine
from malbox_tui.guest.agent import WRITE_BYTES
from malbox_tui.guest.qga import QgaChannel
from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.events import Event, TaskEnded
from malbox_tui.model.machine import MachineSpec, MachineState
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, SubmissionOptions
from malbox_tui.model.task import RequirementClass, Task, TaskState
from malbox_tui.runtime.assembly import build_engine
from malbox_tui.runtime.short_pauses import short_pauses
from tests.benchmarks.figures import Comparison, Figure, median
from tests.rig.guest_image import guest_image
from tests.rig.host import GUESTS, SNAPSHOT, RigHost, rig_host

RUNS = 8
MANY = 8
COPIES = 5
COPY_BYTES = 4 * 1024 * 1024
TICK_S = 0.002
SAMPLE = b"#!/bin/sh\n# %d\nexit 7\n"


def measure() -> Iterator[Figure]:
    """A trivial sample's run, how many of them end in a minute with one machine and with two, copying, and the loop's stalls."""
    if os.getuid() != 0:
        yield Figure("a trivial sample in a real machine", None, "s", 0, missing="the private libvirtd is started as root")
        return
    import libvirt

    # What it can't do yet is asked again, and not told on stderr.
    libvirt.registerErrorHandler(lambda context, error: None, None)
    with rig_host(guest_image()) as host:
        bare = [_bare_run(host, GUESTS[0]) for _ in range(RUNS)]
        host.switch_off()
        tasks, stalls, _ = asyncio.run(_run(host, GUESTS[:1], RUNS, one_by_one=True))
        ours = [_seconds(task) for task in tasks]
        yield median("a trivial sample in a ready machine", ours, "s")
        yield median("… run by the bare agent", bare, "s")
        own = [seconds - statistics.median(bare) for seconds in ours]
        yield median("… our time beside it", own, "s", "aim: under 0.5 s")
        alone = asyncio.run(_run(host, GUESTS[:1], MANY))
        both = asyncio.run(_run(host, GUESTS, MANY))
        yield Figure(f"{MANY} trivial samples, one machine", alone[2], "s", 1)
        yield Figure(f"{MANY} trivial samples, two machines", both[2], "s", 1, f"{alone[2] / both[2]:.2f} times as fast")
        stall = max(*stalls, *alone[1], *both[1])
        yield Figure("the engine's longest stall meanwhile", stall * 1e3, "ms", 1, "aim: under 50 ms")
        yield from _copying(host)


@asynccontextmanager
async def _engine(folder: Path, machines: Sequence[MachineSettings]) -> AsyncIterator[Engine]:
    folders = DataFolders.under(folder)
    folders.create()
    settings = Settings(
        general=GeneralSettings(min_workers=len(machines), max_workers=len(machines)),
        machinery=MachinerySettings(max_starting=len(machines)),
        machines=tuple(machines),
    )
    engine = build_engine(settings, folders)
    ready = asyncio.Event()
    with short_pauses():
        async with asyncio.TaskGroup() as group:
            group.create_task(engine.run(ready.set))
            await ready.wait()
            try:
                yield engine
            finally:
                engine.stop(ShutdownMode.GIVE_BACK)


async def _run(
    host: RigHost, names: Sequence[str], count: int, *, one_by_one: bool = False
) -> tuple[list[Task], list[float], float]:
    """The tasks, the loop's stalls, and the seconds from the first submission to the last end."""
    machines = [_settings(host, name) for name in names]
    with tempfile.TemporaryDirectory() as folder:
        async with _engine(Path(folder), machines) as engine:
            await _until_ready(engine)
            stalls = _Stalls()
            start = time.perf_counter()
            for numbers in [[number] for number in range(count)] if one_by_one else [range(count)]:
                await _submitted_and_ended(engine, numbers)
                if one_by_one:
                    await _until_ready(engine)
            seconds = time.perf_counter() - start
            stalls.end()
            rows = (await engine.query(TaskQuery())).rows
    tasks = [record.task for record in rows]
    assert all(task.state is TaskState.COMPLETED for task in tasks), tasks
    return tasks, stalls.found, seconds


def _settings(host: RigHost, name: str) -> MachineSettings:
    return MachineSettings(
        name=name, provider=Provider.LIBVIRT, uri=host.uri, snapshot=SNAPSHOT, platform="linux", disk_folder="/data"
    )


async def _until_ready(engine: Engine) -> None:
    while any(machine.state is not MachineState.READY for machine in (await engine.overview()).machines):
        await clock.sleep(0.02)


async def _submitted_and_ended(engine: Engine, numbers: Sequence[int]) -> None:
    position = (await engine.overview()).position

    async def all_ended() -> None:
        left = len(numbers)
        async for item in engine.events(position):
            left -= isinstance(item, Event) and isinstance(item.body, TaskEnded)
            if not left:
                return

    async with asyncio.TaskGroup() as group:
        group.create_task(all_ended())
        await engine.submit(_offers(numbers), SubmissionOptions(requires=RequirementClass("dynamic", "linux")))


async def _offers(numbers: Sequence[int]) -> AsyncIterator[Offer]:
    for number in numbers:
        yield Offer(SampleName(b"%d.sh" % number), _chunks(SAMPLE % number))


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _seconds(task: Task) -> float:
    assert task.started_at is not None
    assert task.finished_at is not None
    return task.finished_at - task.started_at


class _Stalls:
    """How long the loop let a timer wait that was due, each time."""

    def __init__(self) -> None:
        self.found: list[float] = []
        self._loop = asyncio.get_running_loop()
        self._set()

    def _set(self) -> None:
        self._due = self._loop.time() + TICK_S
        self._timer = self._loop.call_at(self._due, self._tick)

    def _tick(self) -> None:
        self.found.append(self._loop.time() - self._due)
        self._set()

    def end(self) -> None:
        self._timer.cancel()


# --- the bare agent ---


def _bare_run(host: RigHost, name: str) -> float:
    """Seconds from the request to run a sample that lies in the guest to the reply that it has ended."""
    _revert(host, name)
    _bare_push(host, name, b"#!/bin/sh\nexit 7\n")
    with host.domain(name) as domain:
        start = time.perf_counter()
        pid = _asked(domain, "guest-exec", path="/bin/sh", arg=["/tmp/bare"])["pid"]
        while not _asked(domain, "guest-exec-status", pid=pid)["exited"]:
            time.sleep(0.001)
        return time.perf_counter() - start


def _copying(host: RigHost) -> Iterator[Figure]:
    name = GUESTS[0]
    content = os.urandom(COPY_BYTES)
    bare, ours = [], []
    _revert(host, name)
    for _ in range(COPIES):
        start = time.perf_counter()
        _bare_push(host, name, content)
        bare.append(COPY_BYTES / 2**20 / (time.perf_counter() - start))
        ours.append(asyncio.run(_pushed(_settings(host, name).spec(), content)))
    ratio = statistics.median(ours) / statistics.median(bare)
    yield median(
        "a file into the guest", ours, "MiB/s", "aim: 0.9", compared=Comparison(peer="bare agent", embedded=True, ratio=ratio)
    )
    yield median("… by the bare agent", bare, "MiB/s")


async def _pushed(machine: MachineSpec, content: bytes) -> float:
    provider = LibvirtProvider()
    await provider.open()
    try:
        session = await QgaChannel(provider, provider.power, 60.0).connect(machine)
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            start = time.perf_counter()
            await session.push(Path(file.name), "ours")
            seconds = time.perf_counter() - start
        await session.close()
    finally:
        await provider.close()
    return len(content) / 2**20 / seconds


def _revert(host: RigHost, name: str) -> None:
    with host.domain(name) as domain:
        domain.revertToSnapshot(domain.snapshotLookupByName(SNAPSHOT), 0)
    while not _answers(host, name):
        time.sleep(0.02)


def _answers(host: RigHost, name: str) -> bool:
    import libvirt

    try:
        host.ask(name, "guest-ping")
    except libvirt.libvirtError:
        return False
    return True


def _bare_push(host: RigHost, name: str, content: bytes) -> None:
    with host.domain(name) as domain:
        handle = _asked(domain, "guest-file-open", path="/tmp/bare", mode="wb")
        sent = 0
        while sent < len(content):
            piece = base64.b64encode(content[sent : sent + WRITE_BYTES]).decode()
            sent += _asked(domain, "guest-file-write", handle=handle, **{"buf-b64": piece})["count"]
        _asked(domain, "guest-file-close", handle=handle)


def _asked(domain: Any, command: str, **arguments: Any) -> Any:
    """What the agent replies; all on one connection, as whoever writes the least code would."""
    import libvirt_qemu

    request = json.dumps({"execute": command, "arguments": arguments})
    return json.loads(libvirt_qemu.qemuAgentCommand(domain, request, 10, 0))["return"]
