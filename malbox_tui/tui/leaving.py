"""Leaving the console: what is to become of what runs is asked, and the screen stays until the engine has ended.

An engine elsewhere goes on: then nothing is asked, and the console is gone at once. One inside may go on in the background: it is given
back to a process of its own.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from rich.text import Text
from textual.app import App

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.task import OWNED_STATES
from malbox_tui.tui.banner import waits_for
from malbox_tui.tui.console import Surroundings
from malbox_tui.tui.feed import Feed
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.screens.dialogs import Choice, Question
from malbox_tui.tui.text import counted, plain

IN_BACKGROUND = "in the background"
"""An answer beside the modes of stopping."""


class Leaving:
    """Asks how to leave, and stops the engine in that way: whoever opened the console is told."""

    def __init__(self, app: App[Any], feed: Feed, picture: LivePicture, around: Surroundings) -> None:
        self._app = app
        self._feed = feed
        self._picture = picture
        self._around = around
        self.mode: ShutdownMode | None = None
        """How it was chosen to leave; None until then."""

    async def ask(self) -> None:
        """Leave; when something runs at this moment, ask what is to become of it."""
        if self._around.attachment is not None:
            self.leave(ShutdownMode.GIVE_BACK)
            return
        with suppress(EngineStopped):
            await self._feed.refresh()
        if self.mode is not None:
            await self._ask_how("The engine is stopping. Stop it harder?")
        elif self._tasks_running() or self._others():
            await self._ask_how("Leave the console?")
        else:
            self.leave(ShutdownMode.GIVE_BACK)

    def leave(self, mode: ShutdownMode) -> None:
        """Stop the engine; the console stays until it has ended. One elsewhere is left as it is."""
        self.mode = mode
        self._around.on_leave(mode)
        if self._around.attachment is not None:
            self._app.exit(mode)

    @property
    def can_go_on(self) -> bool:
        """Whether the pool can be left running in the background."""
        return self._around.on_background is not None and self.mode is None

    async def ask_to_go_on(self) -> None:
        """Ask whether the pool is to go on in the background."""
        with suppress(EngineStopped):
            await self._feed.refresh()
        running = self._tasks_running()
        lines = [plain("The pool goes on without a screen: `malbox-tui` attaches to it again.")]
        lines.append(
            plain(f"{counted(running, 'task')} at work {'begins' if running == 1 else 'begin'} anew there." if running else "")
        )
        choices = [Choice("Stay", False), Choice("Leave it running in the background", True)]

        def answered(yes: object) -> None:
            if yes:
                self.go_on()

        await self._app.push_screen(Question("Leave the console, and let the pool go on?", _wrapping(lines), choices), answered)

    def go_on(self) -> None:
        """Leave, and let the pool go on in the background."""
        assert self._around.on_background is not None
        self._around.on_background()
        self.leave(ShutdownMode.GIVE_BACK)

    async def _ask_how(self, title: str) -> None:
        running = self._tasks_running()
        lines = [
            plain(
                f"{counted(running, 'task')} {'is' if running == 1 else 'are'} being worked on." if running else "Nothing runs."
            )
        ]
        if others := self._others():
            one = others == 1
            attached = f"{counted(others, 'other console')} {'is' if one else 'are'} attached"
            lines.append(plain(f"{attached}; only in the background does the engine go on for {'it' if one else 'them'}."))
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
        if self.can_go_on:
            lines.append(plain("In the background, what runs begins anew, and the pool goes on without a screen."))
            choices.insert(3, Choice("Leave the pool running in the background", IN_BACKGROUND))

        def answered(how: object) -> None:
            if isinstance(how, ShutdownMode):
                self.leave(how)
            elif how == IN_BACKGROUND and self.can_go_on:
                self.go_on()

        await self._app.push_screen(Question(title, _wrapping(lines), choices), answered)

    def _others(self) -> int:
        """How many consoles are attached to the engine inside."""
        overview = self._picture.overview
        return 0 if overview is None else max(0, len(overview.consoles) - 1)

    def _tasks_running(self) -> int:
        overview = self._picture.overview
        return 0 if overview is None else sum(overview.counts.get(state, 0) for state in OWNED_STATES)


def _wrapping(lines: list[Text]) -> list[Text]:
    for line in lines:
        line.no_wrap = False
    return [line for line in lines if line.plain]
