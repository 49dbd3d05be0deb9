"""Follows the engine and draws what came of it: changes a few times a second, clocks once.

The connection to an engine elsewhere may be lost: then everything stays as it was seen last, and all is asked for again when it is
back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from textual.app import App

from malbox_tui.model.errors import Disconnected, EngineStopped, MalboxError
from malbox_tui.tui.access import Access
from malbox_tui.tui.feed import SHOWN_PER_SECOND, Changes, Feed
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.notices import say
from malbox_tui.tui.screens.dashboard import Dashboard
from malbox_tui.tui.screens.intakes import AccountScreen, IntakesScreen
from malbox_tui.tui.screens.machine import MachineScreen
from malbox_tui.tui.screens.sample import SampleScreen
from malbox_tui.tui.screens.task import TaskScreen
from malbox_tui.tui.screens.watches import WatchesScreen
from malbox_tui.tui.widgets.away_bar import show_on_pages

LIVE_SCREENS = (TaskScreen, SampleScreen, MachineScreen, IntakesScreen, AccountScreen, WatchesScreen)
"""Those that are drawn anew when something happened."""
FRAMES_TO_RETRY = 2 * SHOWN_PER_SECOND
"""So many pass before an engine that couldn't be asked for anything at all is asked again."""
FRAMES_TO_LOOK = 5 * SHOWN_PER_SECOND
"""So many pass before an engine elsewhere is asked for an overview though nothing happened."""


class Showing:
    """Brings what `feed` knows to the dashboard, and to the screen of a task or a machine when that is shown."""

    def __init__(self, app: App[Any], feed: Feed, dashboard: Dashboard, access: Access, moment: Callable[[], Moment]) -> None:
        self._app = app
        self._feed = feed
        self._dashboard = dashboard
        self._access = access
        self._moment = moment
        self._one_at_a_time = asyncio.Lock()
        self._frames = 0
        self._retry = asyncio.Event()
        self._access_was: object = None

    async def follow(self) -> None:
        """Returns when the engine has stopped."""
        while not self._feed.ended:
            try:
                await self._feed.run(self.show_changes)
            except EngineStopped:
                self._feed.ended = True
            except MalboxError as error:
                if not self._access.is_attached:
                    raise
                self._tell(error)
                self._retry.clear()
                await self._retry.wait()

    async def show_frame(self) -> None:
        """Changes, and each second the clocks, both in one paint."""
        self._frames += 1
        self._notice()
        if self._feed.take_other_engine():
            await self._close_what_is_open()
        if self._frames % FRAMES_TO_LOOK == 0:
            self._feed.changes.anything = True  # who comes and goes is no event
        await self.show_changes()
        if self._frames % SHOWN_PER_SECOND == 0:
            await self._learn()
            self.show_time()
        if self._frames % FRAMES_TO_RETRY == 0:
            self._retry.set()

    async def _close_what_is_open(self) -> None:
        """Questions and pages are about tasks of an engine that is gone; an answer would hit those that have their numbers now."""
        while self._dashboard in self._app.screen_stack and self._app.screen is not self._dashboard:
            await self._app.pop_screen()

    async def show_changes(self) -> None:
        """Draw what changed, unless that is being done already: a slow engine is not asked twice."""
        if not self._one_at_a_time.locked():
            await self._show()

    async def show_everything(self) -> None:
        """Ask for everything from now on and draw it; returns when it is drawn."""
        self._feed.changes = Changes(anything=True, tasks=True)
        await self._show()

    async def _show(self) -> None:
        async with self._one_at_a_time:
            if not self._feed.has_begun or self._feed.ended or self._access.is_away:
                return
            changes = self._feed.take_changes()
            if not changes.anything:
                return
            try:
                await self._feed.refresh()
                await self._dashboard.show(changes)
                if isinstance(self._app.screen, LIVE_SCREENS):
                    await self._app.screen.reread()
            except EngineStopped:
                self._feed.ended = True
            except MalboxError as error:
                self._feed.changes = Changes(anything=True, tasks=True)
                self._tell(error)

    def show_time(self) -> None:
        """Draw what moves with time alone."""
        show_on_pages(self._app, self._dashboard, self._access.notice, self._moment())
        if not self._feed.has_begun:
            self._dashboard.header.changed()
            self._dashboard.banner.changed()
            return
        self._dashboard.tick()
        if isinstance(self._app.screen, LIVE_SCREENS):
            self._app.screen.tick()

    async def _learn(self) -> None:
        if self._access.is_away:
            return
        try:
            await self._feed.learn()
        except EngineStopped:
            return
        except MalboxError as error:
            self._tell(error)

    def _tell(self, error: MalboxError) -> None:
        """What can't be read; a lost connection has words of its own."""
        if not isinstance(error, Disconnected):
            self._dashboard.banner.problem = str(error)

    def _notice(self) -> None:
        """The connection, an engine that was started again, and the keys that work now."""
        self._feed.look_at_the_way()
        for sentence in self._feed.take_sentences():
            say(self._app, sentence)
        access = (self._access.is_away, self._access.is_read_only)
        if access != self._access_was:
            self._access_was = access
            self._app.refresh_bindings()
            self.show_time()
