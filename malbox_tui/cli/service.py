"""An engine served until it is told to end: its start, its signals, its signs of life, and its end.

1. The main thread's loop has the socket and the signals, the engine's thread has the engine.
2. Signs of life come from the engine's loop: one that hangs sends none, and the service manager starts it anew.
3. SIGTERM drains, whatever comes after it gives back, and one more ends the process at once; so does an engine that doesn't end within
   its grace periods.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from contextlib import suppress

import msgspec

from malbox_tui.cli.analyze import STOP_MARGIN_S
from malbox_tui.cli.breakdown import engine_breakdown, first_cause
from malbox_tui.cli.front_door import open_door
from malbox_tui.cli.notify import Notifier
from malbox_tui.cli.options import GlobalOptions
from malbox_tui.cli.output import tell
from malbox_tui.cli.rereading import read_again
from malbox_tui.cli.service_log import LOG_NAME
from malbox_tui.cli.text import counted, sentence
from malbox_tui.cli.troubles import troubles_told
from malbox_tui.config.changes import changes, with_live
from malbox_tui.config.loading import shown_path
from malbox_tui.config.settings import Settings
from malbox_tui.engine.clock import sleep
from malbox_tui.model.commands import Command, ReloadPlugins, ShutdownMode
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.overview import Overview
from malbox_tui.model.task import FINAL_STATES, TaskState
from malbox_tui.runtime import EngineThread, login_name, pause_of, start_engine
from malbox_tui.runtime.diagnosis import plugin_fault

log = logging.getLogger(__name__)

EXIT_OK = 0
EXIT_BROKEN = 1
BEAT_S = 10.0
"""How often the service manager is told how it goes, where it doesn't ask for it more often."""
MODES = {ShutdownMode.DRAIN: "running tasks finish", ShutdownMode.GIVE_BACK: "running attempts are given back"}


class Service:
    """One run of the service."""

    def __init__(self, settings: Settings, options: GlobalOptions, notifier: Notifier) -> None:
        self._settings = settings
        """In effect: those of the start, with what was taken over since."""
        self._read = settings
        """What the configuration said when it was read last."""
        self._options = options
        self._has_file = options.source.exists
        """A configuration was read from it; one that is gone later was not meant to give the defaults."""
        self._notifier = notifier
        self._engine: EngineThread | None = None
        self._watches = options.source.saved_watches()
        self._asked: ShutdownMode | None = None
        self._reload_asked = asyncio.Event()

    async def run(self) -> int:
        """Serve to the end and return the exit code.

        Raises what keeps it from starting (any `MalboxError`); whatever had been started has ended then.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_end_asked, number)
        loop.add_signal_handler(signal.SIGHUP, self._reload_asked.set)
        folders = self._options.folders
        with troubles_told(tell, time.monotonic):
            source = self._options.source
            limits, book = source.saved_limits(), source.saved_machines()
            engine = await asyncio.to_thread(start_engine, self._settings, folders, limits, book, watches=self._watches)
            self._engine = engine
            try:
                if self._asked is not None:
                    engine.stop(self._asked, self._drain_limit_s)
                with suppress(EngineStopped):
                    async with open_door(engine.client, self._options, lambda: self._settings, self._say):
                        await self._live(engine)
            except BaseExceptionGroup as group:
                raise first_cause(group) from None
            finally:
                engine.stop(ShutdownMode.GIVE_BACK)
                if not await asyncio.to_thread(engine.join, self._end_limit_s):
                    self._end_at_once("the engine did not end in time")
        return self._conclude(engine)

    async def _live(self, engine: EngineThread) -> None:
        """Until the engine has ended."""
        place = shown_path(self._options.folders.control_socket)
        tell(f"Serving at {sentence(place)}.")
        log.info("serving at %s", place)
        if (paused := pause_of(self._options.folders)) is not None:
            self._say(f"No task is taken: {paused}. `{self._options.command('resume')}` ends that.")
        if self._asked is None:
            self._notifier.ready("Serving.")
        async with asyncio.TaskGroup() as beside:
            beating = beside.create_task(self._beat(engine), name="signs of life")
            reloading = beside.create_task(self._reload_when_asked(engine), name="reloads")
            await asyncio.to_thread(engine.join)
            beating.cancel()
            reloading.cancel()

    async def _beat(self, engine: EngineThread) -> None:
        interval_s = BEAT_S if self._notifier.watchdog_s is None else min(BEAT_S, self._notifier.watchdog_s / 3)
        with suppress(EngineStopped):
            while True:
                self._notifier.alive(_status(await engine.client.overview()))
                await sleep(interval_s)

    # --- signals -----------------------------------------------------------------------------------------------------------------

    def _on_end_asked(self, number: signal.Signals) -> None:
        log.info("%s came", number.name)
        if self._asked is ShutdownMode.GIVE_BACK:
            self._end_at_once(f"{number.name} came once more")
        drains = self._asked is None and number is signal.SIGTERM
        self._asked = ShutdownMode.DRAIN if drains else ShutdownMode.GIVE_BACK
        tell(f"Stopping: {MODES[self._asked]}.")
        self._notifier.stopping(f"Stopping: {MODES[self._asked]}.", self._end_limit_s + (self._drain_limit_s or 0.0))
        if self._engine is not None:
            self._engine.stop(self._asked, self._drain_limit_s)

    @property
    def _drain_limit_s(self) -> float | None:
        """How long tasks may still run; None when they are not waited for."""
        return self._settings.general.drain_timeout_s if self._asked is ShutdownMode.DRAIN else None

    @property
    def _end_limit_s(self) -> float:
        """How long after giving back the engine may take to end."""
        return STOP_MARGIN_S + 2 * self._settings.analysis.longest_grace_s

    def _end_at_once(self, why: str) -> None:
        log.warning("ending at once: %s", why)
        tell(f"malbox-tui: Ending at once: {why}. The next start recovers what was running.")
        os._exit(EXIT_BROKEN)

    async def _reload_when_asked(self, engine: EngineThread) -> None:
        while True:
            await self._reload_asked.wait()
            self._reload_asked.clear()
            self._notifier.reloading()
            await self._reload(engine)
            if self._asked is None:
                self._notifier.ready("Serving.")

    async def _reload(self, engine: EngineThread) -> None:
        configuration = await read_again(self._options.source, had_file=self._has_file)
        if configuration.faults:
            for fault in configuration.faults:
                self._say(f"The configuration was read again and is faulty: {fault}")
            self._say("Nothing was changed.")
            return
        settings = with_live(self._settings, configuration.settings)
        if settings.profiles != self._settings.profiles:
            problem = await asyncio.to_thread(plugin_fault, settings, self._options.folders, self._options.source)
            if problem is not None:
                self._say(f"The profiles of the configuration that was read again can't be used: {problem}")
                self._say("Nothing was changed.")
                return
        self._has_file = self._options.source.exists
        found = changes(self._known, configuration.settings)
        self._read = configuration.settings
        self._settings = settings
        engine.reload(self._settings)
        if not found:
            self._say("The configuration was read again: nothing changed.")
        for change in found:
            when = "now in effect" if change.is_live else "needs a restart"
            self._say(f"The configuration was read again: {change}, {when}.")
        with suppress(EngineStopped):
            outcome = await engine.client.do(Command(action=ReloadPlugins(), actor=login_name(), origin="SIGHUP"))
            self._say(outcome.message)

    @property
    def _known(self) -> Settings:
        """What the configuration would say now, had nobody but this engine changed it: it keeps watched folders beside it."""
        latest = self._watches.latest
        return self._read if latest is None else msgspec.structs.replace(self._read, watch=latest)

    # --- the end -----------------------------------------------------------------------------------------------------------------

    def _conclude(self, engine: EngineThread) -> int:
        if engine.error is not None:
            tell(f"malbox-tui: {engine_breakdown(engine.error, self._options.folders, LOG_NAME)}")
            return EXIT_BROKEN
        if engine.left:
            tell(f"malbox-tui: {counted(len(engine.left), 'task', 'tasks')} could not be stopped; the next start recovers them.")
            return EXIT_BROKEN
        self._say("Stopped.")
        return EXIT_OK

    def _say(self, line: str) -> None:
        log.info("%s", line)
        tell(sentence(line))


def _status(overview: Overview) -> str:
    counts = overview.counts
    running = sum(count for state, count in counts.items() if state not in FINAL_STATES and state is not TaskState.PENDING)
    words = f"{counted(running, 'task', 'tasks')} at work, {counts.get(TaskState.PENDING, 0)} pending"
    stopping = f"Stopping ({overview.stopping}): " if overview.stopping is not None else ""
    return f"{stopping}{words}{f', paused: {overview.paused}' if overview.paused else ''}."
