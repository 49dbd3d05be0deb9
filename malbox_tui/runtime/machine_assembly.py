"""The machines of an engine, with an adapter for whatever one of them may need: those that are added while it runs, too."""

from __future__ import annotations

from malbox_tui.config.machine_list import Listing
from malbox_tui.config.machines import Channel, Provider
from malbox_tui.engine import clock
from malbox_tui.guest.qga import QgaChannel
from malbox_tui.machinery.binding import libvirt_module
from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.errors import MalboxError
from malbox_tui.ports import Machinery
from malbox_tui.simulated.guests import SimulatedChannel
from malbox_tui.simulated.machines import SimulatedProvider
from malbox_tui.simulated.world import World

SIMULATION_SEED = 1


def build_machinery(listing: Listing, silence_s: float) -> Machinery:
    """`listing` and what moves it; must be called on the event loop that it will be moved on. Nothing is opened.

    A guest may be silent for `silence_s` while a program runs in it. Without libvirt-python each machine that needs it has that as a
    fault, and all others work.
    """
    simulated = [machine for machine in listing.machines if machine.provider == Provider.SIMULATED]
    world = World(SIMULATION_SEED, clock.sleep, simulated, grows=True)
    libvirt = LibvirtProvider()
    return Machinery(
        listing.machines,
        providers={Provider.LIBVIRT.value: libvirt, Provider.SIMULATED.value: SimulatedProvider(world)},
        channels={
            Channel.QGA.value: QgaChannel(libvirt, libvirt.power, silence_s),
            Channel.SIMULATED.value: SimulatedChannel(world),
        },
        faults={**_without_libvirt(listing), **listing.faults},
    )


def _without_libvirt(listing: Listing) -> dict[str, str]:
    of_libvirt = [machine.name for machine in listing.machines if machine.provider == Provider.LIBVIRT]
    if not of_libvirt:
        return {}
    try:
        libvirt_module()
    except MalboxError as error:
        return dict.fromkeys(of_libvirt, str(error))
    return {}
