"""Leaving the console: what is to become of what runs is asked, and the screen stays until the engine has ended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from textual.app import App

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.task import OWNED_STATES
from malbox_tui.tui.banner import waits_for
from malbox_tui.tui.feed import Feed
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.screens.dialogs import Choice, Question
from malbox_tui.tui.text import counted, plain


class Leaving:
    """Asks how to leave, and stops the engine in that way: `on_leave` is told."""

    def __init__(self, app: App[Any], feed: Feed, picture: LivePicture, on_leave: Callable[[ShutdownMode], None]) -> None:
        self._app = app
        self._feed = feed
        self._picture = picture
        self._on_leave = on_leave
        self.mode: ShutdownMode | None = None
        """How it was chosen to leave; None until then."""

    async def ask(self) -> None:
        """Leave; when something runs at this moment, ask what is to become of it."""
        with suppress(EngineStopped):
            await self._feed.refresh()
        if self.mode is not None:
            await self._ask_how("The engine is stopping. Stop it harder?")
        elif self._tasks_running():
            await self._ask_how("Leave the console?")
        else:
            self.leave(ShutdownMode.GIVE_BACK)

    def leave(self, mode: ShutdownMode) -> None:
        """Stop the engine; the console stays until it has ended."""
        self.mode = mode
        self._on_leave(mode)

    async def _ask_how(self, title: str) -> None:
        running = self._tasks_running()
        lines = [plain(f"{counted(running, 'task')} {'is' if running == 1 else 'are'} being worked on.")]
        overview = self._picture.overview
        if overview is not None and (named := waits_for(overview, self._feed.now())):
            lines.append(plain(f"To finish means to wait for {named}."))
        lines.append(plain("Waiting tasks are kept for the next start in any case."))
        choices = [
            Choice("Stay", None),
            Choice("Finish, then leave", ShutdownMode.DRAIN),
            Choice("Stop, keep for later", ShutdownMode.GIVE_BACK),
            Choice("Cancel them", ShutdownMode.CANCEL, harmful=True),
        ]

        def answered(mode: object) -> None:
            if isinstance(mode, ShutdownMode):
                self.leave(mode)

        for line in lines:
            line.no_wrap = False
        await self._app.push_screen(Question(title, lines, choices), answered)

    def _tasks_running(self) -> int:
        overview = self._picture.overview
        return 0 if overview is None else sum(overview.counts.get(state, 0) for state in OWNED_STATES)
