"""One seed, from its plan to its verdict.

A run is a row of epochs on one world and one store: an engine lives, is told to stop or is killed, and the next one begins. Then
everything is mended, and what is left has to end. Between any two steps the invariants are checked (`judge`). (Longer than most
modules: the beginning, the course and the end of an epoch share their state.)
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from malbox_tui.engine.engine import Engine
from malbox_tui.model import commands
from malbox_tui.model.commands import Shutdown, ShutdownMode
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.events import Event, Gap
from malbox_tui.store.memory import MemoryStore
from tests.simulation import deciding, hits, view
from tests.simulation.attempt_rules import AttemptWatch
from tests.simulation.causes import first_cause, in_words, where
from tests.simulation.drawing import plan_of
from tests.simulation.facts import Facts
from tests.simulation.judge import Judge
from tests.simulation.life import Life
from tests.simulation.loop import Handle, SimulatedLoop, bury, described
from tests.simulation.mirror import Mirror
from tests.simulation.operating import Operator, task_of
from tests.simulation.plan import Action, Crash, Epoch, Plan, Stop
from tests.simulation.same_each_time import quiet, seeded_ids
from tests.simulation.surroundings import Surroundings
from tests.simulation.violation import Violation
from tests.simulation.wall import Wall
from tests.support.rig import survivor

MAX_STEPS = 60_000
"""Of one epoch; the longest have about a tenth of it."""
ALL_ENDED_WITHIN_S = 7_200.0
"""How long everything may take to end after all has been mended."""
REMEMBERED_STEPS = 40


class Killed(BaseException):
    """The process of the engine is gone at this moment."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a seed. `trace` is the same for two runs that took the same turns and told the same events."""

    seed: int
    hits: hits.Hits
    steps: int
    trace: int
    failure: str | None = None
    story: tuple[str, ...] = ()


def run_seed(seed: int, *, remember: bool = False) -> Verdict:
    """Run a seed. `remember` keeps the latest steps and events for the story of a failure, and takes twice as long."""
    with seeded_ids(seed), quiet():
        run = Run(plan_of(seed), remember=remember)
        failure = None
        try:
            run.go()
        except Exception as error:  # noqa: BLE001 - whatever broke, the seed failed and says where
            failure = in_words(first_cause(error))
        finally:
            run.bury_the_dead()
        return Verdict(seed, run.hits, run.steps, run.trace, failure, tuple(run.story))


class Run:
    """The state of one run."""

    def __init__(self, plan: Plan, *, remember: bool) -> None:
        self.plan = plan
        self.hits: hits.Hits = Counter()
        self.steps = 0
        self.trace = plan.seed
        self.story: deque[str] = deque(maxlen=REMEMBERED_STEPS)
        self._remember = remember
        self._turns = Random(plan.turn_seed)
        self._wall = Wall()
        self._now = 1_000.0
        self._store = MemoryStore("simulated")
        self._mirror = Mirror(self.hits)
        self._surroundings = Surroundings(plan, self._wall)
        self._graves: list[tuple[SimulatedLoop, Any]] = []
        self._judge = Judge(self._mirror, self._surroundings)
        self._ending: Crash | Stop | None = None
        self._kill_now = False
        self._receipts: set[int] = set()

    # --- epochs --------------------------------------------------------------------------------------------------------------

    def go(self) -> None:
        """All epochs, and the mending at the end. Raises `Violation` or `Stuck`."""
        for epoch in self.plan.epochs:
            self._live(epoch)
        self._surroundings.mend()
        last = self.plan.epochs[-1]
        self._live(Epoch(last.settings, (), Stop(0.0, ShutdownMode.DRAIN)), mended=True)
        for name, count in self._surroundings.faults.hits.items():
            self.hits[hits.fault(name)] += count

    def _live(self, epoch: Epoch, *, mended: bool = False) -> None:
        loop = SimulatedLoop(
            self._turns,
            now=self._now,
            max_steps=MAX_STEPS,
            hurry=self.plan.hurry,
            ranked=self.plan.ranked,
            after_step=self._after_step,
            at_rest=self._at_rest,
        )
        loop.set_exception_handler(self._judge.on_loop_error)
        if self._remember:
            loop.on_step = lambda handle: self._tell_step(loop, handle)
        self._wall.loop, self._ending = loop, epoch.ending
        self._mirror.forget_engine()
        self._tell(f"--- an engine starts, to end by {epoch.ending}")
        work = self._finish(epoch) if mended else self._epoch(epoch)
        try:
            loop.run_until_complete(work)
            loop.run_until_rest()
            self._judge.check_the_end(loop, self._store)
        except Killed:
            self.hits[hits.ending("crash")] += 1
            self._tell("--- the engine's process is killed")
            self._graves.append((loop, self._judge.life))
            self._store = survivor(self._store)
            self._surroundings.engine_died()
        except BaseException:
            self._graves.append((loop, self._judge.life))
            raise
        else:
            bury(loop)
            self._surroundings.engine_ended()
        finally:
            self.steps += loop.steps
            self.trace = hash((self.trace, loop.trace, self._mirror.last_seq))
            self._now = loop.time()
            self._wall.loop, self._wall.loop_time = None, self._now
            self._receipts.update(self._said_to_be_taken())
            self._judge.life = None
        self._check_receipts()

    async def _epoch(self, epoch: Epoch) -> None:
        async with asyncio.TaskGroup() as everything:
            life, engine_life = await self._begin(epoch, everything)
            if engine_life.done():
                return
            operating = everything.create_task(self._operate(life, epoch, everything), name="operator")
            left = await engine_life
            self._judge.stopped(life, left)
            operating.cancel()

    async def _begin(self, epoch: Epoch, everything: asyncio.TaskGroup) -> tuple[Life, asyncio.Task[list[int]]]:
        self._wall.lease_s = epoch.settings.analysis.lease_s
        adapters = self._surroundings.adapters(epoch.settings, self._store, self._on_event, self._judge.on_news)
        engine = Engine(epoch.settings, adapters)
        self._surroundings.tell = engine.announce
        seen = view.View(engine)
        operator = Operator(
            engine=engine,
            mirror=self._mirror,
            faults=self._surroundings.faults,
            wall=self._wall,
            machines=[machine.name for machine in epoch.settings.machines],
            contents=self.plan.contents,
        )
        attempts = AttemptWatch(epoch.settings.analysis)
        facts = Facts(seen, view.rows(self._store), self._mirror, self._surroundings.store, self._wall, attempts)
        life = self._judge.life = Life(
            engine,
            seen,
            facts,
            operator,
            asyncio.get_running_loop().time(),
            epoch.settings.machinery.max_starting,
            epoch.settings.analysis.max_crashes,
        )
        ready = asyncio.get_running_loop().create_future()

        def on_ready() -> None:
            life.ready = True
            self._judge.begins(self._store)
            ready.set_result(None)

        engine_life = everything.create_task(engine.run(on_ready), name="engine")
        await asyncio.wait({ready, engine_life}, return_when=asyncio.FIRST_COMPLETED)
        if life.ready:
            everything.create_task(self._listen(life), name="reader")
        return life, engine_life

    async def _operate(self, life: Life, epoch: Epoch, everything: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        for at_s, action in epoch.actions:
            await asyncio.sleep(life.born_at + at_s - loop.time())  # noqa: TID251 - turned time
            self.hits[hits.action(type(action))] += 1
            self._tell(f"operator: {action}")
            everything.create_task(self._act(life.operator, action), name=f"operator {type(action).__name__}")
        if isinstance(epoch.ending, Crash):
            # It comes at its step; if the engine rests before, it comes then.
            await asyncio.sleep(60.0)  # noqa: TID251 - turned time
            self._kill_now = True
            return
        await asyncio.sleep(life.born_at + epoch.ending.at_s - loop.time())  # noqa: TID251 - turned time
        await self._stop(life, epoch.ending)

    async def _act(self, operator: Operator, action: Action) -> None:
        """Whatever a call of the operator raises ends the run here, and not through the task group, which would cut the engine."""
        try:
            await operator.act(action)
        except Violation as violation:
            self._judge.has_found(violation)
        except Exception as error:  # noqa: BLE001 - a call to the client answers, whatever is asked
            self._judge.found("a call is answered and doesn't break", f"{action}\n{where(error)}")

    async def _stop(self, life: Life, ending: Stop) -> None:
        self.hits[hits.ending(ending.mode)] += 1
        await self._ask_to_stop(life, ending.mode, ending.within_s)
        for after_s, mode in ending.harder:
            await asyncio.sleep(after_s)  # noqa: TID251 - turned time
            self.hits[hits.ending("hardened")] += 1
            await self._ask_to_stop(life, mode, None)

    async def _ask_to_stop(self, life: Life, mode: ShutdownMode, within_s: float | None) -> None:
        self._tell(f"operator: shutdown {mode}, within {within_s}")
        if mode is not ShutdownMode.DRAIN and life.stop_asked_at is None:
            life.stop_asked_at = asyncio.get_running_loop().time()
        try:
            outcome = await life.operator.do(Shutdown(mode=mode, within_s=within_s))
        except EngineStopped:
            return
        if not outcome.done:
            raise Violation("a shutdown is never refused", f"{outcome}")

    async def _finish(self, epoch: Epoch) -> None:
        """The last epoch: nothing goes wrong any more, and every task that something serves has to end."""
        async with asyncio.TaskGroup() as everything:
            life, engine_life = await self._begin(epoch, everything)
            if engine_life.done():
                raise Violation("an engine starts when nothing is wrong", f"{engine_life}")
            await self._open_everything(life, epoch)
            await self._until_all_ended(life)
            await self._ask_to_stop(life, ShutdownMode.DRAIN, None)
            self._judge.stopped(life, await engine_life)

    async def _open_everything(self, life: Life, epoch: Epoch) -> None:
        orders: list[commands.Action] = [commands.ResumePool()]
        orders += [commands.ResizeGroup(group=group.name, min_workers=0, max_workers=2) for group in epoch.settings.groups()]
        orders += [commands.EnableMachines(machines=(machine.name,)) for machine in epoch.settings.machines]
        for order in orders:
            await life.operator.do(order)
            # One command a step, so that each is judged by itself.
            await asyncio.sleep(0)  # noqa: TID251 - no time passes

    async def _until_all_ended(self, life: Life) -> None:
        began = asyncio.get_running_loop().time()
        while waiting := [
            task_id for task_id, told in self._mirror.tasks.items() if not told.state.is_final and self._is_served(life, task_id)
        ]:
            if asyncio.get_running_loop().time() - began > ALL_ENDED_WITHIN_S:
                tasks = {task_id: self._mirror.tasks[task_id] for task_id in waiting}
                raise Violation("every task that something serves ends", f"{tasks}")
            await asyncio.sleep(1.0)  # noqa: TID251 - turned time

    def _is_served(self, life: Life, task_id: int) -> bool:
        requires = view.rows(self._store)[task_id].requires
        return any(
            deciding.takes(group.settings, requires)
            and (
                not requires.needs_machine
                or any(
                    deciding.fits(machine, requires, group.settings.platforms) and name not in self.plan.missing_machines
                    for name, machine in life.view.machines.items()
                )
            )
            for group in life.view.groups.values()
        )

    async def _listen(self, life: Life) -> None:
        try:
            async for item in life.engine.events(None):
                if isinstance(item, Gap):
                    self._judge.found("a reader that keeps up misses nothing", f"{item}")
                elif item.durable:
                    life.heard.append(item.position.seq)
        except EngineStopped:
            return

    # --- between two steps -------------------------------------------------------------------------------------------------------

    def _after_step(self) -> None:
        self._judge.after_step()
        ending, loop = self._ending, self._wall.loop
        if self._judge.life is None:
            return
        if self._kill_now or (isinstance(ending, Crash) and loop is not None and loop.steps >= ending.after_steps):
            self._kill_now = False
            raise Killed

    def _at_rest(self) -> None:
        if self._wall.loop is not None:
            self._judge.at_rest(self._wall.loop.time())

    def _said_to_be_taken(self) -> Iterator[int]:
        if self._judge.life is not None:
            for receipt in self._judge.life.operator.receipts:
                if (task_id := task_of(receipt)) is not None:
                    yield task_id

    def _check_receipts(self) -> None:
        if lost := self._receipts - set(view.rows(self._store)):
            raise Violation("what has a receipt outlives a crash", f"tasks {sorted(lost)}")

    # --- the story ---------------------------------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        if self._remember:
            self._tell(f"event {event.position.seq}: {event.body}")
        self._judge.on_event(event)

    def _tell(self, what: str) -> None:
        if self._remember:
            self.story.append(f"{self._now if self._wall.loop is None else self._wall.loop.time():9.3f} {what}")

    def _tell_step(self, loop: SimulatedLoop, handle: Handle) -> None:
        self.story.append(f"{loop.time():9.3f} step {loop.steps}: {described(handle)}")

    def bury_the_dead(self) -> None:
        """Let go of everything at a moment when nothing else runs."""
        for loop, _life in self._graves:
            bury(loop)
        self._graves.clear()
