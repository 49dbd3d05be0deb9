"""The console's app on a terminal, whatever engine is behind it: from its first to its last frame, and how its end becomes words."""

from __future__ import annotations

import asyncio
import getpass
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from malbox_tui.cli.crash_report import write_crash_report
from malbox_tui.cli.output import tell
from malbox_tui.cli.terminal import KeptTerminal
from malbox_tui.cli.text import sentence
from malbox_tui.cli.watchman import Watchman
from malbox_tui.model.commands import ShutdownMode

if TYPE_CHECKING:
    from malbox_tui.tui.app import MalboxApp
    from malbox_tui.tui.console import Surroundings

log = logging.getLogger(__name__)

STDERR_FILE = "console-stderr.log"
"""In the log folder: what other code wrote to stderr while the console was up."""


@dataclass(frozen=True, slots=True)
class AppEnd:
    """How the app ended: what broke it, whether a person had chosen to leave, and whether the pool is to go on without it."""

    error: BaseException | None = None
    by_key: bool = False
    goes_on: bool = False


async def run_app(surroundings: Surroundings, watchman: Watchman) -> BaseException | None:
    """The app, from its first to its last frame; returns what broke it."""
    from malbox_tui.tui.app import MalboxApp

    app = MalboxApp(surroundings)
    await _run(app, watchman)
    return app.breakdown


async def _run(app: MalboxApp, watchman: Watchman) -> None:
    loop = asyncio.get_running_loop()

    def on_ask(mode: ShutdownMode) -> None:
        with suppress(RuntimeError):  # the loop has closed: the app is gone
            loop.call_soon_threadsafe(app.leave, mode)

    watchman.tell(on_ask)
    try:
        await app.run_async()
    finally:
        watchman.tell(None)


def close_screen(terminal: KeptTerminal, broken: BaseException | None) -> None:
    """Textual leaves the screen itself, unless it broke down where it can't."""
    if broken is None:
        terminal.restore()
    else:
        terminal.leave_screen()


def tell_of_breakdown(error: BaseException, logs: Path) -> None:
    """Say that the console broke down; the details go to a file in `logs`."""
    from malbox_tui.runtime import SystemClock

    what = f"malbox-tui: The console ended with an unexpected {type(error).__name__}"
    try:
        path = write_crash_report(error, logs, SystemClock().now())
    except OSError as failure:
        tell(f"{what}, and the details can't be written: {sentence(str(failure))}.")
    else:
        tell(f"{what}; {sentence(str(path))} has the details.")


class LastResort:
    """Ends the process at once, with the terminal as it was; `words` say what becomes of the work, `before` is called first."""

    def __init__(self, terminal: KeptTerminal, words: str, before: Callable[[], None] | None = None) -> None:
        self._terminal = terminal
        self._words = words
        self._before = before

    def __call__(self, code: int) -> NoReturn:
        self._terminal.leave_screen()
        if self._before is not None:
            self._before()
        self._terminal.say(f"malbox-tui: {self._words}\n")
        os._exit(code)


def login_name() -> str:
    """Who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def host_name() -> str:
    """This host's name, without its domain."""
    return socket.gethostname().partition(".")[0]
