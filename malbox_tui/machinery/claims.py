"""Which machine uses what, so that no two are one and the same without anybody noticing.

A machine holds its domain, its network cards and its address from its check until it is stopped. A second machine that wants one of
them meanwhile is refused; when the first was removed, or stopped for good, it may have them.
"""

from __future__ import annotations

from collections.abc import Mapping

from malbox_tui.model.errors import MachineMisconfigured
from malbox_tui.model.machine import MachineSpec

Place = tuple[str, str, str]
"""What kind of thing, where (empty where that doesn't matter), and what."""


class Claims:
    """What is held, and by which machine."""

    def __init__(self) -> None:
        self._holders: dict[Place, MachineSpec] = {}

    def check_domain(self, machine: MachineSpec) -> None:
        """Raises `MachineMisconfigured` when another machine holds this one's domain: it must not be touched in its name."""
        self._refuse_taken(machine, _domain(machine))

    def take(self, machine: MachineSpec, macs: tuple[str, ...]) -> None:
        """Hold all that is this machine's, and nothing that was. Raises `MachineMisconfigured`, with nothing held."""
        self.leave(machine)
        wanted = _domain(machine)
        wanted |= {("network card", machine.uri, mac): f"the network card address {mac}" for mac in macs if mac}
        if machine.address:
            wanted["address", "", machine.address] = f"the address {machine.address}"
        self._refuse_taken(machine, wanted)
        self._holders |= dict.fromkeys(wanted, machine)

    def leave(self, machine: MachineSpec) -> None:
        """Hold nothing for this machine any more."""
        for place in [place for place, holder in self._holders.items() if holder.name == machine.name]:
            del self._holders[place]

    def _refuse_taken(self, machine: MachineSpec, wanted: Mapping[Place, str]) -> None:
        for place, words in wanted.items():
            holder = self._holders.get(place)
            if holder is not None and holder.name != machine.name:
                raise MachineMisconfigured(
                    machine.name, f"the machine {holder.name} has {words} already: give one of them another, or remove one"
                )


def _domain(machine: MachineSpec) -> dict[Place, str]:
    return {("domain", machine.uri, machine.domain_name): f"the domain {machine.domain_name!r} of {machine.uri}"}
