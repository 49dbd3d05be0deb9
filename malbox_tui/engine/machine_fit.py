"""Which machines may serve which tasks, whatever state they are in, and why the others may not, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from malbox_tui.engine.machine import Machine
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.machine import MachineFacts, MachineSpec
from malbox_tui.model.task import RequirementClass


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """What a worker group asks of the machines of its tasks, beside what the tasks do. `platforms`: those that it takes; None: all.

    A machine brings its memory and processors with its snapshot, so one that has more than `limits` allow is not used.
    """

    platforms: frozenset[str] | None = None
    limits: ResourceLimits = UNLIMITED


def suits(machine: Machine, requires: RequirementClass, terms: Sequence[Terms]) -> bool:
    """Whether it may ever serve such a task for one of the groups."""
    return not machine.spec.unmet(requires) and any(next(_unsuited(machine, ours), None) is None for ours in terms)


def lacking(machine: Machine, requires: RequirementClass, terms: Sequence[Terms]) -> list[str]:
    """What keeps it from ever serving such a task for the first of the groups, in words."""
    return [*machine.spec.unmet(requires), *_unsuited(machine, terms[0])] if terms else [*machine.spec.unmet(requires)]


def network_bound(machine: MachineSpec, limits: ResourceLimits) -> int | None:
    """How much its network may carry, as of `Throttle`: the least of what its own configuration and these limits allow."""
    return min((kbps for kbps in (machine.network_kbps, limits.network_kbps) if kbps is not None), default=None)


def must_be_bound(machine: MachineSpec, limits: ResourceLimits) -> bool:
    """Whether it is of no use under these limits if its network can't be bound."""
    return machine.network_kbps is not None or (limits.network_kbps is not None and not limits.best_effort)


def _unsuited(machine: Machine, terms: Terms) -> Iterator[str]:
    limits, facts = terms.limits, machine.facts or MachineFacts()
    if terms.platforms is not None and machine.spec.platform not in terms.platforms:
        yield f"a platform that the worker group takes (it is {machine.spec.platform})"
    if _is_more(facts.memory_mb, limits.memory_mb):
        yield f"room in the worker group's memory_mb (it has {facts.memory_mb} MiB, at most {limits.memory_mb} are allowed)"
    if _is_more(facts.vcpus, limits.cpu_cores):
        yield f"room in the worker group's cpu_cores (it has {facts.vcpus}, at most {limits.cpu_cores:g} are allowed)"
    if machine.unthrottled is not None and must_be_bound(machine.spec, limits):
        yield f"a network that can be held to {network_bound(machine.spec, limits)} kbit/s ({machine.unthrottled})"


def _is_more(found: int | None, allowed: float | None) -> bool:
    return found is not None and allowed is not None and found > allowed
