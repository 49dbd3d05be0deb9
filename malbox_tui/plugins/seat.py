"""One plugin's seat on a bench: its process, started at need, kept between turns, replaced when it broke or is not alone any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from malbox_tui.confine.control_groups import BenchGroups, Strikes
from malbox_tui.confine.endings import BrokenWire, ConfinedProcessError, ProcessEnded, last_words
from malbox_tui.confine.process import ConfinedProcess
from malbox_tui.confine.work import Limits, Work
from malbox_tui.model.report import degraded
from malbox_tui.plugins import replies
from malbox_tui.plugins.ending import last_line
from malbox_tui.plugins.health import UNHEALTHY, asked_for_health
from malbox_tui.plugins.limit_hits import counted_hits, disk_limit, hit_by_end, hit_by_traceback
from malbox_tui.plugins.log_filter import level_of
from malbox_tui.plugins.logs import cut
from malbox_tui.plugins.manifest import State
from malbox_tui.plugins.registry import FoundPlugin
from malbox_tui.plugins.replies import REPLIES, shortened
from malbox_tui.plugins.size import Size, size_of
from malbox_tui.plugins.surroundings import Surroundings

log = logging.getLogger(__name__)

READY_TIMEOUT_S = 60.0
"""How long `on_start` may take."""

STOP_TIMEOUT_S = 1.0
"""How long `on_stop` may take."""

_MOST_SEEN = 1000
"""Of the processes that belong to one: there may be many."""

_MAX_ASIDE_BYTES = 64 * 1024

_FULL_SCRATCH_PARTS = 64
"""A scratch with less than this part of it free is full: the next write would tell."""


class Seat:
    """One plugin on one bench, its process limited by `limits` and by groups made in those of the bench.

    `weakness` is what the plugin says that it must do without, as a sentence without a capital; `takes_batches` what its last process
    said, None before there was one.
    """

    def __init__(
        self, plugin: FoundPlugin, around: Surroundings, inbox: Path, scratch: Path, limits: Limits, groups: BenchGroups
    ) -> None:
        self.plugin = plugin
        self.condition = around.conditions[plugin.name]
        self.scope: str | None = None
        """The scope that its process lives for, beyond the tasks of one run; None: none."""
        self.around = around
        self.inbox = inbox
        self.weakness = ""
        self.takes_batches: bool | None = False if plugin.manifest.runtime.state is State.EPHEMERAL else None
        self.takes_events = False
        self.is_closed = False
        self._work = Work(
            name=plugin.name,
            code=plugin.folder,
            entry=plugin.entry,
            inbox=inbox,
            scratch=scratch,
            limits=limits,
            readable=plugin.host_paths(),
            variables={
                "MALBOX_LOG_LEVEL": level_of(plugin.manifest.runtime.log_filter, plugin.name),
                "MALBOX_PLUGIN_NAME": plugin.name,
            },
            bench=groups,
            interpreter=plugin.interpreter,
        )
        self._configured = plugin
        """With the options that its process has, or will have."""
        self._process: ConfinedProcess | None = None
        self._run_number = 0
        self._strikes = Strikes()
        """Of the turn that goes on, until they were last noted."""
        self._noted = Strikes()
        """All of the process by then."""
        self._left_output = b""
        self._aside = b""
        """What was printed while it had no order."""
        self._orders = 0
        """Given to the process so far."""
        self._family: frozenset[int] = frozenset()
        """What belonged to the process when it was ready."""
        self._seen: tuple[int, ...] = ()
        """What belonged to it after its last turn."""
        self._on_close: Callable[[], None] | None = None
        self._size_when_ready = Size()
        self._lost = False
        self._talking = asyncio.Lock()
        """Held while the process is started, or asked how it is."""

    @property
    def has_lost_process(self) -> bool:
        """Its last process broke, or had to be killed, and there is no other since."""
        return self._lost and self._process is None

    async def use(self, options: Mapping[str, str]) -> None:
        """Have a process with these options in place of its own, from the next turn on; one with others is ended, politely first."""
        configured = replace(self.plugin, config={**self.plugin.config, **options})
        if configured.config == self._configured.config:
            return
        self._configured = configured
        self._work = replace(self._work, readable=configured.host_paths())
        async with self._talking:
            await self.retire()

    def begin_turn(self, on_close: Callable[[], None]) -> None:
        """Limits that hit are counted from here on. `on_close` is called when the turn has to end at once."""
        self._on_close = on_close
        self.set_aside()
        self._note_strikes()
        self._strikes = Strikes()

    def end_turn(self) -> None:
        """The turn is over; its limits may still be asked for."""
        self._on_close = None

    def next_number(self) -> int:
        """A number for a run or batch, which this seat never gave before."""
        self._run_number += 1
        return self._run_number

    def count_order(self) -> int:
        """One more order is given to the process; how many that makes."""
        self._orders += 1
        return self._orders

    @property
    def process(self) -> ConfinedProcess | None:
        """The process, if there is one."""
        return self._process

    async def ready_process(self) -> ConfinedProcess:
        """The process, started if there is none that lives. Raises `ConfinedProcessError`."""
        async with self._talking:
            if self._process is not None and not self._process.alive:
                await self.kill()
            if self._process is None:
                await self.condition.may_start()
                around = self.around
                process = await ConfinedProcess.start(self._work, around.walls, around.settings.max_output_bytes)
                self._process = process
                self._noted = Strikes()
                self._orders = 0
                await self._get_ready(process)
                if self._process is not process:
                    raise ConfinedProcessError("it was ended while it was getting ready")
                self._lost = False
                self._family = frozenset(process.family())
                self._size_when_ready = size_of(self._family)
            return self._process

    def take_output(self) -> bytes:
        """What the process printed since the last call, or had printed when it was killed in this turn."""
        left, self._left_output = self._left_output, b""
        return left + (b"" if self._process is None else self._process.take_output())

    def set_aside(self) -> None:
        """What was printed until now belongs to no order: it was said at the start, about an event, or when asked for its health."""
        self._aside = cut(self._aside + self.take_output(), _MAX_ASIDE_BYTES)

    def take_aside(self) -> bytes:
        """What was printed without an order since the last call."""
        aside, self._aside = self._aside, b""
        return aside

    def hit_by_traceback(self, traceback: bytes) -> str | None:
        """The limit that an error of the plugin is about."""
        allowed = self.around.walls.processes_allowed(self._work.limits)
        return hit_by_traceback(traceback.decode("utf-8", "replace"), self._work.limits, allowed)

    def hit_by_end(self, how: str, output: bytes) -> str | None:
        """The limit that probably ended the process."""
        return hit_by_end(how, output.decode("utf-8", "replace"), self._work.limits)

    def hits(self, told: str | None) -> tuple[str, ...]:
        """The limits that the turn reached; `told` is one that the plugin itself spoke of, believed where nothing was counted."""
        self._note_strikes()
        counted = counted_hits(self._strikes, self._work.limits) or ((told,) if told is not None else ())
        return tuple(dict.fromkeys((*counted, *self._full_scratch())))

    async def kill(self) -> None:
        """End the process and all that it started, at once. The next turn starts another one."""
        self._note_strikes()
        process, self._process = self._process, None
        if process is not None:
            self._lost = True
            await process.kill()
            self._left_output = process.take_output()

    async def retire(self) -> None:
        """End the process, politely first, and forget it. The next turn starts another one."""
        self._lost = False
        await self._end_process()

    async def after_task(self) -> None:
        """Between tasks: end a process that is to serve one only, or that has grown up to its memory limit."""
        if self.plugin.manifest.runtime.state is State.EPHEMERAL or self._is_at_its_limit():
            await self.retire()

    def take_event(self, frame: dict[str, Any]) -> None:
        """Tell the process of an event, if there is one that is ready, wants events and reads what it is sent."""
        if self._process is None or not self.takes_events or self._talking.locked() or not self._process.reads:
            return
        with suppress(ConfinedProcessError):
            self._process.send(frame)

    async def check_health(self) -> None:
        """Ask a process that has nothing to do how it is; one that is unwell, or doesn't say, is ended, which counts as a crash."""
        if self._process is None or self._on_close is not None or self._talking.locked():
            return
        async with self._talking:
            process = self._process
            try:
                health = await asked_for_health(process)
            except ConfinedProcessError as exc:
                problem = str(exc)
            else:
                if health.state != UNHEALTHY:
                    self._say_weakness(health)
                    return
                problem = f"it says that it is unhealthy: {shortened(health.reason)}"
            if self._process is process:
                self.condition.crashed(problem)
                await self.kill()

    async def clear_up(self) -> None:
        """After a turn: a process is ended that started others in it which are still there. They would take from the next task what is
        its own, and could read it; those that were there when the plugin said that it is ready belong to it."""
        self._seen = () if self._process is None else tuple(islice(self._process.family(), _MOST_SEEN))
        if not self._family.issuperset(self._seen):
            await self.kill()

    async def close(self) -> None:
        """End the process, politely first. A turn that goes on is cut, and there will be no other."""
        self.is_closed = True
        if self._on_close is not None:
            self._on_close()
        await self._end_process()

    async def _end_process(self) -> None:
        """What it printed without an order and nobody will ask for goes to the engine's log."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            await _end(process)
        finally:
            said = self.take_aside() + process.take_output()
            if said.strip():
                log.info(
                    "the plugin %s printed between tasks: %s", self.plugin.name, shortened(said.decode("utf-8", "replace"), 2000)
                )

    async def _get_ready(self, process: ConfinedProcess) -> None:
        config = {**self._configured.config, **process.places.readable}
        process.send({"kind": "start", "config": config})
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                reply, payload = await process.receive(REPLIES)
        except TimeoutError:
            raise ConfinedProcessError(f"it was not ready within {READY_TIMEOUT_S:g} s") from None
        except ProcessEnded as exc:
            self._left_output = self.take_output()
            raise ProcessEnded(f"{exc.how}{last_words(self._left_output)}") from exc
        if isinstance(reply, replies.NotReady):
            self._left_output = self.take_output() + payload
            raise ConfinedProcessError(f"it is not ready: {shortened(reply.reason or last_line(payload))}")
        if not isinstance(reply, replies.Ready):
            raise BrokenWire("the process did not say that it is ready")
        self._say_weakness(reply)
        self.takes_batches = reply.takes_batches and self.plugin.manifest.runtime.state is not State.EPHEMERAL
        self.takes_events = reply.takes_events

    def _say_weakness(self, told: replies.Ready | replies.Health) -> None:
        self.weakness = "" if told.state == "healthy" else degraded(shortened(told.reason))

    def _is_at_its_limit(self) -> bool:
        if self._process is None:
            return False
        return size_of(self._seen).is_near(self._work.limits, self._size_when_ready)

    def _full_scratch(self) -> tuple[str, ...]:
        free_bytes = None if self._process is None else self._process.scratch_free_bytes()
        full = free_bytes is not None and free_bytes * _FULL_SCRATCH_PARTS < self._work.limits.scratch_mb * 1024 * 1024
        return (disk_limit(self._work.limits),) if full else ()

    def _note_strikes(self) -> None:
        if self._process is not None:
            strikes = self._process.strikes()
            self._strikes += strikes.since(self._noted)
            self._noted = strikes


async def _end(process: ConfinedProcess) -> None:
    process.ask_to_stop()
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        pass
    finally:
        await process.kill()
