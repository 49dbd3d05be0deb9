"""`malbox-tui [PATH…]`: the console with the pool inside. How it starts, and how each of its ends becomes words and an exit code.

The app runs on the main thread, the engine in its own, and what serves it to others in a third. Whatever becomes of the app, the engine
is stopped here, waited for with a bound, and only then is said what is left.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from malbox_tui.cli.analyze import STOP_MARGIN_S, analyze
from malbox_tui.cli.attach import AttachedConsole
from malbox_tui.cli.background import go_on_in_background
from malbox_tui.cli.breakdown import engine_breakdown, first_cause
from malbox_tui.cli.log_file import log_failed_threads, log_to_file
from malbox_tui.cli.options import GlobalOptions
from malbox_tui.cli.output import tell, write_line
from malbox_tui.cli.paths import is_missing, nothing_there
from malbox_tui.cli.screen import STDERR_FILE, AppEnd, LastResort, close_screen, host_name, login_name, run_app, tell_of_breakdown
from malbox_tui.cli.side_door import SideDoor
from malbox_tui.cli.terminal import KeptTerminal, is_terminal, obstacle
from malbox_tui.cli.text import counted, sentence
from malbox_tui.cli.watchman import Watchman
from malbox_tui.cli.wishes import Wishes
from malbox_tui.cli.wishes_line import WishesLine
from malbox_tui.config.loading import Configuration, shown_path
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import DataFolderInUse, Disconnected, MalboxError
from malbox_tui.model.task import FINAL_STATES

if TYPE_CHECKING:
    from malbox_tui.runtime import EngineThread

log = logging.getLogger(__name__)

EXIT_OK = 0
EXIT_BROKEN = 1
EXIT_USAGE = 2


def make_command(
    usage: Callable[[], int], may_be_command: Callable[[str], bool], unknown: Callable[[str], int]
) -> Callable[..., int]:
    """The command for a command line that names none.

    `usage` answers one that says nothing, `unknown` a word that was meant for a command and is none; `may_be_command` says of a word
    whether it can have been.
    """

    def console(
        *paths: str,
        wishes: Wishes | None = None,
        options: GlobalOptions | None = None,
    ) -> int:
        """Open the console: the pool on one screen. Where stdout is no terminal: as `analyze`.

        Exit code 0: left by key; 1: it broke down; 2: it could not be opened; 128 and the signal's number: ended by a signal. In
        each case what is not final is kept for the next start.

        Parameters
        ----------
        paths
            Files, and folders with all that is in them, to begin with. One that is spelt like a command needs `./` before it.
        """
        if paths and may_be_command(paths[0]) and os.sep not in paths[0] and is_missing(paths[0]):
            return unknown(paths[0])
        if not sys.stdout.isatty():
            return analyze(*paths, wishes=wishes, options=options) if paths else usage()
        if problem := obstacle():
            return _refuse(f"{problem}. `malbox-tui analyze PATH` works without.")
        if paths and all(map(is_missing, paths)):
            return _refuse(nothing_there(paths))
        asked = wishes or Wishes()
        raw = tuple(map(os.fsencode, paths))
        asked.submission(), asked.choice()  # what can't be read is said before the screen opens
        return Console(raw, asked, options or GlobalOptions()).carry_out()

    return console


def _refuse(why: str) -> int:
    """Say why the console doesn't open. Stdout is a terminal: a person reads that one if stderr leads elsewhere."""
    line = f"malbox-tui: {sentence(why)}"
    tell(line)
    if not is_terminal(sys.__stderr__):
        write_line(line)
    return EXIT_USAGE


@dataclass(frozen=True, slots=True)
class Console:
    """One run of the command: an engine, the app on it, and the end of both."""

    paths: tuple[bytes, ...]
    wishes: Wishes
    options: GlobalOptions

    def carry_out(self) -> int:
        """Run to the end and return the exit code. The engine has ended when this returns or raises.

        Where another process serves an engine on the data folder, the console is opened on that one, which goes on. Raises what keeps
        the engine from starting (any `MalboxError`); the screen was not touched then.
        """
        try:
            return self._with_the_pool_inside()
        except DataFolderInUse as in_use:
            return self._attached(in_use)

    def _attached(self, in_use: DataFolderInUse) -> int:
        """The console on the engine that has the data folder. Raises `in_use` when that has no socket, or doesn't answer on it."""
        from malbox_tui.remote.client import SocketWay

        path = self.options.folders.control_socket
        if not path.is_socket():
            raise in_use
        holder = "another process" if in_use.pid is None else f"process {in_use.pid}"
        note = f"Attached to the engine of {holder}, which has this data folder; leaving stops nothing."
        console = AttachedConsole(self.options, self.options.command(), paths=self.paths, wishes=self.wishes, notes=(note,))
        try:
            return console.carry_out(SocketWay(str(path), shown_path(path)))
        except Disconnected:
            raise in_use from None

    def _with_the_pool_inside(self) -> int:
        from malbox_tui.runtime import start_engine

        folders = self.options.folders
        configuration = self.options.source.read()
        if configuration.faults:
            raise configuration.faults[0]
        settings = configuration.settings
        folders.create()
        log_to_file(folders, self.options.log_level.value)
        log_failed_threads()
        end_limit_s = STOP_MARGIN_S + 2 * settings.analysis.longest_grace_s
        with KeptTerminal() as terminal:
            last_resort = LastResort(terminal, "Ended before everything had; the next start recovers what was running.")
            drain_limit_s = settings.general.drain_timeout_s
            with Watchman(sys.stdin.fileno(), end_limit_s, last_resort, drain_limit_s=drain_limit_s) as watchman:
                source = self.options.source
                limits, book, watches = source.saved_limits(), source.saved_machines(), source.saved_watches()
                engine = start_engine(settings, folders, limits, book, watches=watches)
                door = SideDoor(engine, self.options, settings)
                watchman.guard(engine)
                end = AppEnd()
                try:
                    if watchman.signal is None:
                        end = self._show(engine, door, configuration, watchman)
                finally:
                    engine.stop(ShutdownMode.GIVE_BACK)
                    close_screen(terminal, end.error)
                    if not engine.join(end_limit_s):
                        last_resort(watchman.exit_code or EXIT_BROKEN)
                    door.close()
                return self._conclude(engine, watchman, end)

    def _show(self, engine: EngineThread, door: SideDoor, configuration: Configuration, watchman: Watchman) -> AppEnd:
        """The app, from its first to its last frame. What broke it is returned, so that the engine is ended in any case."""
        left_by_key = goes_on = False

        def leave(mode: ShutdownMode) -> None:
            nonlocal left_by_key
            left_by_key = True
            engine.stop(mode)

        def go_on() -> None:
            nonlocal goes_on
            goes_on = True

        try:
            from malbox_tui.runtime import PatientLoop, open_identifier, open_intake
            from malbox_tui.tui.console import Surroundings
            from malbox_tui.tui.stderr_guard import stderr_to

            opened = partial(open_intake, configuration.settings, self.options.folders)
            surroundings = Surroundings(
                client=engine.client,
                intake=opened(self.wishes.choice()),
                actor=login_name(),
                host=host_name(),
                on_leave=leave,
                on_background=go_on,
                on_shown=door.open,
                paths=self.paths,
                wishes=self.wishes.submission(),
                line=WishesLine(self.wishes, opened),
                open_identifier=partial(open_identifier, configuration.settings),
                notes=configuration.notes,
            )
            with stderr_to(self.options.folders.logs / STDERR_FILE), asyncio.Runner(loop_factory=PatientLoop) as runner:
                broken = runner.run(run_app(surroundings, watchman))
        except BaseException as error:  # whatever it is: the screen has to be left, the tasks given back, and the person told
            log.error("the console can't go on", exc_info=error)
            return AppEnd(error)
        return AppEnd(broken, left_by_key, goes_on)

    def _conclude(self, engine: EngineThread, watchman: Watchman, end: AppEnd) -> int:
        if end.error is not None and not watchman.terminal_lost:
            tell_of_breakdown(first_cause(end.error), self.options.folders.logs)
        if engine.error is not None:
            tell(f"malbox-tui: {engine_breakdown(engine.error, self.options.folders)}")
        in_order = end.error is None and engine.error is None
        if in_order and watchman.signal is None and not end.by_key:
            in_order = False
            tell("malbox-tui: The console ended though nobody had asked it to.")
        if in_order and end.goes_on and watchman.signal is None:
            tell(go_on_in_background(self.options))
            return EXIT_OK
        try:
            left = self._left_in_words(asyncio.run(self._count_left()))
            tell(f"{left[0].upper()}{left[1:]}" if watchman.signal is None else f"Ended by {watchman.signal.name}: {left}")
        except MalboxError as error:
            tell(f"malbox-tui: {sentence(str(error))}")
        if watchman.exit_code is not None:
            return watchman.exit_code
        return EXIT_OK if in_order else EXIT_BROKEN

    async def _count_left(self) -> int:
        from malbox_tui.runtime import open_reader

        async with open_reader(self.options.folders) as reader:
            counts = await reader.counts()
        return sum(count for state, count in counts.items() if state not in FINAL_STATES)

    def _left_in_words(self, left: int) -> str:
        if not left:
            return "no task is left."
        command = self.options.command()
        return f"{counted(left, 'task is', 'tasks are')} kept; `{command}` goes on with {'it' if left == 1 else 'them'}."
