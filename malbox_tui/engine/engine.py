"""The front door: everything an operator or a script can ask is answered here (`Client`), and everything inside is put together here.

`run` is the engine's whole life on one event loop: open, recover, work until told to stop, stop in a bounded time, close. Until it has
called `on_ready`, nothing else may be called. (Longer than most modules: a third of it only puts the parts together.)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from malbox_tui.config.machine_list import listed
from malbox_tui.config.settings import Settings
from malbox_tui.engine import clock, dues
from malbox_tui.engine.action_log import ActionLog
from malbox_tui.engine.batch import Batch
from malbox_tui.engine.cancellation import CancelReason, CancelToken
from malbox_tui.engine.closing import close_all
from malbox_tui.engine.commands import OPERATOR, CommandDesk
from malbox_tui.engine.driver import Driver
from malbox_tui.engine.executor import Executor
from malbox_tui.engine.intake_accounts import IntakeAccounts
from malbox_tui.engine.leases import LeaseKeeper
from malbox_tui.engine.lifecycle import Lifecycle
from malbox_tui.engine.machine_care import MachineCare
from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.engine.newsroom import Newsroom
from malbox_tui.engine.plugin_roster import PluginRoster
from malbox_tui.engine.profiles import Profiles
from malbox_tui.engine.queue import TaskQueue
from malbox_tui.engine.recovery import Recovery
from malbox_tui.engine.running import END_MARGIN_S, GuestSide, Running
from malbox_tui.engine.store_health import StoreHealth
from malbox_tui.engine.stores import Stores
from malbox_tui.engine.submission import SubmissionDesk
from malbox_tui.engine.tracker import TaskTracker, was_cancelled
from malbox_tui.engine.waiting import WaitingRoom
from malbox_tui.engine.worker_pool import WorkerPool
from malbox_tui.model import events as news
from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.commands import Command, CommandOutcome, ShutdownMode
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.events import Event, Gap, Position
from malbox_tui.model.intake import IntakePage, IntakeView, LineQuery
from malbox_tui.model.machine import MachineSpec
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.report import ResultRef
from malbox_tui.model.submission import Account, Offer, Receipt, SubmissionOptions
from malbox_tui.ports import (
    ActionBook,
    Clock,
    GuestPlugin,
    IntakeBook,
    LimitsStore,
    MachineBook,
    Machinery,
    MarkBook,
    PauseBook,
    PendingEntry,
    PluginRunner,
    Quarantine,
    ResultStore,
    Store,
    StoreIdentity,
)

log = logging.getLogger(__name__)

STOP_MARGIN_S = END_MARGIN_S + 5.0
"""How long, over the grace period that plugins get, a stop may take before what is left is cut."""
STORE = "store"
"""The cause of a pause while the store takes nothing."""


@dataclass(frozen=True, slots=True)
class Adapters:
    """What the engine works with. It opens and closes all of them."""

    store: Store
    quarantine: Quarantine
    results: ResultStore
    runner: PluginRunner
    wall: Clock
    machinery: Machinery = field(default_factory=Machinery)
    limits: LimitsStore | None = None
    """Where changed limits of worker groups are kept; None: they can't be."""
    book: MachineBook | None = None
    """Where machines that were added, changed or removed are kept; None: they are for this run only."""
    marks: MarkBook | None = None
    """Where the marks in guests are kept for the next start; None: nowhere, and its first reverts are not proven."""
    pauses: PauseBook | None = None
    """Where a pause is kept for the next start; None: nowhere, and that one takes tasks."""
    actions: ActionBook | None = None
    """The log of actions, which the store keeps; None: it can't be read."""
    intakes: IntakeBook | None = None
    """The accounts of intakes, which the store keeps; None: they are not kept."""
    owner: str = "operator"
    """Who runs the engine: who acts where nobody is named."""
    free_bytes: Callable[[], int | None] = lambda: None
    """The room on the disk under the data folder; None: not known. Must not block."""
    guest_plugins: Sequence[GuestPlugin] = ()
    """Programs that run in guests beside samples."""


class Engine:
    """A pool of workers over a durable queue. Everything but the constructor belongs to one event loop.

    One `at_rest` takes no task, and touches no plugin and no machine: it carries out what can be done to tasks that wait or have ended,
    takes submissions for its next start, and says nothing of its coming and going.
    """

    def __init__(self, settings: Settings, adapters: Adapters, *, at_rest: bool = False) -> None:
        self._at_rest = at_rest
        self._settings = settings
        self._adapters = adapters
        self._tracker = TaskTracker()
        self._queue = TaskQueue()
        self._root = CancelToken()
        self._tokens: dict[int, CancelToken] = {}
        """Of the tasks that workers hold; the worker pool keeps it."""
        self._stop_mode: ShutdownMode | None = None
        self._stop_asked: asyncio.Future[None] | None = None
        self._cut: asyncio.Future[None] | None = None
        """Cancelled when a stop has taken as long as it may."""
        self._alarms: list[asyncio.TimerHandle] = []
        self._is_open = False
        self._closed = False
        self._newsroom = Newsroom(adapters.store, adapters.wall, self._follow)
        self._health = StoreHealth(adapters.store, adapters.wall, self._tracker, self.announce, self._on_health)
        self._lifecycle = Lifecycle(
            adapters.store, self._health, adapters.wall, self._tracker, settings.analysis.lease_s, self._on_pending
        )
        care = MachineCare(adapters.machinery, settings.machinery, self._tracker, adapters.wall, adapters.marks)
        self._machines = MachinePool(
            adapters.machinery, care, adapters.wall, self.announce, self._on_machines, lambda requires: self._pool.reach(requires)
        )
        stores = Stores(adapters.store, adapters.quarantine, adapters.results, self._health)
        self._recovery = Recovery(adapters.store, self._lifecycle, adapters.results, self._health, settings.analysis.max_crashes)
        self._profiles = Profiles(settings, lambda requires: self._waiting.refusal(requires), lambda: self._roster.names)
        guests = GuestSide(adapters.guest_plugins, self.announce)
        self._running = Running(stores, adapters.runner, self._machines, settings, guests)
        self._executor = Executor(stores, adapters.runner, self._machines, self._tracker, settings, self._running, self._profiles)
        self._roster = PluginRoster(adapters.runner, adapters.guest_plugins, settings, self._running.follow)
        self._driver = Driver(
            lifecycle=self._lifecycle,
            executor=self._executor,
            recovery=self._recovery,
            store=adapters.store,
            health=self._health,
            machines=self._machines,
            kept_out=lambda group: self._pool.groups[group].kept_out(self._roster.names),
            limits=lambda group: self._pool.groups[group].settings.limits,
            times=settings.analysis,
        )
        self._leases = LeaseKeeper(
            store=adapters.store,
            health=self._health,
            wall=adapters.wall,
            lease_s=settings.analysis.lease_s,
            attempts=self._driver.attempts,
            in_hand=self._tokens.keys(),
            recovery=self._recovery,
            on_pending=self._on_pending,
        )
        self._pool = WorkerPool(
            groups=settings.groups(),
            queue=self._queue,
            machines=self._machines,
            wall=adapters.wall,
            tracker=self._tracker,
            root=self._root,
            tokens=self._tokens,
            attempt=self._driver.drive,
            batch=lambda task_ids: Batch(task_ids, adapters.runner, self._tracker),
            announce=self.announce,
            on_shrunk=self._on_shrunk,
        )
        self._waiting = WaitingRoom(self._queue, self._pool, self._machines)
        self._actions = ActionLog(adapters.store, adapters.wall, adapters.owner)
        self._desk = CommandDesk(
            lifecycle=self._lifecycle,
            store=adapters.store,
            wall=adapters.wall,
            pool=self._pool,
            machines=self._machines,
            waiting=self._waiting,
            limits=adapters.limits,
            book=adapters.book,
            pauses=adapters.pauses,
            attempts=self._driver.attempts,
            tokens=self._tokens,
            log=self._actions,
            stop=self.stop,
            reload_plugins=self._roster.reload,
            profiles=self._profiles,
        )
        self._submissions = SubmissionDesk(
            lifecycle=self._lifecycle,
            quarantine=adapters.quarantine,
            waiting=self._waiting,
            log=self._actions,
            accounts=IntakeAccounts(adapters.intakes, adapters.wall, adapters.owner),
            wall=adapters.wall,
            max_sample_bytes=settings.intake.max_sample_bytes,
            settings=settings.analysis,
            profiles=self._profiles,
        )

    # --- life --------------------------------------------------------------------------------------------------------------------

    async def run(self, on_ready: Callable[[], None]) -> list[int]:
        """Live until `stop`; returns the ids of tasks that could not be stopped in time and stay owned (none, in good order)."""
        loop = asyncio.get_running_loop()
        self._stop_asked, self._cut = loop.create_future(), loop.create_future()
        if self._stop_mode is not None:
            self._stop_asked.set_result(None)
        try:
            if (opened := await self._open_or_stop(self._stop_asked)) is None:
                return []
            identity, recovered = opened
            if not self._at_rest:
                self.announce(news.EngineStarted(recovered=recovered))
                if self._pool.paused is not None:
                    self.announce(news.PoolPaused(reason=self._pool.paused))
                if self._stop_mode is not None:
                    self.announce(news.EngineStopping(mode=self._stop_mode))
            async with asyncio.TaskGroup() as services:
                keeping = services.create_task(self._leases.run(), name="lease keeper")
                watching = services.create_task(self._adapters.runner.watch(), name="watch over plugins")
                looking = services.create_task(self._health.watch(), name="watch over the store")
                log.info("engine %s epoch %d ready, %d tasks recovered", identity.engine_id, identity.epoch, recovered)
                self._is_open = True
                if not self._at_rest:
                    self._pool.begin()
                on_ready()
                await self._stop_asked
                left = await self._end_work(self._cut)
                keeping.cancel()
                watching.cancel()
                looking.cancel()
            return left
        finally:
            await self._close()

    def stop(self, mode: ShutdownMode, within_s: float | None = None) -> None:
        """End: finish what runs (drain), return it to the queue, or cancel it. Idempotent; a harder mode hardens a softer one.

        A drain that takes longer than `within_s` gives back what is left; None: it takes as long as it takes. Before the engine is
        ready, it ends as soon as it is.
        """
        if self._closed:
            return
        if mode is ShutdownMode.DRAIN and within_s is not None:
            self._alarms.append(clock.alarm(within_s, lambda: self.stop(ShutdownMode.GIVE_BACK)))
        order = list(ShutdownMode)
        if self._stop_mode is not None and order.index(mode) <= order.index(self._stop_mode):
            return
        self._stop_mode = mode
        if self._is_open and not self._at_rest:
            self.announce(news.EngineStopping(mode=mode))
        self._pool.drain()
        if mode is ShutdownMode.CANCEL:
            for token in list(self._tokens.values()):
                token.cancel(CancelReason.USER, "the shutdown")
        if mode is not ShutdownMode.DRAIN:
            self._root.cancel(CancelReason.SHUTDOWN)
            self._alarms.append(clock.alarm(self._settings.analysis.longest_grace_s + STOP_MARGIN_S, self._cut_what_is_left))
        if self._stop_asked is not None and not self._stop_asked.done():
            self._stop_asked.set_result(None)

    def reload(self, settings: Settings) -> None:
        """Go on with other limits of worker groups and of runs in machines, other machines, other time limits of analyses and another
        limit of samples.

        Everything else of `settings` has to be as it was. What is under way keeps the limits that it began with.
        """
        if self._closed:
            return
        machines = _machines(self._settings)
        former = {group.name: (group.min_workers, group.max_workers) for group in self._settings.groups()}
        self._settings = settings
        self._submissions.reload(settings.intake.max_sample_bytes, settings.analysis)
        self._executor.reload(settings)
        self._running.reload(settings)
        self._machines.reload(settings.machinery)
        self._profiles.reload(settings)
        self._driver.reload(settings.analysis)
        for problem in self._machines.orders.follow(machines, _machines(settings), "the configuration"):
            log.error("%s", problem)
        for group in settings.groups():
            limits = (group.min_workers, group.max_workers)
            if former[group.name] != limits:
                self._pool.resize(group.name, *limits)
                self._pool.groups[group.name].saved = limits
        self.announce(news.ConfigReloaded())

    def announce(self, body: news.EventBody) -> None:
        """Tell news that belongs to no task's move, and store it unless it is passing."""
        if isinstance(body, news.ScreenshotTaken):
            self._machines.show(body.machine, body.result)
        self._newsroom.announce(body)

    # --- Client ------------------------------------------------------------------------------------------------------------------

    async def do(self, command: Command) -> CommandOutcome:
        """See `Client`."""
        self._check_alive()
        return await self._desk.do(command)

    async def submit(
        self, offers: AsyncIterator[Offer], options: SubmissionOptions, on_receipt: Callable[[Receipt], None] | None = None
    ) -> Account:
        """See `Client`. The engine's end cuts it short: what has a receipt is taken."""
        self._check_alive()
        handle = self._tracker.spawn(self._submissions.submit(offers, options, on_receipt), name="submission")
        try:
            return await handle
        except asyncio.CancelledError:
            if self._closed and not was_cancelled():
                raise EngineStopped from None
            raise

    async def overview(self) -> Overview:
        """See `Client`."""
        self._check_alive()
        return Overview(
            clock=self._adapters.wall.now(),
            position=self._newsroom.position,
            counts=self._newsroom.counts.by_state(),
            groups=self._pool.views(),
            workers=dues.of_workers(self._pool.worker_views(), self._driver.attempts, self._adapters.wall.now()),
            machines=self._machines.views(),
            paused=self._pool.paused,
            stopping=self._stop_mode,
            isolation=self._adapters.runner.isolation,
            ended_per_minute=self._newsroom.throughput.per_minute(self._adapters.wall.now()),
            free_bytes=self._adapters.free_bytes(),
            store_failing=self._health.problem is not None,
            troubles=(
                *(() if self._health.problem is None else (f"The store takes nothing: {self._health.problem}",)),
                *self._adapters.runner.troubles,
            ),
        )

    async def query(self, query: TaskQuery) -> TaskPage:
        """See `Client`."""
        self._check_alive()
        page = await self._adapters.store.tasks(query, self._adapters.wall.now())
        return dues.of_tasks(self._waiting.explain(page), self._driver.attempts)

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        """See `Client`."""
        self._check_alive()
        return await self._adapters.results.read(reference, max_bytes)

    def events(self, after: Position | None) -> AsyncIterator[Event | Gap]:
        """See `Client`."""
        return self._newsroom.events(after)

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """See `Client`."""
        self._check_alive()
        return () if self._adapters.actions is None else await self._adapters.actions.actions(before, limit)

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        """See `Client`."""
        self._check_alive()
        return () if self._adapters.intakes is None else await self._adapters.intakes.intakes(before, limit)

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        """See `Client`."""
        self._check_alive()
        return IntakePage(intake=None) if self._adapters.intakes is None else await self._adapters.intakes.intake_lines(query)

    # --- private -----------------------------------------------------------------------------------------------------------------

    async def _open_or_stop(self, stop_asked: asyncio.Future[None]) -> tuple[StoreIdentity, int] | None:
        """Open everything; None when a stop was asked for and this still was not done soon after."""
        opening = self._tracker.spawn(self._open(), name="opening")
        first: set[asyncio.Future[Any]] = {opening, stop_asked}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():
            await asyncio.wait({opening}, timeout=STOP_MARGIN_S)
        return await opening if opening.done() else None

    async def _open(self) -> tuple[StoreIdentity, int]:
        adapters = self._adapters
        await adapters.quarantine.open()
        await adapters.results.open()
        identity = await adapters.store.open(self._newsroom.on_commit)
        self._newsroom.open(identity, await adapters.store.owned())
        if self._at_rest:
            self._machines.let_be()  # it is known which there are, and none is made clean
        else:
            await self._roster.open()
        recovered = await self._recovery.recover()
        self._queue.load(await adapters.store.pending())
        await self._machines.open()
        if adapters.pauses is not None and (paused := await adapters.pauses.kept()) is not None:
            self._pool.hold(OPERATOR, paused, is_news=False)
        return identity, recovered

    async def _end_work(self, cut: asyncio.Future[None]) -> list[int]:
        """Wait for the workers to leave. Nothing bounds a drain but its hardening: the operator sees what it waits for."""
        await asyncio.wait({self._pool.emptied(), cut}, return_when=asyncio.FIRST_COMPLETED)
        left = sorted(self._tokens)
        if left:
            log.error("tasks %s did not stop in time; the next start recovers them", left)
        return left

    def _cut_what_is_left(self) -> None:
        if self._cut is not None:
            self._cut.cancel()

    async def _close(self) -> None:
        """Let go of everything, in a bounded time whatever the adapters do. Raises the first error of theirs, at the end."""
        self._closed = True
        for alarm in self._alarms:
            alarm.cancel()
        self._pool.drain()
        self._machines.let_be()
        self._health.let_be()
        self._tracker.cancel()
        if stuck := await self._tracker.wait(STOP_MARGIN_S):
            log.error("could not be ended: %s", stuck)
        self._actions.close()
        adapters = self._adapters
        try:
            disks = (adapters.quarantine.close, adapters.results.close, adapters.store.close)
            works = () if self._at_rest else (self._machines.close, adapters.runner.close)
            await close_all(self._tracker, (*works, *disks))
        finally:
            self._newsroom.close()
            self._tracker.cancel()
            await self._tracker.wait(STOP_MARGIN_S)

    def _follow(self, body: news.EventBody) -> None:
        """Keep the queue as the store has it, in the order of the commits, which is not that of the answers; and tell plugins."""
        self._adapters.runner.tell(body)
        if isinstance(body, news.TaskPriorityChanged):
            self._queue.reprioritize(body.task_id, body.priority)
        elif isinstance(body, news.TaskProfileChanged):
            self._queue.reclassify(body.task_id, body.requires)
            self._pool.balance()
        elif isinstance(body, news.TaskStarting):
            self._queue.forget(body.task_id)
        elif isinstance(body, news.TaskEnded) and not self._newsroom.counts.is_owned(body.task_id):
            self._queue.end(body.task_id)

    def _on_pending(self, entry: PendingEntry) -> None:
        self._queue.push(entry)
        self._pool.balance()

    def _on_machines(self) -> None:
        self._pool.balance()

    def _on_health(self) -> None:
        if self._health.problem is None:
            self._pool.lift(STORE)
        else:
            self._pool.hold(STORE, "the store takes nothing")

    def _on_shrunk(self, active: int) -> None:
        if not self._closed:
            self._tracker.spawn(self._adapters.runner.trim(active), name="trim benches")

    def _check_alive(self) -> None:
        if self._closed:
            raise EngineStopped


def _machines(settings: Settings) -> tuple[MachineSpec, ...]:
    return listed([machine.spec() for machine in settings.machines]).machines
