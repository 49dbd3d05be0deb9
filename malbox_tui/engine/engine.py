"""The front door: everything an operator or a script can ask is answered here (`Client`), and everything inside is put together here.

`run` is the engine's whole life on one event loop: open, recover, work until told to stop, stop in a bounded time, close. Until it has
called `on_ready`, nothing else may be called. (Longer than most modules: a third of it only puts the parts together.)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from malbox_tui.config.machine_list import listed
from malbox_tui.config.settings import Settings
from malbox_tui.engine import clock
from malbox_tui.engine.action_log import ActionLog
from malbox_tui.engine.adapters import Adapters
from malbox_tui.engine.batch import Batch
from malbox_tui.engine.cancellation import CancelReason, CancelToken
from malbox_tui.engine.closing import close_all
from malbox_tui.engine.commands import OPERATOR, CommandDesk
from malbox_tui.engine.disk_floor import DiskFloor
from malbox_tui.engine.driver import Driver
from malbox_tui.engine.executor import Executor
from malbox_tui.engine.identifying import Identifying
from malbox_tui.engine.intake_accounts import IntakeAccounts
from malbox_tui.engine.leases import LeaseKeeper
from malbox_tui.engine.lifecycle import Lifecycle
from malbox_tui.engine.look_desk import LookDesk
from malbox_tui.engine.machine_care import MachineCare
from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.engine.newsroom import Newsroom
from malbox_tui.engine.plugin_roster import PluginRoster
from malbox_tui.engine.profiles import Profiles
from malbox_tui.engine.queue import TaskQueue
from malbox_tui.engine.recovery import Recovery
from malbox_tui.engine.removal import Hands, Remover
from malbox_tui.engine.running import END_MARGIN_S, GuestSide, Running
from malbox_tui.engine.store_health import StoreHealth
from malbox_tui.engine.stores import Stores
from malbox_tui.engine.submission import SubmissionDesk
from malbox_tui.engine.tracker import TaskTracker, was_cancelled
from malbox_tui.engine.upkeep import Upkeep
from malbox_tui.engine.waiting import WaitingRoom
from malbox_tui.engine.wishes import WishDesk
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
from malbox_tui.model.upkeep import SampleForm, StoreFigures
from malbox_tui.ports import (
    PendingEntry,
    StoreIdentity,
    WatchKeeper,
)

log = logging.getLogger(__name__)

STOP_MARGIN_S = END_MARGIN_S + 5.0
"""How long, over the grace period that plugins get, a stop may take before what is left is cut."""
FLOOR = "floor"
"""The cause of a pause while the disk has too little room."""
STORE = "store"
"""The cause of a pause while the store takes nothing."""


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
        self._roster = PluginRoster(
            adapters.runner, adapters.guest_plugins, settings, lambda guests: self._running.follow(guests)
        )
        wishes = WishDesk(self._roster, lambda: adapters.runner.plan, lambda: self._pool.groups.values())
        guests = GuestSide(adapters.guest_plugins, self.announce)
        self._running = Running(stores, adapters.runner, self._machines, settings, guests)
        self._executor = Executor(
            stores, adapters.runner, self._machines, self._tracker, settings, self._running, self._profiles, wishes
        )
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
        self._floor = DiskFloor(adapters.free_bytes, settings.retention.floor_bytes, self._on_floor)
        hands = Hands()
        self._upkeep = self._make_upkeep(hands)
        self._identifying = Identifying(adapters.store, adapters.quarantine, adapters.runner, adapters.wall, self._profiles)
        self._looks = LookDesk(
            adapters=adapters,
            newsroom=self._newsroom,
            health=self._health,
            pool=self._pool,
            machines=self._machines,
            waiting=self._waiting,
            attempts=self._driver.attempts,
            profiles=self._profiles,
            identifying=self._identifying,
            floor=self._floor,
            upkeep=self._upkeep,
        )
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
            upkeep=self._upkeep,
            identifying=None if at_rest else self._identifying,
            critical_timeout_s=lambda: self._settings.analysis.critical_timeout_s,
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
            hands=hands,
            low_disk=self._floor.look,
            wishes=wishes,
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
                upkeep = [] if self._at_rest else [services.create_task(work, name="upkeep") for work in self._upkeep_work()]
                log.info("engine %s epoch %d ready, %d tasks recovered", identity.engine_id, identity.epoch, recovered)
                self._is_open = True
                if not self._at_rest:
                    self._floor.look()
                    self._pool.begin()
                on_ready()
                await self._stop_asked
                left = await self._end_work(self._cut)
                for service in (keeping, watching, looking, *upkeep):
                    service.cancel()
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
        """Go on with other limits of worker groups and of runs in machines, other machines, profiles and time limits of analyses, and
        another limit of samples.

        Everything else of `settings` has to be as it was. What is under way keeps the limits that it began with.
        """
        if self._closed:
            return
        machines = _machines(self._settings)
        former = {group.name: (group.min_workers, group.max_workers) for group in self._settings.groups()}
        self._settings = settings
        self._submissions.reload(settings.intake.max_sample_bytes, settings.analysis)
        self._floor.reload(settings.retention.floor_bytes)
        if self._upkeep is not None:
            self._upkeep.reload(settings.retention)
        self._executor.reload(settings)
        self._running.reload(settings)
        self._machines.reload(settings.machinery)
        self._profiles.reload(settings)
        self._roster.follow(settings)
        self._driver.reload(settings.analysis)
        for problem in self._machines.orders.follow(machines, _machines(settings), "the configuration"):
            log.error("%s", problem)
        for group in settings.groups():
            limits = (group.min_workers, group.max_workers)
            if former[group.name] != limits:
                self._pool.resize(group.name, *limits)
                self._pool.groups[group.name].saved = limits
        self.announce(news.ConfigReloaded())

    def watched_by(self, keeper: WatchKeeper) -> None:
        """From now on orders for watched folders go to this one."""
        self._desk.watches = keeper

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
        return self._looks.overview(self._stop_mode)

    async def query(self, query: TaskQuery) -> TaskPage:
        """See `Client`."""
        self._check_alive()
        return await self._looks.query(query)

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
        return await self._looks.actions(before, limit)

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        """See `Client`."""
        self._check_alive()
        return await self._looks.intakes(before, limit)

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        """See `Client`."""
        self._check_alive()
        return await self._looks.intake_lines(query)

    async def content(self, sha256: str, form: SampleForm, actor: str = "", origin: str = "") -> AsyncGenerator[bytes, None]:
        """See `Client`."""
        self._check_alive()
        async with aclosing(self._looks.content(sha256, form, actor, origin)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def figures(self) -> StoreFigures:
        """See `Client`."""
        self._check_alive()
        return await self._looks.figures()

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
        if self._upkeep is not None:
            await self._upkeep.finish_open()
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
            stock = () if self._upkeep is None else (self._upkeep.close,)
            disks = (*stock, adapters.quarantine.close, adapters.results.close, adapters.store.close)
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
        elif isinstance(body, news.TaskProfileChanged | news.TaskChanged):
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

    def _on_floor(self) -> None:
        if self._at_rest:
            return
        if reason := self._floor.reason:
            log.warning("%s", self._floor.problem)
            self._pool.hold(FLOOR, reason)
        else:
            self._pool.lift(FLOOR)

    def _make_upkeep(self, hands: Hands) -> Upkeep | None:
        book, stockroom = self._adapters.upkeep, self._adapters.stockroom
        if book is None or stockroom is None:
            return None
        remover = Remover(book, self._adapters.quarantine, self._adapters.results, hands, self._adapters.wall)
        return Upkeep(book, stockroom, remover, self._actions, self._adapters.wall, self._settings.retention)

    def _upkeep_work(self) -> Iterator[Coroutine[Any, Any, None]]:
        if self._floor.is_known:
            yield self._floor.run()
        if self._upkeep is not None:
            yield self._upkeep.run()

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
