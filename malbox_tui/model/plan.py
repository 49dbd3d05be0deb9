"""Which plugins of a task wait for which, computed from what each says that it needs and gives. Pure.

1. A need is met by the one plugin that gives it. A need that nobody gives, two that give one thing, and a circle are refused by name.
2. Plugins that are for certain kinds of content wait for the one that tells kinds.
3. Sequential plugins run one at a time, those that are needed first, else by name; each after all parallel ones that don't wait for it.
4. Nobody waits for an unrestricted plugin but those that need it, and an exclusive one is kept apart where it runs, not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise

import msgspec


class Execution(StrEnum):
    """What may run beside a plugin."""

    EXCLUSIVE = "exclusive"
    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    UNRESTRICTED = "unrestricted"


class PlannedPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan has to know of a plugin. `kinds`: the kinds of content that it is for; empty: all."""

    name: str
    execution: Execution = Execution.PARALLEL
    needs: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


class PlanFault(Exception):
    """Plugins that can't be planned together. `plugin` is the one whose manifest says so under `key`; `problem` names the others."""

    def __init__(self, plugin: str, key: str, problem: str) -> None:
        self.plugin = plugin
        self.key = key
        self.problem = problem
        super().__init__(f"{plugin}: plan.{key}: {problem}")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin in a plan. It begins when those in `after` are over. `needs` maps each thing to the plugin that gives it; `kind_by` is
    the plugin that tells whether the content is of its `kinds`, empty: none that takes part."""

    plugin: str
    execution: Execution = Execution.PARALLEL
    after: tuple[str, ...] = ()
    needs: Mapping[str, str] = {}
    kinds: tuple[str, ...] = ()
    kind_by: str = ""

    def __str__(self) -> str:
        """When it runs, for a person."""
        parts = [f"for {', '.join(self.kinds)} only"] if self.kinds else []
        parts += [f"with {thing} of {giver}" for thing, giver in self.needs.items()]
        parts += [f"after {', '.join(self.after)}"] if self.after else ["at once"]
        parts += ["alone"] if self.execution is Execution.EXCLUSIVE else []
        return ", ".join(parts)


class Plan(msgspec.Struct, frozen=True):
    """The steps, each after all that it waits for."""

    steps: tuple[Step, ...] = ()

    def step(self, plugin: str) -> Step:
        """That of a plugin, which has one."""
        return next(step for step in self.steps if step.plugin == plugin)

    def needed_by(self, plugins: Iterable[str]) -> frozenset[str]:
        """These plugins, as far as they are planned, and all whose results they wait for, at whatever remove."""
        needed: set[str] = set()
        left = [plugin for plugin in plugins if any(step.plugin == plugin for step in self.steps)]
        while left:
            plugin = left.pop()
            if plugin not in needed:
                step = self.step(plugin)
                needed.add(plugin)
                left += [*step.needs.values(), *([step.kind_by] if step.kind_by else [])]
        return frozenset(needed)

    def left_out(self, only: Iterable[str], names: Iterable[str]) -> list[str]:
        """Those of the plugins `names` that don't take part where `only` these do, beside what they need; `only` empty: none."""
        taking_part = self.needed_by(only) | {*only}
        return [name for name in names if name not in taking_part] if taking_part else []


def plan_of(plugins: Sequence[PlannedPlugin], identifying: str = "") -> Plan:
    """How these run together. `identifying` is the plugin that tells kinds; one that doesn't take part is waited for by nobody.

    Raises `PlanFault`.
    """
    by_name = {plugin.name: plugin for plugin in sorted(plugins, key=lambda plugin: plugin.name)}
    needs = {name: _needs(plugin, by_name) for name, plugin in by_name.items()}
    after = {name: set(needs[name].values()) for name in by_name}
    kind_by = {name: identifying for name in by_name if by_name[name].kinds and identifying in by_name and identifying != name}
    for name in kind_by:
        after[name].add(identifying)
    order = _sorted(after)
    _keep_apart([name for name in order if by_name[name].execution is Execution.SEQUENTIAL], by_name, after)
    return Plan(
        tuple(
            Step(
                plugin=name,
                execution=by_name[name].execution,
                after=tuple(sorted(after[name])),
                needs=needs[name],
                kinds=by_name[name].kinds,
                kind_by=kind_by.get(name, ""),
            )
            for name in _sorted(after)
        )
    )


def _needs(plugin: PlannedPlugin, by_name: Mapping[str, PlannedPlugin]) -> dict[str, str]:
    found: dict[str, str] = {}
    for thing in plugin.gives:
        others = [other.name for other in by_name.values() if thing in other.gives and other.name != plugin.name]
        if others:
            raise PlanFault(plugin.name, "gives", f"{thing!r} is given by {' and by '.join(others)} too; disable all but one")
    for thing in plugin.needs:
        givers = [other.name for other in by_name.values() if thing in other.gives]
        if not givers:
            there = sorted({given for other in by_name.values() for given in other.gives})
            known = f"; there is {', '.join(there)}" if there else ""
            raise PlanFault(plugin.name, "needs", f"no plugin that takes part gives {thing!r}{known}")
        found[thing] = givers[0]
    return found


def _sorted(after: Mapping[str, set[str]]) -> list[str]:
    """All names, each after those that it waits for, else in the order of the mapping. Raises `PlanFault` for a circle."""
    placed: dict[str, None] = {}
    while len(placed) < len(after):
        ready = next((name for name in after if name not in placed and after[name] <= placed.keys()), None)
        if ready is None:
            circle = list(_circle({name: waits - placed.keys() for name, waits in after.items() if name not in placed}))
            chain = " → ".join((*circle, circle[0]))
            raise PlanFault(circle[0], "needs", f"plugins wait for each other in a circle: {chain}")
        placed[ready] = None
    return list(placed)


def _circle(after: Mapping[str, set[str]]) -> Iterator[str]:
    """One circle among plugins of which each waits for another of them."""
    seen: list[str] = [next(iter(after))]
    while (following := min(after[seen[-1]])) not in seen:
        seen.append(following)
    circle = seen[seen.index(following) :]
    first = circle.index(min(circle))
    yield from circle[first:]
    yield from circle[:first]


def _keep_apart(in_turn: Sequence[str], by_name: Mapping[str, PlannedPlugin], after: dict[str, set[str]]) -> None:
    """Let each sequential plugin wait for the one before it, and for the parallel ones that don't wait for it themselves."""
    for name, following in pairwise(in_turn):
        after[following].add(name)
    parallel = [name for name, plugin in by_name.items() if plugin.execution is Execution.PARALLEL]
    for name in in_turn:
        waiting_for_it = _waiting_for(name, after)
        after[name] |= {other for other in parallel if other not in waiting_for_it}


def _waiting_for(name: str, after: Mapping[str, set[str]]) -> set[str]:
    """All that wait for it, at whatever remove."""
    found: set[str] = set()
    left = [name]
    while left:
        waited_for = left.pop()
        more = {other for other, waits in after.items() if waited_for in waits} - found
        found |= more
        left += more
    return found
