"""What surrounds the engine in a run: the world and what stands in it, and the store between the engine and what survives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from malbox_tui.config.settings import Settings
from malbox_tui.engine import clock
from malbox_tui.engine.adapters import Adapters
from malbox_tui.model.events import Event, EventBody
from malbox_tui.ports import Clock, Machinery
from malbox_tui.simulated.faults import Fault, Faults
from malbox_tui.simulated.guests import SimulatedChannel
from malbox_tui.simulated.machines import SimulatedProvider
from malbox_tui.simulated.marks import SimulatedMarks
from malbox_tui.simulated.plugin_run import PLUGINS
from malbox_tui.simulated.plugins import SimulatedRunner
from malbox_tui.simulated.results import SimulatedResults
from malbox_tui.simulated.samples import SimulatedQuarantine
from malbox_tui.simulated.store import FaultyStore
from malbox_tui.simulated.world import World
from malbox_tui.store.memory import MemoryStore
from tests.simulation.plan import Plan
from tests.simulation.violation import Violation
from tests.simulation.watched_store import WatchedStore

PROVIDER = "simulated"

_DELAYING = (
    Fault.STORE_SLOW,
    Fault.STORE_FAILS,
    Fault.STORE_FULL,
    Fault.RESULTS_SLOW,
    Fault.RESULTS_FAIL,
    Fault.RESULTS_FULL,
    Fault.QUARANTINE_SLOW,
    Fault.QUARANTINE_FULL,
    Fault.RELEASE_SLOW,
    Fault.RELEASE_FAILS,
)
"""What can keep an attempt from ending in time, whatever the engine does: nothing of it is cut before the engine's own limit."""


class Surroundings:
    """One world, which outlives engines."""

    def __init__(self, plan: Plan, wall: Clock) -> None:
        specs = [machine.spec() for machine in plan.machines if machine.name not in plan.missing_machines]
        self._world = World(plan.world_seed, clock.sleep, specs, plan.rates, plan.durations)
        seconds = plan.plugin_s
        self._plugins = PLUGINS if seconds is None else tuple(replace(plugin, seconds=seconds) for plugin in PLUGINS)
        self._wall = wall
        self._runner: SimulatedRunner | None = None
        self.tell: Callable[[EventBody], None] = lambda _body: None
        """Where plugins' news goes; the engine's, once there is one."""

    @property
    def faults(self) -> Faults:
        return self._world.faults

    @property
    def results(self) -> Mapping[str, bytes]:
        """What is in the result store, by path."""
        return self._world.results

    @property
    def violations(self) -> list[str]:
        """What no correct engine does."""
        return self._world.violations

    @property
    def reverting(self) -> int:
        """How many machines are being reverted at this moment."""
        return sum(body.call == "revert" for body in self._world.machines.values())

    @property
    def delays(self) -> int:
        """How often something was slow or failed that an attempt has to wait for."""
        hits = self._world.faults.hits
        return sum(hits[fault] for fault in _DELAYING)

    def adapters(
        self,
        settings: Settings,
        store: MemoryStore,
        on_event: Callable[[Event], None],
        on_news: Callable[[EventBody], None],
    ) -> Adapters:
        """New ones for a new engine."""
        results = SimulatedResults(self._world)
        self._runner = SimulatedRunner(
            self._world, self._plugins, cancel_grace_s=settings.analysis.cancel_grace_s, results=results, on_news=self._tell
        )
        machinery = Machinery(
            machines=tuple(machine.spec() for machine in settings.machines),
            providers={PROVIDER: SimulatedProvider(self._world)},
            channels={PROVIDER: SimulatedChannel(self._world)},
        )
        self.store = WatchedStore(FaultyStore(store, self._world, self._wall), on_event, on_news)
        return Adapters(
            store=self.store,
            quarantine=SimulatedQuarantine(self._world),
            results=results,
            runner=self._runner,
            wall=self._wall,
            machinery=machinery,
            marks=SimulatedMarks(self._world),
        )

    def _tell(self, body: EventBody) -> None:
        self.tell(body)

    def engine_died(self) -> None:
        self._world.engine_died()

    def engine_ended(self) -> None:
        self._world.engine_ended()

    def mend(self) -> None:
        """Nothing goes wrong from now on."""
        self._world.faults.calm()

    def check_the_end(self) -> None:
        """After an engine ended in good order: no bench is out, no call is under way. Raises `Violation`."""
        if self._runner is not None and self._runner.benches_out:
            raise Violation("each bench is given back", f"{self._runner.benches_out} are out")
        for name, body in self._world.machines.items():
            if body.call is not None or body.in_use:
                raise Violation("nothing is done to a machine after the engine's end", f"{name}: {body}")
