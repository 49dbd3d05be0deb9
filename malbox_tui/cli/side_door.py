"""Others on the engine of a console that has it inside: it is served in a thread of its own, beside screen and engine."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress

import msgspec

from malbox_tui.cli.breakdown import first_cause
from malbox_tui.cli.options import GlobalOptions
from malbox_tui.cli.screen import login_name
from malbox_tui.config.settings import Settings
from malbox_tui.model.errors import EngineStopped, MalboxError
from malbox_tui.model.overview import ConsoleView, Overview
from malbox_tui.remote.presence import Presence
from malbox_tui.runtime import EngineThread, SystemClock, run_patiently

log = logging.getLogger(__name__)

CLOSING_S = 8.0
"""How long closing it may take, whoever reads slowly."""
INSIDE = "the console with the pool inside"
"""Where a console is that has the engine in its own process."""


class SideDoor:
    """Serves the engine of a console that has it inside, in a thread of its own, from `open` until the engine has ended.

    Without it the console works all the same; what keeps it shut is among the engine's troubles.
    """

    def __init__(self, engine: EngineThread, options: GlobalOptions, settings: Settings) -> None:
        self._engine = engine
        self._options = options
        self._settings = settings
        self._presence = Presence()
        self._trouble = ""
        self._thread = threading.Thread(target=self._live, name="malbox door", daemon=True)

    def open(self) -> None:
        """Returns at once."""
        self._engine.amend(self._amended)
        self._thread.start()

    def close(self) -> None:
        """Wait until it is shut, with a bound. The engine has ended."""
        if self._thread.is_alive():
            self._thread.join(CLOSING_S)

    def _live(self) -> None:
        try:
            run_patiently(self._serve())
        except Exception as error:
            cause = first_cause(error)
            log.warning("nobody can attach to this console's engine", exc_info=None if isinstance(cause, MalboxError) else cause)
            self._trouble = f"Nobody else can attach to this engine. {cause}"

    async def _serve(self) -> None:
        # What serves takes long to load, and the screen comes first.
        from malbox_tui.cli.front_door import open_door

        here = ConsoleView(actor=login_name(), origin=INSIDE, since=SystemClock().now())
        with self._presence.following(INSIDE, here), suppress(EngineStopped):
            async with open_door(self._engine.client, self._options, lambda: self._settings, log.info, self._presence):
                await asyncio.to_thread(self._engine.join)

    def _amended(self, overview: Overview) -> Overview:
        """The same, with those who are attached, and what keeps others from it."""
        seen = self._presence.in_overview(overview)
        return msgspec.structs.replace(seen, troubles=(*seen.troubles, self._trouble)) if self._trouble else seen
