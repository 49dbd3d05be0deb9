"""What an operator does to machines while the engine runs: out for maintenance and back, tried, added, changed, removed.

What a task holds is left to the task: an order for it is remembered, and carried out when the task is done with it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

from malbox_tui.engine.machine import Machine
from malbox_tui.engine.machine_care import MachineCare
from malbox_tui.engine.machine_rules import MOST_MACHINES, clash, usable
from malbox_tui.model.errors import RefusedCommand
from malbox_tui.model.machine import OUT_OF_SERVICE, MachineSpec, MachineState, MachineTrigger
from malbox_tui.ports import Machinery


class MachineOrders:
    """Carries out orders for the machines of a pool, each in one step. Every method says what follows, a sentence a machine, and raises
    `RefusedCommand` with nothing changed.

    `machines` is the pool's own book of them, by name; `made` makes one for it. `on_change` is called when another machine may be
    reserved than before, `on_other` when there is another one, or one less. `removed` says who removed a machine that is gone.
    """

    def __init__(
        self,
        machines: dict[str, Machine],
        machinery: Machinery,
        care: MachineCare,
        made: Callable[[MachineSpec], Machine],
        on_change: Callable[[], None],
        on_other: Callable[[], None],
    ) -> None:
        self.removed: dict[str, str] = {}
        self._machines = machines
        self._machinery = machinery
        self._care = care
        self._made = made
        self._on_change = on_change
        self._on_other = on_other

    def specs(self) -> tuple[MachineSpec, ...]:
        """The machines as they are, or are to be when no task holds them."""
        staying = [machine for machine in self._machines.values() if machine.removed_by is None]
        return tuple(machine.next_spec or machine.spec for machine in staying)

    def disable(self, names: Sequence[str], actor: str) -> str:
        """Take machines out for maintenance."""
        return " ".join([self._disable(machine, actor) for machine in self._named(names)])

    def enable(self, names: Sequence[str]) -> str:
        """Bring machines back."""
        machines = self._named(names)
        self._refuse_doubles(machine for machine in machines if machine.state in OUT_OF_SERVICE)
        return " ".join([self._enable(machine) for machine in machines])

    def probe(self, names: Sequence[str]) -> str:
        """Try machines that no task holds."""
        machines = self._named(names)
        for machine in machines:
            name = machine.spec.name
            if machine.lease is not None:
                raise RefusedCommand(
                    f"Machine {name} serves task {machine.lease.task_id}, and is proven clean after it. {_NOTHING}"
                )
            if machine.state is MachineState.DISABLED:
                raise RefusedCommand(f"Machine {name} is out for maintenance; enabling it tries it, too. {_NOTHING}")
        self._refuse_doubles(machine for machine in machines if machine.state in OUT_OF_SERVICE)
        return " ".join([self._probe(machine) for machine in machines])

    def set(self, machine: MachineSpec, actor: str) -> str:
        """Add a machine, or change the one of its name."""
        spec = usable(machine, self._machinery)
        known = self._machines.get(spec.name)
        if known is None and len(self._machines) >= MOST_MACHINES:
            raise RefusedCommand(f"There are {MOST_MACHINES} machines already, which is as many as there may be. {_NOTHING}")
        if problem := clash(spec, self._specs_beside(known)):
            raise RefusedCommand(f"{problem} {_NOTHING}")
        if known is None:
            return self._add(spec, actor)
        return self._edit(known, spec)

    def remove(self, names: Sequence[str], actor: str) -> str:
        """Take machines out of the pool for good."""
        return " ".join([self._remove(machine, actor) for machine in self._named(names)])

    def follow(self, before: Sequence[MachineSpec], after: Sequence[MachineSpec], actor: str) -> list[str]:
        """Do what makes the machines `after` of those `before`, as far as they are not so already; says what could not be done."""
        was, refused = {machine.name: machine for machine in before}, []
        gone = was.keys() - {machine.name for machine in after}
        self.remove([name for name in was if name in gone and name in self._machines], actor)
        for machine in after:
            if was.get(machine.name) != machine:
                try:
                    self.set(machine, actor)
                except RefusedCommand as error:
                    refused.append(f"machine {machine.name}: {error}")
        return refused

    def carry_out(self, machine: Machine) -> None:
        """Do what was ordered for a machine that no task holds any more and nothing has touched."""
        if machine.has_orders:
            self._revert(machine)

    def clean(self, machine: Machine) -> None:
        """Have a `reverting` machine proven clean."""
        self._care.make_clean(machine, lambda: self._cared_for(machine))

    # --- one machine -------------------------------------------------------------------------------------------------------------

    def _disable(self, machine: Machine, actor: str) -> str:
        name = machine.spec.name
        if machine.removed_by is not None:
            return f"Machine {name} is being removed already."
        if machine.state is MachineState.DISABLED or machine.disable_reason is not None:
            return f"Machine {name} is out for maintenance already."
        machine.disable_reason = f"maintenance, by {actor}"
        if machine.lease is not None:
            return f"Machine {name} goes out when task {machine.lease.task_id} is done with it."
        if machine.state is MachineState.REVERTING:
            machine.hurry()
            return f"Machine {name} goes out as soon as its revert has ended."
        if machine.state is MachineState.READY:
            self._revert(machine)
            return f"Machine {name} goes out as soon as it is switched off."
        machine.move(MachineTrigger.DISABLE, machine.disable_reason)
        machine.disable_reason = None
        self._on_change()
        return f"Machine {name} is out for maintenance."

    def _enable(self, machine: Machine) -> str:
        name = machine.spec.name
        if machine.removed_by is not None:
            machine.removed_by = None
            return f"Machine {name} stays in the pool."
        if machine.disable_reason is not None:
            machine.disable_reason = None
            return f"Machine {name} stays in service."
        if machine.state not in OUT_OF_SERVICE:
            return f"Machine {name} is in service already ({machine.state})."
        machine.failures, machine.fault = 0, None
        self._revert(machine)
        return f"Machine {name} is being reverted; it serves as soon as it is proven clean."

    def _probe(self, machine: Machine) -> str:
        name = machine.spec.name
        if machine.state is MachineState.REVERTING:
            machine.hurry()
            return f"Machine {name} is being tried."
        machine.fault = None
        self._care.try_once(machine, lambda: self._cared_for(machine))
        return f"Machine {name} is being tried."

    def _add(self, spec: MachineSpec, actor: str) -> str:
        machine = self._machines[spec.name] = self._made(spec)
        self.removed.pop(spec.name, None)
        machine.tell(f"added by {actor}")
        self.clean(machine)
        self._on_other()
        return f"Machine {spec.name} is added; it serves as soon as it is proven clean."

    def _edit(self, machine: Machine, spec: MachineSpec) -> str:
        name = spec.name
        machine.removed_by = None
        if (machine.next_spec or machine.spec) == spec:
            return f"Machine {name} is so already."
        machine.next_spec = spec if spec != machine.spec else None
        if machine.lease is not None:
            return f"Machine {name} is changed when task {machine.lease.task_id} is done with it."
        if machine.state is MachineState.REVERTING:
            machine.hurry()
            return f"Machine {name} is changed as soon as its revert has ended."
        if machine.state is MachineState.DISABLED:
            machine.become(spec)
            return f"Machine {name} is changed; it stays out for maintenance."
        if not machine.is_ours:
            machine.become(spec)
        self._revert(machine)
        return f"Machine {name} is changed; it serves as soon as it is proven clean."

    def _remove(self, machine: Machine, actor: str) -> str:
        name = machine.spec.name
        if machine.removed_by is not None:
            return f"Machine {name} is being removed already."
        machine.removed_by = actor
        if machine.lease is not None:
            return f"Machine {name} is removed when task {machine.lease.task_id} is done with it."
        if machine.state is MachineState.REVERTING:
            machine.hurry()
            return f"Machine {name} is removed as soon as its revert has ended."
        if machine.state is MachineState.READY:
            self._revert(machine)
            return f"Machine {name} is removed as soon as it is switched off."
        if machine.state is MachineState.DISABLED:
            machine.tell(f"removed by {actor}")
        else:
            machine.move(MachineTrigger.DISABLE, f"removed by {actor}")
        self._forget(machine, actor)
        return f"Machine {name} is removed."

    # --- private -----------------------------------------------------------------------------------------------------------------

    def _revert(self, machine: Machine) -> None:
        machine.move(MachineTrigger.REVERT)
        self.clean(machine)

    def _cared_for(self, machine: Machine) -> None:
        if machine.removed_by is not None and machine.state is MachineState.DISABLED:
            self._forget(machine, machine.removed_by)
        else:
            self._on_change()

    def _forget(self, machine: Machine, actor: str) -> None:
        """It is out of the pool; what waits for it is told so."""
        name = machine.spec.name
        del self._machines[name]
        self.removed[name] = actor
        if len(self.removed) > MOST_MACHINES:
            del self.removed[next(iter(self.removed))]
        self._on_other()
        self._on_change()

    def _refuse_doubles(self, machines: Iterable[Machine]) -> None:
        for machine in machines:
            if problem := clash(machine.spec, self._specs_beside(machine)):
                raise RefusedCommand(f"{problem} {_NOTHING}")

    def _specs_beside(self, machine: Machine | None) -> list[MachineSpec]:
        """What all others are and are to be, but those that were not used because of what they are."""
        others = [other for other in self._machines.values() if other is not machine and other.fault is None]
        return [*(other.spec for other in others), *(other.next_spec for other in others if other.next_spec is not None)]

    def _named(self, names: Sequence[str]) -> list[Machine]:
        for name in names:
            if name not in self._machines:
                raise RefusedCommand(f"There is no machine {name!r}{hint(name, self._machines)} {_NOTHING}")
        return [self._machines[name] for name in dict.fromkeys(names)]


def hint(name: str, known: Iterable[str]) -> str:
    """How a sentence goes on that says that there is no such machine."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(sorted(known)) or 'none'}."


_NOTHING = "Nothing was changed."
