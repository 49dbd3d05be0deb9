"""`malbox-tui attach [TARGET]`: the console on an engine that runs elsewhere. Leaving it stops nothing."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

from cyclopts import Parameter

from malbox_tui.cli.breakdown import first_cause
from malbox_tui.cli.engine_door import QuietTeller, remedy_for
from malbox_tui.cli.log_file import log_failed_threads, log_to_file
from malbox_tui.cli.options import FLAG, GlobalOptions
from malbox_tui.cli.output import tell
from malbox_tui.cli.screen import (
    STDERR_FILE,
    AppEnd,
    LastResort,
    close_screen,
    host_name,
    login_name,
    run_app,
    tell_of_breakdown,
)
from malbox_tui.cli.terminal import KeptTerminal, obstacle
from malbox_tui.cli.text import sentence
from malbox_tui.cli.watchman import Watchman
from malbox_tui.cli.wishes import Wishes
from malbox_tui.cli.wishes_line import WishesLine
from malbox_tui.config.folders import DataFolders
from malbox_tui.config.loading import shown_path
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import Disconnected, MalboxError

if TYPE_CHECKING:
    from malbox_tui.remote.client import RemoteClient, Way

log = logging.getLogger(__name__)

EXIT_OK, EXIT_BROKEN, EXIT_USAGE = 0, 1, 2
LOG_FILE = "attached-console.log"
NO_LIMIT_BYTES = 2**62
"""How large a sample may be is the engine's to say."""


def attach(
    target: str | None = None,
    *,
    read_only: Annotated[bool, FLAG] = False,
    remote_program: Annotated[str, Parameter(show_default=False)] = "malbox-tui",
    options: GlobalOptions | None = None,
) -> int:
    """Open the console on an engine that `malbox-tui serve` runs. Leaving it stops nothing.

    Exit code 0: left by key; 1: the console broke down; 2: there is nothing to attach to, or the console can't be opened here; 128 and
    the signal's number: ended by a signal.

    Parameters
    ----------
    target
        A socket, a data folder, or `ssh://[user@]host[:port][/data/folder]`. Without one: the engine of the own data folder. Through
        ssh, keys, agents, jump hosts and ~/.ssh/config work as always.
    read_only
        Only look: the engine refuses this console whatever changes something.
    remote_program
        How `malbox-tui` is called on the other host, for `ssh://`; a path where its shell doesn't find it.
    """
    if not sys.stdout.isatty():
        tell("malbox-tui: The console needs a terminal on stdout.")
        return EXIT_USAGE
    if problem := obstacle():
        tell(f"malbox-tui: {sentence(problem)}.")
        return EXIT_USAGE
    chosen = options or GlobalOptions()
    if target is not None and target.startswith("ssh:"):
        return _attach_by_ssh(
            target, remote_program, AttachedConsole(chosen, _again(chosen, target, read_only), read_only=read_only)
        )
    path = _socket_of(target, chosen)
    from malbox_tui.remote.client import SocketWay

    again = _again(chosen, target, read_only)
    return AttachedConsole(chosen, again, read_only=read_only).carry_out(SocketWay(str(path), shown_path(path)))


def _socket_of(target: str | None, options: GlobalOptions) -> Path:
    if target is None:
        return options.folders.control_socket
    path = Path(target)
    return DataFolders.under(path).control_socket if path.is_dir() else path.absolute()


def _attach_by_ssh(target: str, program: str, console: AttachedConsole) -> int:
    from malbox_tui.remote.ssh_target import SshTarget
    from malbox_tui.remote.tunnel import Tunnel
    from malbox_tui.remote.wire import ConnectionLost

    there = SshTarget.parse(target)
    tunnel = Tunnel(there, program)
    with ExitStack() as at_the_end:
        at_the_end.callback(tunnel.close)
        try:
            found = tunnel.open()
        except ConnectionLost as lost:
            raise Disconnected(there.shown, str(lost), remedy=_start_it(f"on {there.shown}")) from lost
        place = f"{found.user}@{found.host}" if found.user and found.host else there.shown
        # The last resort ends the process without unwinding: ssh is ended there too.
        return console.carry_out(tunnel, place, tunnel.close)


def _again(options: GlobalOptions, target: str | None, read_only: bool) -> str:
    words = [
        options.command("attach"),
        *(["--read-only"] if read_only else []),
        *([] if target is None else [shlex.quote(target)]),
    ]
    return sentence(" ".join(words))


def _start_it(where: str) -> str:
    return f"`malbox-tui serve` {where} starts an engine."


class _Door:
    """What a signal closes: the console alone."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def stop(self, mode: ShutdownMode) -> None:
        """See `Stoppable`."""
        self._asked.set()

    def join(self, timeout_s: float | None = None) -> bool:
        """See `Stoppable`: it is closed as soon as that is asked."""
        return self._asked.wait(timeout_s)


@dataclass(frozen=True, slots=True)
class AttachedConsole:
    """One console on an engine elsewhere. `again` is the command that opens it again; `paths` are submitted at the start, `notes` told
    of."""

    options: GlobalOptions
    again: str
    read_only: bool = False
    paths: tuple[bytes, ...] = ()
    wishes: Wishes = field(default_factory=Wishes)
    notes: tuple[str, ...] = ()

    def carry_out(self, way: Way, place: str | None = None, at_the_last: Callable[[], None] | None = None) -> int:
        """Run to the end and return the exit code. Raises `Disconnected`, `EngineMismatch` when it can't be opened on that engine.

        `at_the_last` closes the way; it is called at the end, also when the process has to end at once.
        """
        logs = self._prepare_logs()
        with KeptTerminal() as terminal, asyncio.Runner() as runner:
            quiet = QuietTeller(way.shown)
            client = self._client(way, place, quiet)
            try:
                notes = (*self.notes, *runner.run(_hello(client, way.shown)))
                quiet.hush()  # the screen tells of silence from here on
                last_resort = LastResort(terminal, "The console did not close in time; the engine goes on.", at_the_last)
                with Watchman(sys.stdin.fileno(), 0.0, last_resort) as watchman:
                    watchman.guard(_Door())
                    end = AppEnd()
                    try:
                        end = self._show(client, notes, watchman, runner, logs)
                    finally:
                        close_screen(terminal, end.error)
                    return self._conclude(client, watchman, end, logs)
            finally:
                client.close()
                if at_the_last is not None:
                    at_the_last()  # while the loop's threads still run: one may be opening the way again

    def _client(self, way: Way, place: str | None, quiet: QuietTeller) -> RemoteClient:
        from malbox_tui.remote.client import RemoteClient, Visitor
        from malbox_tui.runtime import SystemClock

        here = f"{login_name()}@{host_name()}"
        visitor = Visitor(console=uuid4().hex, origin=here, read_only=self.read_only)
        # The process at the other end of the socket may be ssh: it isn't named.
        return RemoteClient(way, SystemClock(), visitor, stays=True, place=place or here, on_quiet=lambda _: quiet(None))

    def _show(
        self, client: RemoteClient, notes: tuple[str, ...], watchman: Watchman, runner: asyncio.Runner, logs: Path | None
    ) -> AppEnd:
        left_by_key = False

        def leave(mode: ShutdownMode) -> None:
            nonlocal left_by_key
            left_by_key = True

        try:
            from malbox_tui.config.settings import IntakeSettings, Settings
            from malbox_tui.runtime import open_identifier, open_intake
            from malbox_tui.tui.console import Surroundings
            from malbox_tui.tui.stderr_guard import stderr_to

            settings = Settings(intake=IntakeSettings(max_sample_bytes=NO_LIMIT_BYTES))
            opened = partial(open_intake, settings, self.options.folders)
            surroundings = Surroundings(
                client=client,
                intake=opened(self.wishes.choice()),
                actor=login_name(),
                host=host_name(),
                on_leave=leave,
                attachment=client,
                paths=self.paths,
                wishes=self.wishes.submission(),
                line=WishesLine(self.wishes, opened),
                open_identifier=partial(open_identifier, settings),
                notes=notes,
            )
            with stderr_to(Path(os.devnull) if logs is None else logs / STDERR_FILE):
                broken = runner.run(run_app(surroundings, watchman))
        except BaseException as error:  # whatever it is: the screen has to be left, and the person told
            log.error("the console can't go on", exc_info=error)
            return AppEnd(error)
        return AppEnd(broken, left_by_key)

    def _conclude(self, client: RemoteClient, watchman: Watchman, end: AppEnd, logs: Path | None) -> int:
        if end.error is not None and not watchman.terminal_lost:
            tell_of_breakdown(first_cause(end.error), logs or Path(os.devnull).parent)
        if watchman.terminal_lost:
            return watchman.exit_code or EXIT_BROKEN
        ended = "" if watchman.signal is None else f"Ended by {watchman.signal.name}: "
        if client.away is None:
            tell(f"{ended}{'T' if not ended else 't'}he engine goes on; `{self.again}` attaches again.")
        else:
            tell(f"{ended}{'N' if not ended else 'n'}ot connected any more: {sentence(client.away.problem)}.")
        if watchman.exit_code is not None:
            return watchman.exit_code
        return EXIT_OK if end.error is None and end.by_key else EXIT_BROKEN

    def _prepare_logs(self) -> Path | None:
        """Where this console logs; None where it can't: that keeps nobody from looking."""
        logs = self.options.folders.logs
        with suppress(MalboxError, OSError):
            logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            log_to_file(self.options.folders, self.options.log_level.value, LOG_FILE)
            log_failed_threads()
            return logs
        logging.disable()
        return None


async def _hello(client: RemoteClient, where: str) -> tuple[str, ...]:
    """What there is to say about the engine. Raises `Disconnected`, `EngineMismatch`."""
    try:
        health = await client.health()
    except Disconnected as error:
        raise Disconnected(where, error.problem, remedy=remedy_for(error, _start_it("there"))) from error
    ours = version("malbox-tui")
    if health.version == ours:
        return ()
    return (
        f"The engine is malbox-tui {health.version}, this console {ours}: they understand each other; upgrade the older one.",
    )
