"""Plugins that work on a sample: what they get, what they give, and who runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.events import EventBody
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.plan import Plan
from malbox_tui.model.profile import Profile
from malbox_tui.model.report import Identification, PluginRun
from malbox_tui.ports.machines import GuestPlugin


class StopSignal(Protocol):
    """Says once that work is to end, and why; it never takes that back."""

    @property
    def reason(self) -> str | None:
        """Why to stop; None while there is no need to."""
        ...

    async def wait(self) -> str:
        """Returns the reason as soon as there is one."""
        ...


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """One plugin as it takes part in analyses. `options`: those it has, with their values; `host_paths`: those of them that are paths
    of this host."""

    name: str
    version: str
    description: str
    task_types: frozenset[str] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    host_paths: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PluginsRead:
    """What a runner has after it read its plugins again: those of the host and those for guests, and what changed, a part of a sentence
    each."""

    plugins: Sequence[PluginInfo]
    guests: Sequence[GuestPlugin] = ()
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginJob:
    """One attempt's work for the plugins: the sample lies in the bench's inbox under `sample_name`.

    `kept_out` maps plugins that don't take part in this task to the reason, a sentence. `timeout_s` is how long the plugins may take
    together; who keeps to it is whoever speaks through the stop signal. `subject` is what is looked at, for a person, when it isn't the
    task's sample but something that was collected of its run; results then lie apart from those on the sample. `identification` is what
    was known of the sample's kind before. `on_wait(True)` is called when nothing is done for it because plugins wait for those of other
    tasks, `on_wait(False)` when that is over. `options`: by plugin, those that it has for this task in place of its own.
    """

    task_id: int
    token: str
    sample_name: str
    kept_out: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 300.0
    subject: str = ""
    task_type: str = "static"
    identification: Identification | None = None
    on_wait: Callable[[bool], None] = lambda waits: None
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Findings:
    """What the plugins made of a sample: a run for each, and what kind of content it is, if one of them said so."""

    runs: tuple[PluginRun, ...]
    identification: Identification | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BatchMember:
    """One task of a batch, as its plugins meet it. Its sample lies in the inbox under a name of its own.

    `on_work(True)` is called when a plugin takes the sample up while none worked on it, `on_work(False)` when none does any more; every
    True is followed by a False. `on_found` is called once, as soon as nothing is left to do for this task: with what was found, or
    with the error of the result store that kept it from being kept.
    """

    job: PluginJob
    stop: StopSignal
    on_work: Callable[[bool], None]
    on_found: Callable[[Findings | MalboxError], None]


class PluginBench(Protocol):
    """A place for one task, or one batch of tasks, at a time: a folder that the plugins' processes can read and not write, and those
    processes."""

    @property
    def inbox(self) -> Path:
        """The folder that samples are put into; empty when the bench is handed out."""
        ...

    async def identify(self, sample_name: str) -> Identification | None:
        """What kind of content lies in the inbox under this name, by the plugins whose work that is; None: they don't know. Nothing of
        it is kept. Cancelled: everything is killed at once."""
        ...

    async def run(self, job: PluginJob, stop: StopSignal) -> Findings:
        """Run all plugins on the sample and return what they found.

        A plugin that fails, crashes, floods or lies makes its own run `failed` and harms no other. When `stop` speaks, plugins are
        asked to end; after the grace period their whole process trees are killed; then this returns what there is, the unfinished
        runs as `canceled` (or `timed_out` when the reason is "timeout"). Plugins that are kept out give a `skipped` run each, with the
        reason. Cancelled: everything is killed at once.
        """
        ...

    async def run_batch(self, members: Sequence[BatchMember]) -> None:
        """Run all plugins on the samples of all members; returns when each has been told what was found.

        A plugin that takes batches gets the samples together, any other one gets them one after the other in one process. The stop of
        one member ends its runs as in `run` and leaves the others alone. A plugin that breaks at a batch, or takes longer than half of
        the shortest time its members may take, gets them again one by one, so that one sample spoils no other's result. Cancelled:
        everything is killed at once, and who was not told yet is not told.
        """
        ...


class PluginRunner(Protocol):
    """Runs host plugins in confined processes, one for each plugin and busy bench."""

    async def open(self) -> Sequence[PluginInfo]:
        """Make the plugins ready. Raises `PluginUnavailable`, `ManifestError`, `ConfinementUnavailable`."""
        ...

    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        """A bench that nobody else uses, its processes under these limits. Never waits for another bench.

        An idle one that was acquired with the same limits is taken first.
        """
        ...

    async def release(self, bench: PluginBench) -> None:
        """Take a bench back; its inbox is emptied."""
        ...

    async def trim(self, benches: int) -> None:
        """End the processes of idle benches until at most `benches` benches are left, in use or not."""
        ...

    @property
    def isolation(self) -> str:
        """How strongly plugins are confined, in words."""
        ...

    @property
    def plan(self) -> Plan:
        """How the plugins run together, since `open` or the last `reload`."""
        ...

    @property
    def troubles(self) -> Sequence[str]:
        """What an operator has to know of the plugins while it lasts, a sentence each."""
        ...

    async def reload(self, profiles: Sequence[Profile] | None = None) -> PluginsRead:
        """Read all plugins again: benches that are acquired from now on have them as they are. They have to fit these profiles (None:
        those that they had to fit before). Raises what `open` does; nothing has changed then."""
        ...

    def tell(self, news: EventBody) -> None:
        """Pass news on to the plugins that want it; never waits."""
        ...

    async def watch(self) -> None:
        """Look after plugins that have nothing to do, until cancelled."""
        ...

    async def close(self) -> None:
        """End all processes. A second call does nothing."""
        ...
