"""Plugins that behave as a test asks, for the contract suite of plugin runners: each kind of runner brings a rig.

`on_every_runner` makes a test of them; a kind that runs under turned time brings its own loop.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.config.settings import Isolation
from malbox_tui.model.errors import StoreFull
from malbox_tui.model.events import EventBody, PluginProgress, PluginStarted, PluginStopped
from malbox_tui.ports import Findings, PluginBench, PluginJob, PluginRunner, ResultStore, ResultWriter
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.plugin_run import SimulatedPlugin
from malbox_tui.simulated.plugins import SimulatedRunner
from malbox_tui.simulated.results import SimulatedResults
from malbox_tui.simulated.world import World
from tests.confine.rig import DEADLINE_S, Stop, rig, write_plugin
from tests.support.batches import Told
from tests.support.virtual_time import run_virtual

GRACE_S = 0.5
"""How long the plugins of every rig may go on after a stop."""


class Behaviour(StrEnum):
    """What a plugin does with a sample; it bears this name. The last three take batches, and judge samples that come alone.

    The first batch of `BREAKS` ends its process, and that of `HANGS` ends only by a stop.
    """

    JUDGES = "judges"
    FAILS = "fails"
    WAITS = "waits"
    DEAF = "waits-deaf"
    TOGETHER = "together"
    BREAKS = "together-breaks"
    HANGS = "together-hangs"


CRASHES = b"crash"
"""A content that `JUDGES` dies of, if it comes first after `crash_next`."""


class PluginRig(ABC):
    """An open runner over one plugin of each behaviour."""

    runner: PluginRunner
    results: ResultStore
    news: list[EventBody]

    @abstractmethod
    def lay_out(self, bench: PluginBench, content: bytes, name: str = "sample") -> None:
        """Put a sample into the inbox."""

    @abstractmethod
    def laid_out(self, bench: PluginBench) -> bool:
        """Whether anything lies in the inbox."""

    @abstractmethod
    def crash_next(self) -> None:
        """`JUDGES` is to die of the next sample, which is `CRASHES`."""

    def fill_the_disk(self, patch: pytest.MonkeyPatch, task_id: int | None = None) -> None:
        """From now on no result can be written, or none of one task."""
        begin = self.results.begin

        def begin_or_raise(of: int, *rest: str) -> ResultWriter:
            if task_id in (None, of):
                raise StoreFull("The disk is full.")
            return begin(of, *rest)

        patch.setattr(self.results, "begin", begin_or_raise)

    def members(self, bench: PluginBench, only: tuple[Behaviour, ...], *contents: bytes) -> list[Told]:
        """Tasks 1, 2, … with these contents, for the plugins named."""
        told = [Told(number, f"sample-{number}", _all_but(only)) for number in range(1, len(contents) + 1)]
        for member, content in zip(told, contents, strict=True):
            self.lay_out(bench, content, member.sample_name)
        return told

    async def run_batch(self, bench: PluginBench, told: list[Told]) -> None:
        """Run them together."""
        async with asyncio.timeout(DEADLINE_S):
            await bench.run_batch([each.member for each in told])

    async def run(self, bench: PluginBench, only: tuple[Behaviour, ...], stop: Stop | None = None) -> Findings:
        """What the plugins named find; the others are kept out."""
        async with asyncio.timeout(DEADLINE_S):
            return await bench.run(PluginJob(1, "token-1", "sample", _all_but(only)), stop or Stop())

    async def until_started(self, behaviour: Behaviour) -> None:
        """Wait for the news of a plugin's begin."""
        await self._until_told(PluginStarted, behaviour)

    async def until_deaf(self) -> None:
        """Wait until `DEAF` hears nothing any more."""
        await self.until_started(Behaviour.DEAF)

    async def until_stopped(self, behaviour: Behaviour) -> None:
        """Wait for the news of a plugin's end."""
        await self._until_told(PluginStopped, behaviour)

    async def _until_told(self, kind: type[PluginStarted | PluginProgress | PluginStopped], behaviour: Behaviour) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not any(isinstance(news, kind) and news.plugin == behaviour for news in self.news):
                await asyncio.sleep(0.01)  # noqa: TID251 - a poll with a deadline


class HostRig(PluginRig):
    """Processes of this host."""

    @staticmethod
    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[PluginRig]:
        for behaviour, source in (*_SOURCES.items(), *_BATCH_SOURCES.items()):
            write_plugin(folder / "plugins", source, behaviour.value)
        async with rig(folder, Isolation.LIMITS, cancel_grace_s=GRACE_S, flush_grace_s=GRACE_S) as host:
            subject = HostRig()
            subject.runner, subject.results, subject.news = host.runner, host.results, host.news
            yield subject

    def lay_out(self, bench: PluginBench, content: bytes, name: str = "sample") -> None:
        (bench.inbox / name).write_bytes(content)

    def laid_out(self, bench: PluginBench) -> bool:
        return any(bench.inbox.iterdir())

    def crash_next(self) -> None:
        """It reads what it is to do in the sample."""

    async def until_deaf(self) -> None:
        """It says so, and a process takes a moment to get there."""
        await self._until_told(PluginProgress, Behaviour.DEAF)


class SimulatedRig(PluginRig):
    """Plugins of a simulated world."""

    def __init__(self) -> None:
        self.world = World(1, asyncio.sleep)  # noqa: TID251 - turned time
        self.results = SimulatedResults(self.world)
        self.news = []
        plugins = [
            SimulatedPlugin(behaviour.value, judges=1.0, takes_batches=behaviour in _BATCH_SOURCES) for behaviour in Behaviour
        ]
        self.runner = SimulatedRunner(
            self.world, plugins, cancel_grace_s=GRACE_S, flush_grace_s=GRACE_S, results=self.results, on_news=self.news.append
        )
        for fault, behaviour, times in _FAULTS:
            self.world.faults.inject(fault, behaviour.value, times)

    @staticmethod
    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[PluginRig]:
        subject = SimulatedRig()
        await subject.runner.open()
        yield subject
        await subject.runner.close()
        assert subject.world.violations == []

    def lay_out(self, bench: PluginBench, content: bytes, name: str = "sample") -> None:
        self.world.files[bench.inbox / name] = content

    def laid_out(self, bench: PluginBench) -> bool:
        return any(path.parent == bench.inbox for path in self.world.files)

    def crash_next(self) -> None:
        self.world.faults.inject(Fault.PLUGIN_CRASHES, Behaviour.JUDGES.value)


_SOURCES = {
    Behaviour.JUDGES: """
        if ctx.task().sample_bytes() == b"crash":
            os._exit(3)
        report = malbox.ReportBuilder("judges", "1.2.3").verdict(malbox.Classification.Malicious, score=90)
        ctx.results().push(report.build())
        """,
    Behaviour.FAILS: "raise ValueError('it is broken')",
    Behaviour.WAITS: """
        while True:
            ctx.task().sample_bytes()
        """,
    Behaviour.DEAF: """
        told = False
        while True:
            try:
                if not told:
                    ctx.progress(0.1, "deaf from here on")
                    told = True
                time.sleep(1)
            except BaseException:
                pass
        """,
}

_BATCHING = """
import os
import malbox_plugin_sdk as malbox
class Subject(malbox.Plugin):
    def on_task(self, ctx):
        report = malbox.ReportBuilder("{name}", "1.2.3").labels([ctx.task().sample_bytes().decode()])
        ctx.results().push(report.verdict(malbox.Classification.Malicious, score=90).build())
    def on_batch(self, ctxs):
        {batch}
malbox.run(Subject())
"""

_BATCH_SOURCES = {
    behaviour: _BATCHING.format(name=behaviour.value, batch=batch)
    for behaviour, batch in {
        Behaviour.TOGETHER: "for ctx in reversed(ctxs): self.on_task(ctx)",
        Behaviour.BREAKS: "self.on_task(ctxs[0]); os._exit(3)",
        Behaviour.HANGS: "while True: ctxs[0].task().sample_bytes()",
    }.items()
}

_FAULTS = (
    (Fault.PLUGIN_CRASHES, Behaviour.FAILS, ALWAYS),
    (Fault.PLUGIN_HANGS, Behaviour.WAITS, ALWAYS),
    (Fault.PLUGIN_HANGS, Behaviour.DEAF, ALWAYS),
    (Fault.PLUGIN_DEAF, Behaviour.DEAF, ALWAYS),
    (Fault.PLUGIN_CRASHES, Behaviour.BREAKS, 1),
    (Fault.PLUGIN_HANGS, Behaviour.HANGS, 1),
)


def _all_but(only: tuple[Behaviour, ...]) -> dict[str, str]:
    return {behaviour.value: "Not asked for." for behaviour in Behaviour if behaviour not in only}


Opening = Callable[[Path], AbstractAsyncContextManager[PluginRig]]

RUNNERS: dict[str, tuple[Opening, Callable[[Coroutine[Any, Any, None]], None]]] = {
    "host": (HostRig.opened, asyncio.run),
    "simulated": (SimulatedRig.opened, run_virtual),
}
"""kind → how it is opened in an empty folder, and on which loop it runs."""


def on_every_runner(test: Callable[[PluginRig], Awaitable[None]]) -> Callable[[str, Path], None]:
    """Run `test` on a new rig of each kind."""

    async def live(opened: Opening, folder: Path) -> None:
        async with opened(folder) as subject:
            await test(subject)

    @pytest.mark.parametrize("kind", RUNNERS)
    @functools.wraps(test)
    def on_one(kind: str, tmp_path: Path) -> None:
        opened, run = RUNNERS[kind]
        run(live(opened, tmp_path))

    on_one.__signature__ = inspect.signature(lambda kind, tmp_path: None)  # type: ignore[attr-defined]
    return on_one
