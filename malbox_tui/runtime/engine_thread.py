"""The engine on an event loop of its own, in a thread of its own: a slow frame doesn't delay a task, a burst doesn't delay a key, and
leaving the console never cuts a clean-up.

The thread is no daemon: the process doesn't end before the engine has. Child processes are started on this thread alone, since they
die with the thread that started them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from malbox_tui.config.settings import Settings
from malbox_tui.engine.engine import Engine
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.overview import Overview
from malbox_tui.ports import Client
from malbox_tui.runtime.bridge import BridgedClient
from malbox_tui.runtime.patient_loop import PatientLoop, log_standstill
from malbox_tui.runtime.short_pauses import short_pauses

log = logging.getLogger(__name__)


BESIDE_S = 5.0
"""How long what runs beside an engine may take to end after it."""


class Beside(Protocol):
    """What lives on the engine's loop as long as the engine does, and uses its door. Its errors are its own."""

    async def run(self) -> None:
        """Until `close`, or the engine's end."""
        ...

    def reload(self, settings: Settings) -> None:
        """Go on with what can be taken over of these."""
        ...

    def close(self) -> None:
        """Come to an end. Called when the engine is told to stop, and when it has; a second call does nothing."""
        ...

    def in_overview(self, overview: Overview) -> Overview:
        """The same, with what is known here. Called in any thread."""
        ...


class EngineThread:
    """A running engine. `client` may be used from any event loop in any thread, until the engine has stopped."""

    def __init__(
        self, build: Callable[[], Engine], on_end: Callable[[], None], make_beside: Callable[[Engine], Beside] | None = None
    ) -> None:
        self._build = build
        self._on_end = on_end
        self._make_beside = make_beside
        self._beside: Beside | None = None
        self._engine: Engine | None = None
        self._loop = PatientLoop(log_standstill)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._live, name="malbox engine", daemon=False)
        self._bridge: BridgedClient | None = None
        self.error: BaseException | None = None
        """What ended the engine, if not `stop`."""
        self.left: list[int] = []
        """Ids of tasks that could not be stopped in time; the next start recovers them."""

    @property
    def client(self) -> Client:
        """The engine's door. Raises `EngineStopped` when it never became ready."""
        if self._bridge is None:
            raise EngineStopped
        return self._bridge

    def start(self) -> None:
        """Returns when the engine is ready. Raises what kept it from becoming so (any `MalboxError`)."""
        self._thread.start()
        self._ready.wait()
        if self.error is not None:
            self._thread.join()
            raise self.error

    def stop(self, mode: ShutdownMode, within_s: float | None = None) -> None:
        """Ask the engine to end; returns at once. A harder mode hardens an earlier one; safe from any thread and signal handler.

        A drain that takes longer than `within_s` gives back what is left.
        """
        try:
            self._loop.call_soon_threadsafe(self._stop, mode, within_s)
        except RuntimeError:
            log.debug("asked to stop after the end")

    def amend(self, change: Callable[[Overview], Overview]) -> None:
        """Have each overview that `client` gives pass through `change`, in the thread of who asks: it adds what is known outside."""
        assert self._bridge is not None
        self._bridge.amend(change)

    def reload(self, settings: Settings) -> None:
        """Have the engine go on with these (see `Engine.reload`); returns at once."""
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._reload, settings)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the engine's end; False if it still lives after `timeout_s` seconds."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _stop(self, mode: ShutdownMode, within_s: float | None) -> None:
        if self._beside is not None:
            self._beside.close()
        if self._engine is not None:
            self._engine.stop(mode, within_s)

    def _reload(self, settings: Settings) -> None:
        if self._engine is not None:
            self._engine.reload(settings)
        if self._beside is not None:
            self._beside.reload(settings)

    def _live(self) -> None:
        try:
            with short_pauses(), asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._run())
        except BaseException as error:
            self.error = error
            log.error("the engine ended with an error", exc_info=error)
        finally:
            if self._bridge is not None:
                self._bridge.close()
            self._on_end()
            self._ready.set()

    async def _run(self) -> None:
        self._engine = self._build()
        self._bridge = BridgedClient(self._engine, self._loop)
        if self._make_beside is None:
            self.left = await self._engine.run(self._ready.set)
        else:
            self._beside = self._make_beside(self._engine)
            self._bridge.amend(self._beside.in_overview)
            await self._run_both(self._engine, self._beside)

    async def _run_both(self, engine: Engine, beside: Beside) -> None:
        tracker = TaskTracker()

        def on_ready() -> None:
            tracker.spawn(beside.run(), name="beside the engine")
            self._ready.set()

        try:
            self.left = await engine.run(on_ready)
        finally:
            beside.close()
            if await tracker.wait(BESIDE_S):
                log.warning("what ran beside the engine is cut")
                tracker.cancel()
                await tracker.wait(BESIDE_S)
