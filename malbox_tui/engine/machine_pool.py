"""Which machine serves which task. What is done to machines, and how long it takes, is in `machine_care`.

1. Reserving and the change of state are one synchronous step, taken before the task is claimed: only a task that can be served is
   taken, and no machine is ever two tasks'.
2. A machine that was given back serves again only when it is proven clean.
3. A free machine beats a preferred busy one; a task never waits for a machine that failed it while another could serve.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from malbox_tui.engine import clock
from malbox_tui.engine.machine import Machine, MachineLease
from malbox_tui.engine.machine_care import MachineCare
from malbox_tui.model import events as news
from malbox_tui.model.errors import RefusedCommand
from malbox_tui.model.machine import OUT_OF_SERVICE, MachineState, MachineTrigger, MachineView
from malbox_tui.model.task import RequirementClass
from malbox_tui.ports import Clock, GuestSession, Machinery

Platforms = frozenset[str] | None
"""The platforms that a worker group takes; None: all."""

MOST_FITS_KEPT = 4096
"""For so many requirement classes it is remembered which machines fit."""


class MachinePool:
    """The machines of one engine. Not thread-safe: it belongs to the engine's loop. `on_change` is called when another one may be
    reserved than before: one became ready, or one went out of service, so that those are tried again that failed a task before.
    `reach` gives the platforms that a class of tasks may get a machine of, whichever worker group takes it."""

    def __init__(
        self,
        machinery: Machinery,
        care: MachineCare,
        wall: Clock,
        announce: Callable[[news.EventBody], None],
        on_change: Callable[[], None],
        reach: Callable[[RequirementClass], Platforms],
    ) -> None:
        self._machinery = machinery
        self._care = care
        self._wall = wall
        self._announce = announce
        self._on_change = on_change
        self._reach = reach
        self._machines: dict[str, Machine] = {}
        self._fits: dict[tuple[RequirementClass, Platforms], tuple[Machine, ...]] = {}

    def __repr__(self) -> str:
        return f"<MachinePool {dict(Counter(machine.state.value for machine in self._machines.values()))}>"

    async def open(self) -> None:
        """Take the machines in; each may be reserved as soon as it is proven clean."""
        await self._care.open()
        for spec in self._machinery.machines:
            machine = self._machines[spec.name] = Machine(spec, self._wall.now, self._announce)
        self._fits.clear()
        for machine in self._machines.values():
            self._care.make_clean(machine, self._on_change)

    def let_be(self) -> None:
        """Make no machine clean any more: the engine ends, and `close` switches them off."""
        self._care.let_be()

    async def close(self) -> None:
        """Switch all machines off that may be running, in a bounded time, and let go of them. Those that are out for maintenance are
        left to whoever works on them."""
        out = (MachineState.DISABLED, MachineState.MISSING)
        await self._care.close([machine for machine in self._machines.values() if machine.state not in out])

    def views(self) -> tuple[MachineView, ...]:
        """All machines, in the order of the configuration."""
        return tuple(machine.view() for machine in self._machines.values())

    # --- serving tasks -----------------------------------------------------------------------------------------------------------

    def reserve(self, requires: RequirementClass, platforms: Platforms, task_id: int) -> MachineLease | None:
        """A machine for the task, in one step; None when none is free. The one with the fewest tags it doesn't need is taken."""
        free = [machine for machine in self._eligible(requires, platforms) if machine.state is MachineState.READY]
        if not free:
            return None
        machine = min(free, key=lambda machine: _cost(machine, requires))
        machine.lease = MachineLease(machine.spec, task_id)
        machine.move(MachineTrigger.RESERVE)
        return machine.lease

    def some_are_ready(self) -> bool:
        """Whether any machine at all may be reserved."""
        return any(machine.state is MachineState.READY for machine in self._machines.values())

    def has_free(self, requires: RequirementClass, platforms: Platforms) -> bool:
        """Whether `reserve` would give a machine."""
        return any(machine.state is MachineState.READY for machine in self._eligible(requires, platforms))

    async def start(self, lease: MachineLease) -> GuestSession:
        """Bring the reserved machine up, clean and answering. Raises `MachineError`; it is to be released then too."""
        machine = self._machines[lease.machine.name]
        machine.move(MachineTrigger.START)
        lease.started = True
        session = await self._care.start(machine)
        machine.move(MachineTrigger.STARTED)
        return session

    def release(self, lease: MachineLease, failure: str | None = None) -> None:
        """Give a machine back, in one step; `failure` says what it did wrong. A second time, nothing happens.

        One that was started is stopped and made clean, whatever follows; one that was not is ready at once.
        """
        if lease.ended:
            return
        lease.ended = True
        machine = self._machines[lease.machine.name]
        machine.lease = None
        if not lease.started:
            machine.move(MachineTrigger.UNRESERVE)
            if machine.disable_reason is not None:
                self._take_out(machine)
            self._on_change()
            return
        machine.served_at = clock.monotonic()
        if failure is not None:
            machine.failures += 1
        elif machine.state is MachineState.LEASED:
            machine.failures = 0
        machine.move(MachineTrigger.RELEASE, failure or "")
        self._care.make_clean(machine, self._on_change)

    # --- what an operator does ---------------------------------------------------------------------------------------------------

    def disable(self, names: Sequence[str], actor: str) -> str:
        """Take machines out for maintenance; says what follows. Raises `RefusedCommand`, with nothing changed."""
        return " ".join([self._disable(machine, actor) for machine in self._named(names)])

    def enable(self, names: Sequence[str]) -> str:
        """Bring machines back; says what follows. Raises `RefusedCommand`, with nothing changed."""
        return " ".join([self._enable(machine) for machine in self._named(names)])

    def _disable(self, machine: Machine, actor: str) -> str:
        name = machine.spec.name
        if machine.state is MachineState.DISABLED or machine.disable_reason is not None:
            return f"Machine {name} is out for maintenance already."
        machine.disable_reason = f"maintenance, by {actor}"
        if machine.lease is not None:
            return f"Machine {name} goes out when task {machine.lease.task_id} is done with it."
        if machine.state is MachineState.REVERTING:
            return f"Machine {name} goes out as soon as its revert has ended."
        return self._take_out(machine)

    def _enable(self, machine: Machine) -> str:
        name = machine.spec.name
        if machine.disable_reason is not None:
            machine.disable_reason = None
            return f"Machine {name} stays in service."
        if machine.state not in OUT_OF_SERVICE:
            return f"Machine {name} is in service already ({machine.state})."
        machine.failures = 0
        machine.move(MachineTrigger.REVERT)
        self._care.make_clean(machine, self._on_change)
        return f"Machine {name} is being reverted; it serves as soon as it is proven clean."

    def _take_out(self, machine: Machine) -> str:
        """Disable a machine that nobody uses; one that is ready runs, and is switched off before."""
        if machine.state is MachineState.READY:
            machine.move(MachineTrigger.REVERT)
            self._care.make_clean(machine, self._on_change)
            return f"Machine {machine.spec.name} goes out as soon as it is switched off."
        machine.move(MachineTrigger.DISABLE, machine.disable_reason or "")
        machine.disable_reason = None
        self._on_change()
        return f"Machine {machine.spec.name} is out for maintenance."

    # --- words -------------------------------------------------------------------------------------------------------------------

    def impossible(self, requires: RequirementClass, platforms: Platforms) -> str | None:
        """Why no machine, whatever state it is in, could ever serve such a task; None when one could."""
        if self._fitting(requires, platforms):
            return None
        if not self._machines:
            return f"It needs a machine ({requires}), and none is configured."
        if requires.pin is not None and requires.pin not in self._machines:
            return f"There is no machine {requires.pin}{_hint(requires.pin, self._machines)}"
        closest = min(self._machines.values(), key=lambda machine: len(machine.spec.unmet(requires)))
        lacking = (
            ", ".join(closest.spec.unmet(requires)) or f"a platform that the worker group takes (it is {closest.spec.platform})"
        )
        return f"No machine could serve {requires}: the closest, {closest.spec.name}, lacks {lacking}."

    def waiting(self, requires: RequirementClass, platforms: Platforms) -> str:
        """What a task waits for that no free machine serves."""
        fitting = self._fitting(requires, platforms)
        if requires.pin is not None and len(fitting) == 1:
            return f"waiting for machine {requires.pin}: it is {_state_in_words(fitting[0])}"
        states = Counter("busy" if machine.is_busy else machine.state.value for machine in fitting)
        avoided = sum(machine.spec.name in requires.avoid for machine in fitting)
        counts = [f"{count} {state}" for state, count in sorted(states.items())]
        if avoided:
            counts.append(f"{avoided} failed it before")
        return f"waiting for a machine: {requires} ({', '.join(counts)})"

    # --- private -----------------------------------------------------------------------------------------------------------------

    def _fitting(self, requires: RequirementClass, platforms: Platforms) -> tuple[Machine, ...]:
        """Those that could serve such a task in some state. What machines are never changes, so this is worked out once a class."""
        if (known := self._fits.get((requires, platforms))) is not None:
            return known
        if len(self._fits) >= MOST_FITS_KEPT:
            self._fits.clear()
        fitting = self._fits[requires, platforms] = tuple(
            machine
            for machine in self._machines.values()
            if not machine.spec.unmet(requires) and (platforms is None or machine.spec.platform in platforms)
        )
        return fitting

    def _eligible(self, requires: RequirementClass, platforms: Platforms) -> Sequence[Machine]:
        """Those that fit and have not failed the task; when no such one is in service, for any worker group, those that have."""
        fitting = self._fitting(requires, platforms)
        if not requires.avoid:
            return fitting
        anywhere = self._fitting(requires, self._reach(requires))
        if any(machine.state not in OUT_OF_SERVICE and machine.spec.name not in requires.avoid for machine in anywhere):
            return [machine for machine in fitting if machine.spec.name not in requires.avoid]
        return fitting

    def _named(self, names: Sequence[str]) -> list[Machine]:
        for name in names:
            if name not in self._machines:
                raise RefusedCommand(f"There is no machine {name!r}{_hint(name, self._machines)} Nothing was changed.")
        return [self._machines[name] for name in dict.fromkeys(names)]


def _cost(machine: Machine, requires: RequirementClass) -> tuple[int, bool, float]:
    """What is given away by using it: tags that others may need, a wider architecture; then whichever rested longest."""
    spec = machine.spec
    return (len(set(spec.tags) - set(requires.tags)), requires.arch not in (None, spec.arch), machine.served_at)


def _state_in_words(machine: Machine) -> str:
    if machine.lease is not None:
        return f"busy with task {machine.lease.task_id}"
    return f"{machine.state.value}{f' ({machine.reason})' if machine.reason else ''}"


def _hint(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(sorted(known)) or 'none'}."
