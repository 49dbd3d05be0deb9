"""Plugins written in a test, run behind the walls that a test asks for."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil
import pytest

from malbox_tui.config.settings import AnalysisSettings, ConfinementSettings, Isolation, PluginSettings, Settings, WorkerSettings
from malbox_tui.config.workers import ResourceLimitSettings
from malbox_tui.confine import bubblewrap
from malbox_tui.confine.limits import LimitsOnly
from malbox_tui.confine.probe import probe_bubblewrap
from malbox_tui.confine.work import Walls
from malbox_tui.model.errors import ConfinementUnavailable
from malbox_tui.model.events import EventBody
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.report import PluginRun
from malbox_tui.plugins.runner import HostPluginRunner
from malbox_tui.ports import Findings, PluginJob
from malbox_tui.store.results import FileResultStore

DEADLINE_S = 30.0
"""Longer than anything here takes; a test that reaches it hangs."""

NO_BUBBLEWRAP = "needs bubblewrap: make system-deps"

MANIFEST = """
[plugin]
name = "{name}"
version = "1.2.3"
type = "host"
binary = "main.py"
[runtime]
state = "persistent"
execution = "{execution}"
"""


async def walls_of(isolation: Isolation) -> Walls:
    """The walls, or a skip where this host has none of that kind."""
    if isolation is Isolation.LIMITS:
        return LimitsOnly()
    probe = await probe_bubblewrap()
    if not probe.works:
        pytest.skip(NO_BUBBLEWRAP)
    return bubblewrap.find()


def write_plugin(folder: Path, source: str, name: str = "subject", execution: str = "parallel", extra: str = "") -> None:
    """A plugin whose `on_task(self, ctx)` body, or whole script (if it has a `run(`), is `source`."""
    home = folder / name
    home.mkdir(parents=True)
    (home / "plugin.toml").write_text(MANIFEST.format(name=name, execution=execution) + extra)
    source = textwrap.dedent(source)
    if "run(" not in source:
        body = textwrap.indent(source.strip() or "pass", " " * 8)
        source = (
            "import os, sys, time\nimport malbox_plugin_sdk as malbox\n"
            f"class Subject(malbox.Plugin):\n    def on_task(self, ctx):\n{body}\nmalbox.run(Subject())\n"
        )
    (home / "main.py").write_text(source)


class Stop:
    """A stop signal that a test gives."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._given = asyncio.Event()

    def give(self, reason: str) -> None:
        self.reason = reason
        self._given.set()

    async def wait(self) -> str:
        await self._given.wait()
        assert self.reason is not None
        return self.reason


@dataclass
class Rig:
    """An open runner over plugins of a test."""

    runner: HostPluginRunner
    results: FileResultStore
    root: Path
    news: list[EventBody] = field(default_factory=list)
    limits: ResourceLimits = UNLIMITED
    tasks: int = 0
    waits: list[bool] = field(default_factory=list)
    """What plugins said of waiting for those of other tasks, in order: that they begin to, and that they go on."""

    async def findings(self, sample: bytes = b"sample", stop: Stop | None = None) -> Findings:
        """What all plugins find on one sample."""
        bench = await self.runner.acquire(self.limits)
        self.tasks += 1
        target = bench.inbox / "sample.bin"
        target.write_bytes(sample)
        target.chmod(0o444)
        try:
            async with asyncio.timeout(DEADLINE_S):
                job = PluginJob(self.tasks, f"token-{self.tasks}", "sample.bin", on_wait=self.waits.append)
                return await bench.run(job, stop or Stop())
        finally:
            await self.runner.release(bench)

    async def run(self, sample: bytes = b"sample", stop: Stop | None = None) -> PluginRun:
        """The run of the only plugin."""
        (run,) = (await self.findings(sample, stop)).runs
        return run

    async def content(self, run: PluginRun, name: str) -> bytes:
        """A result's content."""
        (reference,) = [result for result in run.results if result.name == name]
        return await self.results.read(reference, 64 * 1024 * 1024)


@asynccontextmanager
async def rig(
    root: Path,
    isolation: Isolation = Isolation.AUTO,
    plugins: PluginSettings | None = None,
    memory_mb: int = 1024,
    cancel_grace_s: float = 5.0,
    flush_grace_s: float = 10.0,
    plugin_folder: Path | None = None,
    limits: ResourceLimits = UNLIMITED,
) -> AsyncIterator[Rig]:
    """A runner over the plugins in `root / "plugins"`; a skip where isolation is required and this host has none.

    `limits` are those of a worker group, and of every bench.
    """
    news: list[EventBody] = []
    results = FileResultStore(root / "results")
    await results.open()
    settings = Settings(
        workers=(
            WorkerSettings(name="limited", resource_limits=msgspec.convert(msgspec.to_builtins(limits), ResourceLimitSettings)),
        ),
        plugins=plugins or PluginSettings(),
        confinement=ConfinementSettings(isolation=isolation, memory_mb=memory_mb),
        analysis=AnalysisSettings(cancel_grace_s=cancel_grace_s, flush_grace_s=flush_grace_s),
    )
    runner = HostPluginRunner(settings, results, root / "scratch", news.append, plugin_folder or root / "plugins")
    try:
        await runner.open()
    except ConfinementUnavailable as exc:
        await runner.close()
        if "resource_limits" in str(exc):
            raise
        pytest.skip(NO_BUBBLEWRAP)
    try:
        yield Rig(runner, results, root, news, limits)
    finally:
        await runner.close()
        await results.close()


def processes_with(mark: str) -> list[psutil.Process]:
    """Processes of this host with `mark` in their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if mark in " ".join(process.cmdline()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found
