"""What a test scripts around a real engine: a store that breaks, a quarantine, results, plugins, limits, and a clock that jumps."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from malbox_tui.model.errors import MalboxError, RefusedContent, StoreError
from malbox_tui.model.events import EventBody
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.plan import Plan, PlannedPlugin, plan_of
from malbox_tui.model.report import Classification, Identification, PluginRun, PluginStatus, ResultRef, Verdict
from malbox_tui.ports import (
    BatchMember,
    Findings,
    GuestPlugin,
    PluginBench,
    PluginInfo,
    PluginJob,
    PluginsRead,
    ResultWriter,
    StopSignal,
    StoredContent,
)
from malbox_tui.store.memory import MemoryStore
from malbox_tui.store.requests import Request
from tests.support.virtual_time import LoopClock, settle_loop

INBOX = Path("/nowhere")
"""Where all samples are laid out, and none is."""
CLEAN_RUN = PluginRun("scripted", "1", PluginStatus.COMPLETED, 0.0, (ResultRef("report", "json", 2, "0" * 64, "r"),))


class ScriptedQuarantine:
    """Holds every content: the sum of a content is its text."""

    def __init__(self) -> None:
        self.extract_raises: list[Exception] = []

    async def open(self) -> None: ...

    async def store(self, content: AsyncIterator[bytes], max_bytes: int) -> StoredContent:
        data = b"".join([chunk async for chunk in content])
        if not data:
            raise RefusedContent("empty", "It is empty.")
        return StoredContent(data.decode(), len(data))

    async def extract(self, sha256: str, target: Path) -> int:
        await settle_loop(2)
        if self.extract_raises:
            raise self.extract_raises.pop(0)
        return len(sha256)

    async def close(self) -> None: ...


class BreakableStore(MemoryStore):
    """`broken` maps kinds of requests to the error that they end with; under `None`, every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: dict[type | None, StoreError] = {}

    def _carry_out(self, request: Request) -> Callable[[], None]:
        error = self.broken.get(type(request), self.broken.get(None))
        return super()._carry_out(request) if error is None else lambda: request.answer.fail(error)

    async def check(self) -> None:
        if (error := self.broken.get(None)) is not None:
            raise error


@dataclass
class ScriptedWriter:
    """Keeps one result in `kept`, under `path`."""

    kept: dict[str, bytes]
    path: str
    format: str
    chunks: bytes = b""

    def write(self, chunk: bytes) -> None:
        self.chunks += chunk

    def commit(self) -> ResultRef:
        self.kept[self.path] = self.chunks
        sha256 = hashlib.sha256(self.chunks).hexdigest()
        return ResultRef(self.path.rsplit("/", 1)[-1], self.format, len(self.chunks), sha256, self.path)

    def abort(self) -> None: ...


class ScriptedResults:
    """Remembers what was settled and discarded, and holds what guests left: `kept` maps `<task id>/<plugin>/<name>` to contents.
    `raises`: what the next calls end with. `files`: where somebody else writes, and what is laid out for somebody else."""

    def __init__(self) -> None:
        self.settled: list[int] = []
        self.discarded: list[int] = []
        self.kept: dict[str, bytes] = {}
        self.raises: list[Exception] = []
        self.files: dict[Path, bytes] = {}

    def kept_of(self, task_id: int, plugin: str = "guest-run") -> dict[str, bytes]:
        """The results of one plugin in one task, by name."""
        begin = f"{task_id}/{plugin}/"
        return {path.removeprefix(begin): content for path, content in self.kept.items() if path.startswith(begin)}

    async def open(self) -> None: ...

    def begin(self, task_id: int, token: str, plugin: str, name: str, format: str) -> ResultWriter:
        self._raise()
        return ScriptedWriter(self.kept, f"{task_id}/{plugin}/{name}", format)

    def place_for(self, task_id: int, token: str, plugin: str, name: str) -> Path:
        return Path(f"/incoming/{task_id}/{plugin}/{name}")

    async def take_in(self, task_id: int, token: str, plugin: str, name: str, max_bytes: int) -> tuple[ResultRef, bool]:
        await settle_loop(2)
        content = self.files.pop(self.place_for(task_id, token, plugin, name), None)
        if content is None:
            raise StoreError(f"There is no file {name} to take in.")
        writer = self.begin(task_id, token, plugin, name, "file")
        writer.write(content[:max_bytes])
        return writer.commit(), len(content) <= max_bytes

    async def lay_out(self, reference: ResultRef, target: Path) -> None:
        await settle_loop(2)
        self.files[target] = self.kept[reference.path]

    async def settle(self, task_id: int, token: str) -> None:
        self._raise()
        self.settled.append(task_id)

    async def discard(self, task_id: int, token: str) -> None:
        self._raise()
        self.discarded.append(task_id)

    def _raise(self) -> None:
        if self.raises:
            raise self.raises.pop(0)

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        return self.kept.get(reference.path, b"")[:max_bytes]

    async def close(self) -> None: ...


class ScriptedLimits:
    """Where limits are saved; `raises`: what the next call ends with."""

    def __init__(self) -> None:
        self.saved: dict[str, tuple[int, int]] = {}
        self.raises: list[Exception] = []

    async def save(self, limits: Mapping[str, tuple[int, int]]) -> str:
        if self.raises:
            raise self.raises.pop(0)
        self.saved = dict(limits)
        return "Saved."


class ScriptedPauses:
    """Where a pause is kept; `raises`: what the next calls of `keep` end with."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.raises: list[Exception] = []

    async def kept(self) -> str | None:
        return self.reason

    async def keep(self, reason: str | None) -> None:
        if self.raises:
            raise self.raises.pop(0)
        self.reason = reason


class JumpingClock(LoopClock):
    """Wall time that follows the loop, and jumps when a test says so."""

    def __init__(self) -> None:
        self.jumped_s = 0.0

    def now(self) -> float:
        return super().now() + self.jumped_s


@dataclass
class ScriptedBench:
    """Runs `seconds` of turned time, or as long as its runner's gate is shut."""

    runner: ScriptedRunner
    inbox: Path = INBOX

    async def identify(self, sample_name: str) -> Identification | None:
        return self.runner.identification

    async def run(self, job: PluginJob, stop: StopSignal) -> Findings:
        return await self.runner.work(job, stop)

    async def run_batch(self, members: Sequence[BatchMember]) -> None:
        await self.runner.work_on_all(members)


@dataclass
class ScriptedRunner:
    """Plugins that do what the test says, and books of who ran when."""

    seconds: float = 1.0
    seconds_of: dict[int, float] = field(default_factory=dict)
    """Of these tasks, instead."""
    deaf: bool = False
    """Takes no notice of being asked to stop, and goes on for `seconds`."""
    hangs: set[int] = field(default_factory=set)
    """Tasks at which it never ends, whatever it is asked."""
    breaks: dict[int, MalboxError] = field(default_factory=dict)
    """Tasks whose findings can't be kept, and why."""
    runs: tuple[PluginRun, ...] = (CLEAN_RUN,)
    raises: list[BaseException] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    jobs: list[PluginJob] = field(default_factory=list)
    limits: list[ResourceLimits] = field(default_factory=list)
    """What benches were acquired with."""
    most_at_once: int = 0
    benches_out: int = 0
    plugins: tuple[str, ...] = ("scripted",)
    """What there is; each that is not kept out gives `runs`, the others are skipped."""
    isolation: str = "scripted"
    identification: Identification | None = None
    """What every sample is."""
    together: bool = False
    """The tasks of a batch run side by side; else one after the other."""
    batches: list[list[int]] = field(default_factory=list)
    """The tasks of each batch that was run."""
    batch_raises: list[BaseException] = field(default_factory=list)
    """What the next batches end with, before anything is run."""
    silent: set[int] = field(default_factory=set)
    """Tasks of whose findings nobody is told."""
    planned: Sequence[PlannedPlugin] = ()
    troubles: tuple[str, ...] = ()
    reloaded: tuple[str, ...] = ()
    """What a reload says that changed."""
    new_guests: tuple[GuestPlugin, ...] = ()
    reload_fails: MalboxError | None = None
    told: list[EventBody] = field(default_factory=list)

    async def open(self) -> Sequence[PluginInfo]:
        return [PluginInfo(name, "1", "does what the test says") for name in self.plugins]

    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        self.limits.append(limits)
        self.benches_out += 1
        return ScriptedBench(self)

    async def release(self, bench: PluginBench) -> None:
        self.benches_out -= 1

    async def trim(self, benches: int) -> None: ...

    @property
    def plan(self) -> Plan:
        return plan_of(self.planned)

    async def reload(self) -> PluginsRead:
        if self.reload_fails is not None:
            raise self.reload_fails
        return PluginsRead(await self.open(), self.new_guests, self.reloaded)

    def tell(self, news: EventBody) -> None:
        self.told.append(news)

    async def watch(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def close(self) -> None: ...

    async def work(self, job: PluginJob, stop: StopSignal) -> Findings:
        self.order.append(job.task_id)
        self.jobs.append(job)
        self.running.add(job.task_id)
        self.most_at_once = max(self.most_at_once, len(self.running))
        try:
            if self.raises:
                raise self.raises.pop(0)
            if job.task_id in self.breaks:
                raise self.breaks[job.task_id]
            skipped = tuple(
                PluginRun(name, "1", PluginStatus.SKIPPED, 0.0, reason=reason) for name, reason in job.kept_out.items()
            )
            takes_part = len(skipped) < len(self.plugins)
            runs = await self._finish(job.task_id, stop) if takes_part else ()
            return Findings((*(msgspec.structs.replace(run, subject=job.subject) for run in runs), *skipped))
        finally:
            self.running.discard(job.task_id)

    async def work_on_all(self, members: Sequence[BatchMember]) -> None:
        self.batches.append([member.job.task_id for member in members])
        if self.batch_raises:
            raise self.batch_raises.pop(0)
        turn = None if self.together else asyncio.Lock()
        async with asyncio.TaskGroup() as group:
            for member in members:
                group.create_task(self._work_on_one(member, turn))

    async def _work_on_one(self, member: BatchMember, turn: asyncio.Lock | None) -> None:
        found: Findings | MalboxError
        if turn is not None and not await _has_its_turn(turn, member.stop):
            found = Findings(_ended(self.runs, member.stop.reason))
        else:
            member.on_work(True)
            try:
                found = await self.work(member.job, member.stop)
            except MalboxError as error:
                found = error
            finally:
                member.on_work(False)
                if turn is not None:
                    turn.release()
        if member.job.task_id not in self.silent:
            member.on_found(found)

    async def _finish(self, task_id: int, stop: StopSignal) -> tuple[PluginRun, ...]:
        loop = asyncio.get_running_loop()
        if task_id in self.hangs:
            await loop.create_future()
        done = loop.create_task(asyncio.sleep(self.seconds_of.get(task_id, self.seconds)))  # noqa: TID251 - turned time
        asked = loop.create_task(stop.wait())
        try:
            await asyncio.wait({done} if self.deaf else {done, asked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            done.cancel()
            asked.cancel()
        return self.runs if stop.reason is None else _ended(self.runs, stop.reason)


def _ended(runs: tuple[PluginRun, ...], reason: str | None) -> tuple[PluginRun, ...]:
    status = PluginStatus.TIMED_OUT if reason == "timeout" else PluginStatus.CANCELED
    return tuple(msgspec.structs.replace(run, status=status) for run in runs)


async def _has_its_turn(turn: asyncio.Lock, stop: StopSignal) -> bool:
    """Waits for the turn; false when it is asked to stop before."""
    loop = asyncio.get_running_loop()
    mine, asked = loop.create_task(turn.acquire()), loop.create_task(stop.wait())
    try:
        await asyncio.wait({mine, asked}, return_when=asyncio.FIRST_COMPLETED)
        return mine.done()
    finally:
        asked.cancel()
        mine.cancel()


class SlowAtBothEnds(ScriptedRunner):
    """Takes a second to give a bench, and one to take it back, so that the first and the last stage of a task last."""

    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        await asyncio.sleep(1.0)  # noqa: TID251 - turned time
        return await super().acquire(limits)

    async def release(self, bench: PluginBench) -> None:
        await asyncio.sleep(1.0)  # noqa: TID251 - turned time
        await super().release(bench)


MALICIOUS = msgspec.structs.replace(CLEAN_RUN, verdict=Verdict(Classification.MALICIOUS, 100, labels=("eicar",)))
