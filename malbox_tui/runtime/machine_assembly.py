"""The machines of an engine, with an adapter for whatever one of them may need: those that are added while it runs, too."""

from __future__ import annotations

from malbox_tui.config.machine_list import Listing
from malbox_tui.config.machines import Channel, Provider
from malbox_tui.engine import clock
from malbox_tui.ports import Machinery
from malbox_tui.simulated.guests import SimulatedChannel
from malbox_tui.simulated.machines import SimulatedProvider
from malbox_tui.simulated.world import World

SIMULATION_SEED = 1


def build_machinery(listing: Listing) -> Machinery:
    """`listing` and what moves it; must be called on the event loop that it will be moved on. Nothing is opened."""
    simulated = [machine for machine in listing.machines if machine.provider == Provider.SIMULATED]
    world = World(SIMULATION_SEED, clock.sleep, simulated, grows=True)
    return Machinery(
        listing.machines,
        providers={Provider.SIMULATED.value: SimulatedProvider(world)},
        channels={Channel.SIMULATED.value: SimulatedChannel(world)},
        faults=listing.faults,
    )
