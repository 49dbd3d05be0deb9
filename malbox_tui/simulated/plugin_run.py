"""One simulated plugin's run on one content. What it finds depends on the seed, the content and its name alone."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from malbox_tui.model.events import EventBody, PluginProgress, PluginResultAvailable, PluginStarted, PluginStopped
from malbox_tui.model.report import (
    REPORT_RESULT,
    Classification,
    Confidence,
    Identification,
    PluginIdentity,
    PluginRun,
    PluginStatus,
    Report,
    ResultRef,
    Verdict,
)
from malbox_tui.ports import PluginJob, ResultStore, StopSignal
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.world import Span, World


@dataclass(frozen=True, slots=True)
class SimulatedPlugin:
    """A plugin as it takes part in analyses.

    `seconds`: how long a run takes. `judges`: the chance, 0 to 1, of a verdict. `identifies`: it says what kind of content a sample is.
    `steps`: how many times a run it says how far it is; 0: never. `takes_batches`: it gets the samples of a batch together.
    """

    name: str
    version: str = "1.0.0"
    description: str = "simulated"
    task_types: frozenset[str] | None = None
    seconds: Span = (0.2, 3.0)
    judges: float = 0.0
    identifies: bool = False
    steps: int = 0
    takes_batches: bool = False


PLUGINS = (
    SimulatedPlugin("digests", "1.0.0", "sums and fuzzy hashes", seconds=(0.1, 0.8)),
    SimulatedPlugin("file-type", "1.0.0", "what kind of content it is", seconds=(0.1, 0.4), identifies=True),
    SimulatedPlugin("yara-x", "1.0.0", "rules that match", seconds=(0.5, 6.0), judges=0.4),
)
"""Plugins as they are built in."""


@dataclass(frozen=True, slots=True)
class PluginPlace:
    """What the plugins of one runner share; `closing` is set when all of them are to be killed."""

    world: World
    era: int
    cancel_grace_s: float
    flush_grace_s: float
    results: ResultStore | None
    on_news: Callable[[EventBody], None]
    closing: asyncio.Event


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, and why, in a sentence without a capital."""

    status: PluginStatus
    reason: str = ""


CLOSED = Ending(PluginStatus.CANCELED, "the plugins are being closed")


_KINDS = (
    Identification("pe", "application/vnd.microsoft.portable-executable", "windows", "x64", "Windows executable"),
    Identification("pe", "application/vnd.microsoft.portable-executable", "windows", "x86", "Windows executable"),
    Identification("elf", "application/x-executable", "linux", "x64", "Linux executable"),
    Identification("ole", "application/x-ole-storage", "windows", None, "Office document"),
    Identification("pdf", "application/pdf", None, None, "PDF document"),
    Identification("script", "text/x-powershell", "windows", None, "PowerShell script"),
)

_JUDGEMENTS = (
    (Classification.SUSPICIOUS, 55, ("packed",)),
    (Classification.MALICIOUS, 90, ("trojan", "loader")),
    (Classification.MALICIOUS, 100, ("ransomware",)),
)


async def run_plugin(
    plugin: SimulatedPlugin, place: PluginPlace, job: PluginJob, content: bytes, stop: StopSignal, *, begins: bool = True
) -> PluginRun:
    """One run, whose begin is told if it `begins` here. Raises what the result store raises.

    Cancelled: the plugin is dead, results that are whole stay.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    if begins:
        place.on_news(PluginStarted(task_id=job.task_id, plugin=plugin.name))
    ending = await _work(plugin, place, job, content, stop)
    return concluded(plugin, place, job, content, ending, loop.time() - began)


def concluded(
    plugin: SimulatedPlugin, place: PluginPlace, job: PluginJob, content: bytes, ending: Ending, seconds: float
) -> PluginRun:
    """The account of a run that took `seconds`, its report written if it completed. Raises what the result store raises."""
    verdict: Verdict | None = None
    results: tuple[ResultRef, ...] = ()
    if ending.status is PluginStatus.COMPLETED:
        verdict = _verdict(plugin, place.world, content)
        results = (_report(plugin, place, job, verdict),)
        place.on_news(PluginResultAvailable(task_id=job.task_id, plugin=plugin.name, result_name=REPORT_RESULT))
    place.on_news(PluginStopped(task_id=job.task_id, plugin=plugin.name, status=ending.status, seconds=seconds))
    return PluginRun(plugin.name, plugin.version, ending.status, seconds, results, verdict, ending.reason, job.subject)


def not_run(plugin: SimulatedPlugin, reason: str, subject: str = "") -> PluginRun:
    """The account of a run that a stop prevented."""
    return PluginRun(plugin.name, plugin.version, _status_of(reason), 0.0, reason="it was not started", subject=subject)


def skipped(plugins: Sequence[SimulatedPlugin], job: PluginJob) -> list[PluginRun]:
    """The accounts of those that are kept out of the task."""
    kept_out = job.kept_out
    return [
        PluginRun(plugin.name, plugin.version, PluginStatus.SKIPPED, 0.0, reason=kept_out[plugin.name])
        for plugin in plugins
        if plugin.name in kept_out
    ]


def identified(
    world: World, plugins: Sequence[SimulatedPlugin], runs: Sequence[PluginRun], content: bytes
) -> Identification | None:
    """What kind of content it is, if a plugin that says so completed."""
    completed = {run.name for run in runs if run.status is PluginStatus.COMPLETED}
    if any(plugin.identifies and plugin.name in completed for plugin in plugins):
        return kind_of(world, content)
    return None


def kind_of(world: World, content: bytes) -> Identification:
    """What kind of content it is."""
    return world.fortune("kind", content).choice(_KINDS)


def stopped(reason: str) -> Ending:
    """The ending of a run that a stop ended."""
    return Ending(_status_of(reason), "the time limit of the task ended it" if reason == "timeout" else f"stopped: {reason}")


async def _work(plugin: SimulatedPlugin, place: PluginPlace, job: PluginJob, content: bytes, stop: StopSignal) -> Ending:
    world = place.world
    seconds = world.fortune("seconds", plugin.name, content).uniform(*plugin.seconds)
    crashes = world.faults.strikes(Fault.PLUGIN_CRASHES, plugin.name)
    hangs = not crashes and world.faults.strikes(Fault.PLUGIN_HANGS, plugin.name)
    if crashes:
        seconds = world.drawn((0.0, seconds))
    parts = plugin.steps + 1
    for part in range(1, parts + 1):
        if not await world.take_or_until(place.era, None if hangs else seconds / parts, stop.wait, place.closing.wait):
            return await _ended(plugin, place, stop)
        if part < parts:
            place.on_news(PluginProgress(task_id=job.task_id, plugin=plugin.name, fraction=part / parts, message="scanning"))
    if crashes:
        return Ending(PluginStatus.FAILED, "the process ended unasked: signal 11")
    return Ending(PluginStatus.COMPLETED)


async def _ended(plugin: SimulatedPlugin, place: PluginPlace, stop: StopSignal) -> Ending:
    """Asked to end: at once, or killed when it was deaf until the grace period was over."""
    if stop.reason is None:
        return CLOSED
    reason = stop.reason
    await until_it_hears(plugin, place, place.flush_grace_s if reason == "timeout" else place.cancel_grace_s)
    return stopped(reason)


async def until_it_hears(plugin: SimulatedPlugin, place: PluginPlace, grace_s: float) -> None:
    """A plugin ends at once when it is asked to; a deaf one is killed after the grace period."""
    if not place.closing.is_set() and place.world.faults.strikes(Fault.PLUGIN_DEAF, plugin.name):
        await place.world.take_or_until(place.era, grace_s, place.closing.wait)


def _status_of(stop_reason: str) -> PluginStatus:
    return PluginStatus.TIMED_OUT if stop_reason == "timeout" else PluginStatus.CANCELED


def _verdict(plugin: SimulatedPlugin, world: World, content: bytes) -> Verdict | None:
    fortune = world.fortune("verdict", plugin.name, content)
    if fortune.random() >= plugin.judges:
        return None
    classification, score, labels = fortune.choice(_JUDGEMENTS)
    return Verdict(classification, score, fortune.choice(tuple(Confidence)), labels)


def _report(plugin: SimulatedPlugin, place: PluginPlace, job: PluginJob, verdict: Verdict | None) -> ResultRef:
    report = msgspec.json.encode(Report(plugin=PluginIdentity(plugin.name, plugin.version), summary="simulated", verdict=verdict))
    folder = f"{plugin.name}.{job.sample_name}" if job.subject else plugin.name
    if place.results is None:
        path = f"{job.task_id}/{job.token}/{folder}/{REPORT_RESULT}"
        return ResultRef(REPORT_RESULT, "json", len(report), hashlib.sha256(report).hexdigest(), path)
    writer = place.results.begin(job.task_id, job.token, folder, REPORT_RESULT, "json")
    try:
        writer.write(report)
        return writer.commit()
    except BaseException:
        writer.abort()
        raise
