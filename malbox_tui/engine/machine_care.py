"""What is done to machines: they are started for a task, stopped after it, reverted, tried, and tried again.

Every call to a hypervisor or a guest has a time limit here, so none can hold a machine for ever; a machine is in `reverting` only while
its care runs. At most `max_starting` machines start or revert at once: more of them at a time are slower, not faster.

1. *Proven clean*: a guest that was reverted is marked with traces; after the next revert they have to be gone. Marks are kept for the
   engine's next start before anything of a task gets into a guest. What is there then is looked at, to be compared with what a task
   leaves. The task that comes soon goes on with the conversation of the proof, and has nothing to wait for.
2. What the hypervisor doesn't know as it is configured may be somebody else's: it is asked about a machine before it is first touched.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from malbox_tui.config.settings import MachinerySettings
from malbox_tui.engine import clock
from malbox_tui.engine.goodbye import say_goodbye
from malbox_tui.engine.guest_files import MOST_LISTED, watched_folders
from malbox_tui.engine.machine import Machine
from malbox_tui.engine.machine_fit import must_be_bound, network_bound
from malbox_tui.engine.tracker import TaskTracker, was_cancelled
from malbox_tui.model.errors import (
    GuestRefused,
    GuestUnreachable,
    MachineError,
    MachineMisconfigured,
    MachineMissing,
    MachineUnable,
    StoreError,
)
from malbox_tui.model.limits import ResourceLimits
from malbox_tui.model.machine import MachineTrigger, Throttle
from malbox_tui.ports import Clock, GuestChannel, GuestSession, GuestView, MachineProvider, Machinery, MarkBook

log = logging.getLogger(__name__)

T = TypeVar("T")

FRESH_S = 120.0
"""A machine that was proven clean no longer ago, and that nothing has touched since, serves without another revert."""
STOP_LIMIT_S = 30.0
"""How long switching a machine off may take."""
STOP_TRIES = 3
"""How often it is tried to switch a machine off at the end of the engine."""
RETRY_S = 2.0
"""How long to wait before a failed revert is tried again; twice as long each time, up to `start_timeout_s`."""

MOST_TRACES_TOLD = 4


class MachineCare:
    """Works on machines, any number at a time; each machine has at most one care."""

    def __init__(
        self,
        machinery: Machinery,
        settings: MachinerySettings,
        tracker: TaskTracker,
        wall: Clock,
        marks: MarkBook | None = None,
    ) -> None:
        self._machinery = machinery
        self._marks = marks
        self._settings = settings
        self._tracker = tracker
        self._wall = wall
        self._starting = asyncio.Semaphore(settings.max_starting)
        self._closed = False

    def reload(self, settings: MachinerySettings) -> None:
        """From now on these times hold; as many machines as before start at once."""
        self._settings = settings

    async def open(self) -> None:
        """Get the hypervisors ready."""
        for provider in self._machinery.providers.values():
            await provider.open()

    @property
    def is_over(self) -> bool:
        """No care is begun any more."""
        return self._closed

    def let_be(self) -> None:
        """Begin no care any more: the engine ends."""
        self._closed = True

    async def close(self, machines: Sequence[Machine]) -> None:
        """Switch off `machines`, within `STOP_LIMIT_S` in all, and let go. Cares that still run are to be cancelled before."""
        self.let_be()
        stops = [self._tracker.spawn(self._stop_for_good(machine), name=f"stop {machine.spec.name}") for machine in machines]
        if stops:
            _, hanging = await asyncio.wait(stops, timeout=STOP_LIMIT_S)
            for stop in hanging:
                log.error("%s: it may be running still", stop.get_name())
                stop.cancel()
            if hanging:
                await asyncio.wait(hanging, timeout=1.0)
        for provider in self._machinery.providers.values():
            await provider.close()

    async def start(self, machine: Machine, limits: ResourceLimits) -> GuestSession:
        """A reserved machine up, clean, answering, marked, and bound by what `limits` say of its network. Raises `MachineError`;
        `MachineUnable` when it can't be bound as it must be."""
        is_fresh = machine.clean_at is not None and clock.monotonic() - machine.clean_at <= FRESH_S
        machine.clean_at = None
        if not is_fresh:
            await self._hang_up(machine)
        return await self._limited(machine, self._get_ready(machine, limits))

    def make_clean(self, machine: Machine, on_change: Callable[[], None]) -> None:
        """Prove a `reverting` machine clean, in the background; afterwards it is ready, disabled, quarantined or missing.

        Whatever it is afterwards, it is switched off unless it is ready. One that is to be removed is disabled.
        """
        if not self._closed:
            self._tracker.spawn(self._make_clean(machine, on_change), name=f"care of {machine.spec.name}")

    def try_once(self, machine: Machine, on_change: Callable[[], None]) -> None:
        """Try a ready, quarantined or missing machine now; if it was quarantined and fails once, it is so again."""
        machine.failures = min(machine.failures, machine.spec.max_failures - 1)
        machine.move(MachineTrigger.REVERT, machine.reason)
        self.make_clean(machine, on_change)

    # --- private -----------------------------------------------------------------------------------------------------------------

    async def _make_clean(self, machine: Machine, on_change: Callable[[], None]) -> None:
        retry_s = RETRY_S
        while not await self._is_proven(machine, on_change):
            if machine.failures < machine.spec.max_failures and not machine.has_orders:
                await machine.rest(min(retry_s, self._settings.start_timeout_s))
                retry_s *= 2
        on_change()

    async def _is_proven(self, machine: Machine, on_change: Callable[[], None]) -> bool:
        """Switch it off and try to prove it clean, once; false when it is still `reverting` afterwards."""
        if machine.removed_by is not None:
            await self._stop_for_good(machine)
        elif machine.is_ours or machine.has_orders:
            await self._stop(machine)
        if machine.next_spec is not None:
            machine.become(machine.next_spec)
        if machine.disable_reason is not None or machine.removed_by is not None:
            machine.move(MachineTrigger.DISABLE, machine.disable_reason or f"removed by {machine.removed_by}")
            machine.disable_reason = None
            return True
        if machine.failures >= machine.spec.max_failures:
            machine.move(MachineTrigger.QUARANTINE, machine.reason)
            self._try_again_later(machine, on_change)
            return True
        try:
            async with self._starting:
                await self._limited(machine, self._prove_clean(machine))
        except MachineMissing as error:
            machine.move(MachineTrigger.LOSE, error.problem)
            self._try_again_later(machine, on_change)
            return True
        except MachineMisconfigured as error:
            log.warning("%s", error)
            machine.failures += 1
            machine.move(MachineTrigger.QUARANTINE, error.problem)
            self._try_again_later(machine, on_change)
            return True
        except MachineError as error:
            log.warning("%s", error)
            machine.failures += 1
            machine.reason = error.problem
            return False
        if machine.has_orders:
            return False
        machine.clean_at = clock.monotonic()
        machine.move(MachineTrigger.CLEAN)
        return True

    def _try_again_later(self, machine: Machine, on_change: Callable[[], None]) -> None:
        """Try a quarantined or missing machine once more after a while, unless it is moved before."""

        def probe() -> None:
            if not self._closed:
                self.try_once(machine, on_change)

        machine.next_try = clock.alarm(self._settings.probe_interval_s, probe)

    async def _prove_clean(self, machine: Machine) -> None:
        machine.learn(await self._provider(machine).check(machine.spec))
        machine.session = await self._bring_up(machine)

    async def _look_for_traces(self, machine: Machine, session: GuestSession) -> None:
        """Raises `MachineError` when the revert left something."""
        assert machine.mark is not None, "asked only when there is one"
        try:
            left = await session.traces(machine.mark)
        except GuestRefused as error:
            raise MachineError(machine.spec.name, f"it can't be proven clean: {error.problem}") from error
        if left:
            raise MachineError(machine.spec.name, f"its snapshot did not take back {_listed(left)}")
        machine.mark = None

    async def _get_ready(self, machine: Machine, limits: ResourceLimits) -> GuestSession:
        session, machine.session = machine.session, None
        if session is None or not await _answers(session):
            async with self._starting:
                session = await self._bring_up(machine)
        await _or_closed(session, self._bind(machine, limits))
        return session

    async def _mark(self, machine: Machine, session: GuestSession) -> None:
        try:
            machine.mark = await session.mark()
        except GuestRefused as error:
            machine.warn(f"Its reverts can't be proven: no mark could be left in its guest ({error.problem}).")
            return
        try:
            if self._marks is not None:
                await self._marks.keep(machine.spec, machine.mark)
        except StoreError as error:
            machine.warn(
                f"If malbox-tui dies, the next revert can't be proven: the mark in its guest could not be kept ({error})."
            )

    async def _look(self, machine: Machine, session: GuestSession) -> GuestView | None:
        """None: it can't be had now; the task looks once more, and says so when it can't either."""
        try:
            return await session.look(watched_folders(machine.spec, session), MOST_LISTED)
        except GuestRefused:
            return None

    async def _bind(self, machine: Machine, limits: ResourceLimits) -> None:
        """Hold the machine to what its task's worker group and its own configuration allow."""
        kbps = network_bound(machine.spec, limits)
        throttle = Throttle(network_kbps=kbps, disk_kib_s=machine.spec.disk_kib_s)
        if throttle == Throttle():
            return
        try:
            await self._provider(machine).throttle(machine.spec, throttle)
        except MachineUnable as error:
            machine.warn(f"What it sends, reads and writes can't be bound: {error.problem}.")
            if must_be_bound(machine.spec, limits):
                machine.let_run_free(error.problem)
                problem = f"its network can't be held to {kbps} kbit/s: {error.problem}"
                raise MachineUnable(machine.spec.name, problem) from error

    async def _bring_up(self, machine: Machine) -> GuestSession:
        """Reverted, answering, with nothing left of what was there, and marked."""
        await self._provider(machine).revert(machine.spec)
        session = await self._channel(machine).connect(machine.spec)
        await _or_closed(session, self._set_clock(machine, session))
        if machine.mark is None and self._marks is not None:
            machine.mark = await self._marks.kept(machine.spec)
        if machine.mark is not None:
            await _or_closed(session, self._look_for_traces(machine, session))
        await _or_closed(session, self._mark(machine, session))
        machine.seen = await _or_closed(session, self._look(machine, session))
        return session

    async def _hang_up(self, machine: Machine) -> None:
        session, machine.session = machine.session, None
        if session is not None:
            await say_goodbye(session)

    async def _set_clock(self, machine: Machine, session: GuestSession) -> None:
        try:
            await session.set_clock(self._wall.now())
        except GuestRefused as error:
            machine.warn(f"Its guest has the time of its snapshot: the clock can't be set ({error.problem}).")

    async def _stop_for_good(self, machine: Machine) -> None:
        """Nothing follows that would tell: what fails is tried again."""
        for _ in range(STOP_TRIES - 1):
            if await self._stop(machine):
                return
            await clock.sleep(1.0)
        if not await self._stop(machine):
            log.error("machine %s may be running still", machine.spec.name)

    async def _stop(self, machine: Machine) -> bool:
        """Switch it off if it is ours; whether that worked. If not, the revert that follows in any case will tell."""
        await self._hang_up(machine)
        try:
            async with clock.within(STOP_LIMIT_S):
                if not machine.is_ours:
                    machine.learn(await self._provider(machine).check(machine.spec))
                await self._provider(machine).stop(machine.spec)
            return True
        except (MachineMissing, MachineMisconfigured) as error:
            log.warning("machine %s was left as it is: %s", machine.spec.name, error.problem)
            return True
        except TimeoutError:
            log.warning("machine %s could not be switched off within %g s", machine.spec.name, STOP_LIMIT_S)
        except asyncio.CancelledError:
            if was_cancelled():
                raise
            log.warning("machine %s could not be switched off: its adapter gave the call up", machine.spec.name)
        except Exception as error:  # noqa: BLE001 - whatever an adapter raises, the revert goes on
            log.warning("machine %s could not be switched off: %s", machine.spec.name, error)
        return False

    async def _limited(self, machine: Machine, work: Coroutine[Any, Any, T]) -> T:
        """Raises `MachineError` whatever an adapter raises: its machine must not be lost in a state that nobody cares for."""
        limit_s = self._settings.start_timeout_s
        try:
            async with clock.within(limit_s):
                return await work
        except MachineError:
            raise
        except TimeoutError:
            raise GuestUnreachable(machine.spec.name, f"it was not up and answering within {limit_s:g} s") from None
        except asyncio.CancelledError as error:
            if was_cancelled():
                raise
            raise self._broken(machine, error) from error
        except Exception as error:
            raise self._broken(machine, error) from error

    def _broken(self, machine: Machine, error: BaseException) -> MachineError:
        log.error("the adapter of machine %s broke", machine.spec.name, exc_info=error)
        return MachineError(machine.spec.name, f"its adapter broke: {type(error).__name__}: {error}".rstrip(": "))

    def _provider(self, machine: Machine) -> MachineProvider:
        """Raises `MachineMisconfigured` when there is none."""
        try:
            return self._machinery.providers[machine.spec.provider]
        except KeyError:
            raise MachineMisconfigured(machine.spec.name, f"nothing here runs {machine.spec.provider} machines") from None

    def _channel(self, machine: Machine) -> GuestChannel:
        """Raises `MachineMisconfigured` when there is none."""
        try:
            return self._machinery.channels[machine.spec.channel]
        except KeyError:
            problem = f"nothing here talks to guests by {machine.spec.channel!r}"
            raise MachineMisconfigured(machine.spec.name, problem) from None


async def _answers(session: GuestSession) -> bool:
    """Whether its guest is there still; if not, nobody else will end the conversation."""
    try:
        await _or_closed(session, session.ping())
    except (GuestUnreachable, GuestRefused):
        return False
    return True


async def _or_closed(session: GuestSession, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives; when it fails, nobody else will end the conversation."""
    try:
        return await work
    except MachineError:
        await session.close()
        raise


def _listed(traces: Sequence[str]) -> str:
    shown = [*traces[:MOST_TRACES_TOLD], *(["more"] if len(traces) > MOST_TRACES_TOLD else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
