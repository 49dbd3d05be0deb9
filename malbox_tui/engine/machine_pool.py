"""Which machine serves which task. What is done to machines, and how long it takes, is in `machine_care`.

1. Reserving and the change of state are one synchronous step, taken before the task is claimed: only a task that can be served is
   taken, and no machine is ever two tasks'.
2. A machine that was given back serves again only when it is proven clean.
3. A free machine beats a preferred busy one; a task never waits for a machine that failed it while another could serve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from malbox_tui.config.settings import MachinerySettings
from malbox_tui.engine import clock
from malbox_tui.engine.hypervisor import MachineHands
from malbox_tui.engine.machine import Machine, MachineLease
from malbox_tui.engine.machine_care import MachineCare
from malbox_tui.engine.machine_fit import Terms, lacking, suits
from malbox_tui.engine.machine_orders import MachineOrders, hint
from malbox_tui.model import events as news
from malbox_tui.model.errors import MachineUnable
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.machine import OUT_OF_SERVICE, MachineSpec, MachineState, MachineTrigger, MachineView
from malbox_tui.model.report import ResultRef
from malbox_tui.model.task import RequirementClass
from malbox_tui.ports import Clock, GuestSession, Machinery

MOST_FITS_KEPT = 4096
"""For so many requirement classes it is remembered which machines fit."""


class MachinePool:
    """The machines of one engine. Not thread-safe: it belongs to the engine's loop. `on_change` is called when another one may be
    reserved than before: one became ready, or one went out of service, so that those are tried again that failed a task before.
    `reach` gives the terms on which a class of tasks may get a machine, whichever worker group takes it.

    Where `terms` are asked for, they are those of the worker groups that would take the task: one of them has to suit.
    `orders` carries out what operators do to machines."""

    def __init__(
        self,
        machinery: Machinery,
        care: MachineCare,
        wall: Clock,
        announce: Callable[[news.EventBody], None],
        on_change: Callable[[], None],
        reach: Callable[[RequirementClass], Sequence[Terms]],
    ) -> None:
        self._machinery = machinery
        self._care = care
        self._wall = wall
        self._announce = announce
        self._on_change = on_change
        self._reach = reach
        self._machines: dict[str, Machine] = {}
        self._fits: dict[tuple[RequirementClass, tuple[Terms, ...]], tuple[Machine, ...]] = {}
        self.orders = MachineOrders(self._machines, machinery, care, self._made, on_change, self._fits.clear)

    def __repr__(self) -> str:
        return f"<MachinePool {dict(Counter(machine.state.value for machine in self._machines.values()))}>"

    async def open(self) -> None:
        """Take the machines in; each may be reserved as soon as it is proven clean."""
        await self._care.open()
        for spec in self._machinery.machines:
            self._machines[spec.name] = self._made(spec)
        self._fits.clear()
        for machine in self._machines.values():
            machine.fault = self._machinery.faults.get(machine.spec.name)
            if machine.fault is None:
                self.orders.clean(machine)
            elif not self._care.is_over:
                machine.move(MachineTrigger.QUARANTINE, machine.fault)

    def reload(self, settings: MachinerySettings) -> None:
        """From now on these times hold for what is done to machines."""
        self._care.reload(settings)

    def let_be(self) -> None:
        """Make no machine clean any more: the engine ends, and `close` switches them off."""
        self._care.let_be()

    async def close(self) -> None:
        """Switch all machines off that may be running, in a bounded time, and let go of them. Those that are out for maintenance are
        left to whoever works on them, those that were never used because of what they are to whoever they belong to."""
        out = (MachineState.DISABLED, MachineState.MISSING)
        ours = [machine for machine in self._machines.values() if machine.state not in out and machine.fault is None]
        await self._care.close(ours)

    def views(self) -> tuple[MachineView, ...]:
        """All machines, in the order of the configuration."""
        return tuple(machine.view() for machine in self._machines.values())

    # --- serving tasks -----------------------------------------------------------------------------------------------------------

    def reserve(self, requires: RequirementClass, terms: Sequence[Terms], task_id: int) -> MachineLease | None:
        """A machine for the task, in one step; None when none is free. The one with the fewest tags it doesn't need is taken."""
        free = [machine for machine in self._eligible(requires, terms) if machine.state is MachineState.READY]
        if not free:
            return None
        machine = min(free, key=lambda machine: _cost(machine, requires))
        machine.lease = MachineLease(machine.spec, task_id)
        machine.move(MachineTrigger.RESERVE)
        return machine.lease

    def some_are_ready(self) -> bool:
        """Whether any machine at all may be reserved."""
        return any(machine.state is MachineState.READY for machine in self._machines.values())

    def has_free(self, requires: RequirementClass, terms: Sequence[Terms]) -> bool:
        """Whether `reserve` would give a machine."""
        return any(machine.state is MachineState.READY for machine in self._eligible(requires, terms))

    async def start(self, lease: MachineLease, limits: ResourceLimits = UNLIMITED) -> GuestSession:
        """Bring the reserved machine up, clean, answering, and with a network bound as `limits` say.

        Raises `MachineError`; it is to be released then too.
        """
        machine = self._machines[lease.machine.name]
        machine.move(MachineTrigger.START)
        lease.started = True
        try:
            session = await self._care.start(machine, limits)
        except MachineUnable:
            lease.is_unable = True
            raise
        lease.seen, machine.seen = machine.seen, None
        machine.move(MachineTrigger.STARTED)
        return session

    def hypervisor(self, lease: MachineLease) -> MachineHands:
        """What the task may have done to the machine that it holds, for as long as it does."""
        return MachineHands(self._machinery.providers[lease.machine.provider], lease)

    def show(self, name: str, screenshot: ResultRef) -> None:
        """Keep the latest picture of a machine's screen."""
        if (machine := self._machines.get(name)) is not None:
            machine.show(screenshot, self._wall.now())

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
            self.orders.carry_out(machine)
            self._on_change()
            return
        machine.served_at = clock.monotonic()
        if failure is not None:
            machine.failures += not lease.is_unable
        elif machine.state is MachineState.LEASED:
            machine.failures = 0
        machine.move(MachineTrigger.RELEASE, failure or "")
        self.orders.clean(machine)

    # --- words -------------------------------------------------------------------------------------------------------------------

    def impossible(self, requires: RequirementClass, terms: Sequence[Terms]) -> str | None:
        """Why no machine, whatever state it is in, could ever serve such a task; None when one could."""
        if self._fitting(requires, terms):
            return None
        pin = requires.pin
        if pin is not None and pin in self.orders.removed:
            return f"Machine {pin} was removed by {self.orders.removed[pin]}."
        if not self._machines:
            return f"It needs a machine ({requires}), and none is configured."
        if pin is not None and pin not in self._machines:
            return f"There is no machine {pin}{hint(pin, self._machines)}"
        closest = min(self._machines.values(), key=lambda machine: len(lacking(machine, requires, terms)))
        lacks = ", ".join(lacking(closest, requires, terms))
        return f"No machine could serve {requires}: the closest, {closest.spec.name}, lacks {lacks}."

    def waiting(self, requires: RequirementClass, terms: Sequence[Terms]) -> str:
        """What a task waits for that no free machine serves."""
        fitting = self._fitting(requires, terms)
        if requires.pin is not None and len(fitting) == 1:
            return f"waiting for machine {requires.pin}: it is {_state_in_words(fitting[0])}"
        states = Counter("busy" if machine.is_busy else machine.state.value for machine in fitting)
        avoided = sum(machine.spec.name in requires.avoid for machine in fitting)
        counts = [f"{count} {state}" for state, count in sorted(states.items())]
        if avoided:
            counts.append(f"{avoided} failed it before")
        return f"waiting for a machine: {requires} ({', '.join(counts)})"

    # --- private -----------------------------------------------------------------------------------------------------------------

    def _made(self, spec: MachineSpec) -> Machine:
        return Machine(spec, self._wall.now, self._announce, self._fits.clear)

    def _fitting(self, requires: RequirementClass, terms: Sequence[Terms]) -> tuple[Machine, ...]:
        """Those that could serve such a task in some state. Worked out once a class, until some machine is another one."""
        key = (requires, tuple(terms))
        if (known := self._fits.get(key)) is not None:
            return known
        if len(self._fits) >= MOST_FITS_KEPT:
            self._fits.clear()
        fitting = self._fits[key] = tuple(machine for machine in self._machines.values() if suits(machine, requires, terms))
        return fitting

    def _eligible(self, requires: RequirementClass, terms: Sequence[Terms]) -> Sequence[Machine]:
        """Those that fit and have not failed the task; when no such one is in service, for any worker group, those that have."""
        fitting = self._fitting(requires, terms)
        if not requires.avoid:
            return fitting
        anywhere = self._fitting(requires, self._reach(requires))
        if any(machine.state not in OUT_OF_SERVICE and machine.spec.name not in requires.avoid for machine in anywhere):
            return [machine for machine in fitting if machine.spec.name not in requires.avoid]
        return fitting


def _cost(machine: Machine, requires: RequirementClass) -> tuple[int, bool, float]:
    """What is given away by using it: tags that others may need, a wider architecture; then whichever rested longest."""
    spec = machine.spec
    return (len(set(spec.tags) - set(requires.tags)), requires.arch not in (None, spec.arch), machine.served_at)


def _state_in_words(machine: Machine) -> str:
    if machine.lease is not None:
        leaves = f", and removed by {machine.removed_by} when that is done" if machine.removed_by is not None else ""
        return f"busy with task {machine.lease.task_id}{leaves}"
    return f"{machine.state.value}{f' ({machine.reason})' if machine.reason else ''}"
