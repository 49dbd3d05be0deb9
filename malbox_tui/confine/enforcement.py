"""From what a worker group asks for to limits of processes, by the means that this host has; and what it can't enforce.

| asked for | enforced by | else by | else |
| --- | --- | --- | --- |
| memory_mb | a control group, over all processes of a plugin | RLIMIT_AS, over each | |
| cpu_cores | a control group's quota, over the plugins of a task | for whole numbers CPU affinity, which a plugin can undo | refused |
| disk_mb | the size of the sandbox's scratch | | refused |
| network_kbps = 0 | the sandbox's empty network namespace | | refused |
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from malbox_tui.config.settings import ConfinementSettings, GroupSettings
from malbox_tui.confine.hierarchies import Controller
from malbox_tui.confine.work import Limits
from malbox_tui.model.errors import ConfinementUnavailable
from malbox_tui.model.limits import ResourceLimits

BUBBLEWRAP_REMEDY = 'let plugins be isolated by bubblewrap (make system-deps, as root; isolation = "auto")'
CPU_REMEDY = "ask for whole cores, or give the engine a control group of its own with the controller cpu (systemd: Delegate=yes)"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A limit of a group that this host can't enforce; `why` and `remedy` are parts of a sentence.

    `waived`: the group goes without it; else the engine doesn't start.
    """

    group: str
    key: str
    why: str
    remedy: str
    waived: bool

    def __str__(self) -> str:
        return f"{self.key} of the group {self.group}"


@dataclass(frozen=True, slots=True)
class Means:
    """What limits are enforced with: a sandbox or none, and control groups for these controllers."""

    has_sandbox: bool
    controllers: frozenset[Controller]

    def limits(self, asked: ResourceLimits, defaults: ConfinementSettings, bench_number: int) -> Limits:
        """Of each process of a bench. Benches with consecutive numbers are given different processors, as long as there are some."""
        memory_mb = defaults.memory_mb if asked.memory_mb is None else asked.memory_mb
        counted = Controller.MEMORY in self.controllers
        return Limits(
            memory_mb=memory_mb,
            address_space_mb=max(defaults.memory_mb, memory_mb) if counted else memory_mb,
            scratch_mb=defaults.scratch_mb if asked.disk_mb is None else asked.disk_mb,
            processors=self._processors(asked.cpu_cores, bench_number),
        )

    def quota(self, asked: ResourceLimits) -> float | None:
        """The cores that a bench may keep busy by its control group; None: any number."""
        return asked.cpu_cores if Controller.CPU in self.controllers else None

    def in_words(self) -> str:
        """How each limit is enforced, for an operator."""
        memory = "all processes of a plugin together" if Controller.MEMORY in self.controllers else "each process of a plugin"
        cores = "quota" if Controller.CPU in self.controllers else "affinity, in whole cores"
        processes = "counted for each plugin" if Controller.PIDS in self.controllers else "not counted for each plugin"
        disk = "sized scratch" if self.has_sandbox else "each file alone"
        return f"memory: {memory}; cores: {cores}; processes: {processes}; disk: {disk}"

    def shortfalls(self, groups: Iterable[GroupSettings]) -> tuple[Shortfall, ...]:
        """What of the groups' limits can't be enforced."""
        return tuple(
            Shortfall(group.name, key, why, remedy, waived=group.limits.best_effort)
            for group in groups
            for key, why, remedy in self._missing(group.limits)
        )

    def _missing(self, asked: ResourceLimits) -> Iterator[tuple[str, str, str]]:
        if asked.cpu_cores is not None and not float(asked.cpu_cores).is_integer() and Controller.CPU not in self.controllers:
            why = "a part of a core takes a quota, and no control group with the controller cpu can be made here"
            yield "cpu_cores", why, CPU_REMEDY
        if not self.has_sandbox and asked.disk_mb is not None:
            yield "disk_mb", "without bubblewrap only the size of each single file can be bounded", BUBBLEWRAP_REMEDY
        if not self.has_sandbox and asked.network_kbps is not None:
            yield "network_kbps", "without bubblewrap plugins can reach the host's network", BUBBLEWRAP_REMEDY

    def _processors(self, cores: float | None, bench_number: int) -> tuple[int, ...]:
        if cores is None or Controller.CPU in self.controllers or not float(cores).is_integer():
            return ()
        there = sorted(os.sched_getaffinity(0))
        first = bench_number * int(cores) % len(there)
        return tuple(sorted((there[first:] + there[:first])[: int(cores)]))


def not_enforced(groups: Iterable[GroupSettings], means: Means) -> tuple[Shortfall, ...]:
    """What these groups go without, all of it waived.

    Raises `ConfinementUnavailable`, naming group and key, for what a group asks for, can't have and doesn't waive.
    """
    shortfalls = means.shortfalls(groups)
    for shortfall in shortfalls:
        if not shortfall.waived:
            raise ConfinementUnavailable(
                f"{shortfall} ([workers.resource_limits]) can't be enforced here: {shortfall.why}. To do: {shortfall.remedy}; "
                "or write best_effort = true there to go without."
            )
    return shortfalls
