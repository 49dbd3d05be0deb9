"""Who answers a command: the engine that runs on the data folder, or, when none does, one at rest that this process starts for it.

`running_engine` only asks; `some_engine` starts one. Looking goes through the store's reader, beside whatever runs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from malbox_tui.cli.log_file import log_to_file
from malbox_tui.cli.options import GlobalOptions
from malbox_tui.cli.output import tell
from malbox_tui.cli.text import sentence
from malbox_tui.config.folders import DataFolders
from malbox_tui.config.loading import shown_path
from malbox_tui.config.settings import Settings
from malbox_tui.model.commands import Action, Command, CommandOutcome, ShutdownMode
from malbox_tui.model.errors import Disconnected, MalboxError, StoreError
from malbox_tui.model.sample import escape
from malbox_tui.ports import Client

if TYPE_CHECKING:
    from malbox_tui.remote.client import RemoteClient
    from malbox_tui.runtime import TaskReader

END_LIMIT_S = 30.0
"""How long an engine at rest may take to end."""
_NOBODY = (FileNotFoundError, NotADirectoryError, ConnectionRefusedError)
"""What opening the socket says when no engine is served there."""


class NoEngine(MalboxError):
    """Something was asked that only a running engine can do, and none runs."""

    def __init__(self, options: GlobalOptions) -> None:
        place = shown_path(options.folders.root)
        super().__init__(f"No engine is served in {place}; `{options.command('serve')}` starts one.")


@dataclass(frozen=True, slots=True)
class Door:
    """An engine's `client`; `is_running` says that it works on tasks."""

    client: Client
    is_running: bool

    async def do(self, action: Action) -> CommandOutcome:
        """Carry an action out, once, in the name of who runs this process."""
        from malbox_tui.runtime import login_name

        return await self.client.do(Command(action=action, actor=login_name(), key=uuid4().hex, origin=own_origin()))


class QuietTeller:
    """Says once, on stderr, that the engine at `place` is waited for."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._is_hushed = False

    def __call__(self, process: int | None) -> None:
        """`process` is the one that should answer; None: it can't be told."""
        if not self._is_hushed:
            self.hush()
            whom = "the engine" if process is None else f"process {process}, the engine"
            tell(f"Waiting for {whom} at {sentence(self._place)}: it doesn't answer.")

    def hush(self) -> None:
        """Say nothing any more."""
        self._is_hushed = True


def own_origin() -> str:
    """Where this process's orders come from."""
    return f"process {os.getpid()}"


@asynccontextmanager
async def running_engine(options: GlobalOptions) -> AsyncIterator[RemoteClient | None]:
    """The engine that is served on the data folder; None when none is.

    Raises `Disconnected` when there is one that can't be asked, and `EngineMismatch`.
    """
    from malbox_tui.remote.client import RemoteClient, SocketWay
    from malbox_tui.runtime import SystemClock

    path = options.folders.control_socket
    way = SocketWay(str(path), shown_path(path))
    client = RemoteClient(way, SystemClock(), on_quiet=QuietTeller(way.shown))
    try:
        yield client if await _answers(client) else None
    finally:
        client.close()


async def _answers(client: RemoteClient) -> bool:
    try:
        await client.health()
    except Disconnected as error:
        if _comes_of(error, _NOBODY):
            return False
        raise Disconnected(error.where, error.problem, remedy=remedy_for(error)) from error
    return True


def remedy_for(error: Disconnected, start: str = "") -> str:
    """What to do about an engine that could not be asked; `start` where there is none. Empty: nothing is known that helps."""
    if _comes_of(error, (TimeoutError,)):
        return "Look what holds it up, or try again later."
    return start if _comes_of(error, _NOBODY) else ""


def _comes_of(error: BaseException | None, kinds: tuple[type[BaseException], ...]) -> bool:
    return error is not None and (isinstance(error, kinds) or _comes_of(error.__cause__, kinds))


@asynccontextmanager
async def needed_engine(options: GlobalOptions) -> AsyncIterator[Door]:
    """As `running_engine`; raises `NoEngine` when none is served."""
    async with running_engine(options) as client:
        if client is None:
            raise NoEngine(options)
        yield Door(client, is_running=True)


@asynccontextmanager
async def some_engine(options: GlobalOptions, settings: Settings) -> AsyncIterator[Door]:
    """The engine that is served on the data folder, or one at rest, which has ended when this is left.

    Raises `DataFolderInUse` when another process has the folder and serves no socket, and `StoreError`.
    """
    async with running_engine(options) as client:
        if client is not None:
            yield Door(client, is_running=True)
            return
        async with _at_rest(options, settings) as resting:
            yield resting


@asynccontextmanager
async def _at_rest(options: GlobalOptions, settings: Settings) -> AsyncIterator[Door]:
    from malbox_tui.runtime import start_engine_at_rest

    options.folders.create()
    log_to_file(options.folders, options.log_level.value)
    engine = await asyncio.to_thread(start_engine_at_rest, settings, options.folders)
    try:
        yield Door(engine.client, is_running=False)
    finally:
        engine.stop(ShutdownMode.GIVE_BACK)
        await asyncio.to_thread(engine.join, END_LIMIT_S)
    if engine.error is not None:
        raise StoreError(f"Not everything was put away: {engine.error}")


def usable_settings(options: GlobalOptions) -> Settings:
    """What the configuration says. Raises its first fault."""
    configuration = options.source.read()
    if configuration.faults:
        raise configuration.faults[0]
    return configuration.settings


def open_store(folders: DataFolders) -> AbstractAsyncContextManager[TaskReader]:
    """A look into the store, also beside a running engine. Raises `StoreError` when there is none, or it is of an older version."""
    from malbox_tui.runtime import open_reader

    check_store(folders)
    return open_reader(folders)


def check_store(folders: DataFolders) -> None:
    """Raises `StoreError` when there is no store yet."""
    where = escape(bytes(folders.root))
    try:
        found = folders.store.exists()
    except OSError as exc:
        raise StoreError(f"The data folder {where} can't be looked into: {exc.strerror or exc}.") from exc
    if not found:
        raise StoreError(f"There is no store in {where} yet. `malbox-tui analyze PATH` begins one.")


def wall_time() -> float:
    """Now, in seconds since the epoch."""
    from malbox_tui.runtime import SystemClock

    return SystemClock().now()
