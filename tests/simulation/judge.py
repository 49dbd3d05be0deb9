"""Who says that something is wrong: between any two steps, whenever nothing is ready, at the end, and of all that is heard."""

from __future__ import annotations

import asyncio
from typing import Any

from malbox_tui.engine.recovery import INTERRUPTED
from malbox_tui.model import events as news
from malbox_tui.model.events import Event, EventBody
from malbox_tui.model.task import TaskState
from malbox_tui.simulated.store import RIVAL
from malbox_tui.store.memory import MemoryStore
from tests.simulation import view
from tests.simulation.at_the_end import AT_THE_END
from tests.simulation.causes import was_injected, where
from tests.simulation.facts import Check, Facts
from tests.simulation.life import Life
from tests.simulation.liveness import AT_REST
from tests.simulation.loop import SimulatedLoop, who_waits
from tests.simulation.mirror import Mirror
from tests.simulation.safety import AFTER_EACH_COMMIT, AFTER_EACH_STEP
from tests.simulation.surroundings import Surroundings
from tests.simulation.violation import Violation

STOPPED_WITHIN_S = 120.0
"""How long a stop that doesn't wait for tasks may take, whatever plugins and machines do."""
DELAY_FORGIVEN_S = 60.0
"""How long after something was slow or failed a stop may still leave tasks behind."""


class Judge:
    """Keeps the first thing that was `found`, and raises it after the step. `life` is the engine that lives now."""

    def __init__(self, mirror: Mirror, surroundings: Surroundings) -> None:
        self.life: Life | None = None
        self._mirror = mirror
        self._surroundings = surroundings
        self._broken: Violation | None = None

    def found(self, rule: str, seen: str) -> None:
        """A rule is broken; it ends the run after this step."""
        self.has_found(Violation(rule, seen))

    def has_found(self, violation: Violation) -> None:
        """As `found`."""
        self._broken = self._broken or violation

    # --- while an engine lives ---------------------------------------------------------------------------------------------------

    def after_step(self) -> None:
        """Raises `Violation`."""
        if self._broken is not None:
            raise self._broken
        if (life := self.life) is None:
            return
        if (wrong := life.facts.attempts.look(life.view.attempts, life.facts.wall.moment())) is not None:
            raise Violation("a task is timed out only when a limit was reached", wrong)
        if life.view.is_paused or not life.ready:
            life.facts.collected.held(life.facts.wall.moment())
        if life.facts.look():
            _check(AFTER_EACH_STEP, life.facts)
            life.facts.remember()
        if self._mirror.changed:
            _check(AFTER_EACH_COMMIT, life.facts)
        if self._surroundings.reverting > life.most_reverting:
            raise Violation("no more machines are reverted at once than may", f"{self._surroundings.reverting}")
        if self._surroundings.violations:
            raise Violation("machines and benches are used as they may be", "; ".join(self._surroundings.violations))

    def at_rest(self, moment: float) -> None:
        """Nothing is ready at this `moment` of the loop. Raises `Violation`."""
        if (life := self.life) is None:
            return
        if life.view.store_fails or self._surroundings.delays != life.delays:
            life.delays, life.delayed_at = self._surroundings.delays, moment
        if life.ready:
            _check(AT_REST, life.facts)

    def begins(self, store: MemoryStore) -> None:
        """The engine is ready."""
        if owned := [row.id for row in view.rows(store).values() if row.state.is_owned]:
            self.found("whatever was interrupted is put right before work begins", f"tasks {owned} are owned")

    # --- at its end --------------------------------------------------------------------------------------------------------------

    def stopped(self, life: Life, left: list[int]) -> None:
        """The engine has stopped and said what it leaves. Raises `Violation`."""
        now = asyncio.get_running_loop().time()
        if left and now - life.delayed_at > DELAY_FORGIVEN_S:
            raise Violation("a stop leaves no task behind", f"{left}")
        life.facts.left = frozenset(left)
        if life.stop_asked_at is not None and now - life.stop_asked_at > STOPPED_WITHIN_S:
            raise Violation("a stop is bounded in time", f"it took {now - life.stop_asked_at:g} s")

    def check_the_end(self, loop: SimulatedLoop, store: MemoryStore) -> None:
        """After an engine ended in good order. Raises `Violation`."""
        life = self.life
        if life is None or not life.ready:
            return
        if left := view.handles(loop):
            raise Violation("nothing outlives the engine", f"{len(left)} tasks\n{who_waits(loop)}")
        life.facts.rows = view.rows(store)
        life.facts.results = self._surroundings.results
        _check(AT_THE_END, life.facts)
        self._surroundings.check_the_end()
        stored = [event.position.seq for event in view.stored_events(store)]
        if life.heard != stored[len(stored) - len(life.heard) :]:
            raise Violation("a reader gets each stored event once, in order", f"{life.heard[-5:]} of {stored[-5:]}")
        self._check_promises(life)

    def _check_promises(self, life: Life) -> None:
        for task_id in sorted(life.operator.promised):
            told = self._mirror.tasks[task_id]
            elsewhere = told.state.is_owned and told.worker == RIVAL
            if told.state is not TaskState.CANCELED and task_id not in life.facts.left and not elsewhere:
                raise Violation("a task that the engine said it cancels is canceled", f"task {task_id}: {told}")

    # --- what is heard -----------------------------------------------------------------------------------------------------------

    def on_event(self, event: Event) -> None:
        """A stored event, before the engine hears of it."""
        try:
            self._mirror.commit(event)
        except Violation as violation:
            self.has_found(violation)
        self._check_cap(event.body)

    def _check_cap(self, body: EventBody) -> None:
        """A task that was running at as many crashes as may be is failed, and not given back once more."""
        limit = 0 if self.life is None else self.life.max_crashes
        if isinstance(body, news.TaskGivenBack) and body.reason == INTERRUPTED and body.crashes >= limit:
            self.found("a task is not tried again after too many crashes", f"{body}, the limit is {limit}")

    def on_news(self, body: EventBody) -> None:
        """News that is handed to the store."""
        try:
            self._mirror.hear(body)
        except Violation as violation:
            self.has_found(violation)

    def on_loop_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error that nobody handled, as the loop tells it."""
        error = context.get("exception")
        if not was_injected(error):
            self.found("no error goes unhandled", f"{context['message']}: {error!r}\n{where(error)}")


def _check(checks: tuple[Check, ...], facts: Facts) -> None:
    for check in checks:
        if (seen := check(facts)) is not None:
            raise Violation(check.__name__.replace("_", " "), seen)
