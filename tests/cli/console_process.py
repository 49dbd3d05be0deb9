"""The command, with something in it that a test needs and the product has no switch for.

`slow FOLDER ARGUMENTS…`: with the plugins of FOLDER in place of the built-in ones.
`broken METHOD ARGUMENTS…`: the engine's door raises when METHOD is called.
`deaf FILE ARGUMENTS…`: asked for help, the app makes FILE and hangs on its own thread for good.
`leaving WORD ARGUMENTS…`: asked for help, the app ends.
`fatal WORD ARGUMENTS…`: asked for help, the app raises what is no `Exception`.
`thread WORD ARGUMENTS…`: asked for help, a thread of the app's raises WORD.
`dying STORE|OTHER ARGUMENTS…`: the console asked for help, a service of the engine raises an error that the product knows, or another.
"""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from malbox_tui.cli.app import main
from malbox_tui.engine.leases import LeaseKeeper
from malbox_tui.model.errors import StoreError
from malbox_tui.ports import Client
from malbox_tui.runtime import assembly
from malbox_tui.runtime.engine_thread import EngineThread
from malbox_tui.tui.app import MalboxApp


def slow(folder: str) -> None:
    assembly.build_engine = functools.partial(assembly.build_engine, plugin_folder=Path(folder))  # type: ignore[assignment]


class BrokenDoor:
    """A client of which one method raises, with a secret among its local variables."""

    def __init__(self, inner: Client, method: str) -> None:
        self._inner = inner
        self._method = method

    def __getattr__(self, name: str) -> Any:
        return self._raise if name == self._method else getattr(self._inner, name)

    async def _raise(self, *_: object) -> None:
        password = "".join(("hunter", "2"))
        raise LookupError(f"no such thing \x1b[31m, {len(password)} letters")


def broken(method: str) -> None:
    door = EngineThread.client.fget
    assert door is not None
    EngineThread.client = property(lambda thread: BrokenDoor(door(thread), method))  # type: ignore[assignment]


def deaf(file: str) -> None:
    async def hang(app: MalboxApp) -> None:
        Path(file).touch()
        threading.Event().wait()

    MalboxApp.action_help = hang  # type: ignore[method-assign]


def leaving(_: str) -> None:
    MalboxApp.action_help = MalboxApp.exit  # type: ignore[method-assign]


class Fatal(BaseException):
    pass


def fatal(_: str) -> None:
    async def end(app: MalboxApp) -> None:
        raise Fatal

    MalboxApp.action_help = end  # type: ignore[method-assign]


def thread(word: str) -> None:
    def fail() -> None:
        raise LookupError(word)

    async def start(app: MalboxApp) -> None:
        threading.Thread(target=fail, name="loose end").start()

    MalboxApp.action_help = start  # type: ignore[method-assign]


def dying(kind: str) -> None:
    async def die(keeper: LeaseKeeper) -> None:
        loop, asked = asyncio.get_running_loop(), asyncio.Event()

        async def ask(app: MalboxApp) -> None:
            loop.call_soon_threadsafe(asked.set)

        MalboxApp.action_help = ask  # type: ignore[method-assign]
        await asked.wait()
        raise StoreError("The store is gone.") if kind == "STORE" else LookupError("no such lease")

    LeaseKeeper.run = die  # type: ignore[method-assign]


KINDS = {"slow": slow, "broken": broken, "deaf": deaf, "leaving": leaving, "fatal": fatal, "thread": thread, "dying": dying}

if __name__ == "__main__":
    KINDS[sys.argv[1]](sys.argv[2])
    sys.exit(main(sys.argv[3:]))
