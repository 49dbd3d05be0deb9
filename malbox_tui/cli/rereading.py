"""The configuration read again while an engine runs: within a time limit, and never taken for empty because its file is gone."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

from malbox_tui.config.loading import ConfigSource, Configuration
from malbox_tui.config.settings import Settings
from malbox_tui.model.errors import ConfigError

LIMIT_S = 10.0
"""A file that can't be read to its end in this time lies on a disk that hangs."""


async def read_again(source: ConfigSource, *, had_file: bool, limit_s: float = LIMIT_S) -> Configuration:
    """What `source` says now. `had_file`: there was a file when it was read before; that it is gone is a fault then.

    A thread of its own reads, which the end of the process doesn't wait for: one that hangs holds up nothing.
    """
    answer: Future[Configuration] = Future()
    threading.Thread(target=_read, args=(source, had_file, answer), name="configuration", daemon=True).start()
    try:
        async with asyncio.timeout(limit_s):
            return await asyncio.wrap_future(answer)
    except TimeoutError:
        return _faulty(source, f"the file could not be read within {limit_s:g} s. Does the disk hang that it is on?")


def _read(source: ConfigSource, had_file: bool, answer: Future[Configuration]) -> None:
    answer.set_running_or_notify_cancel()
    try:
        gone = had_file and not source.named and not source.exists
        answer.set_result(_faulty(source, "the file is gone; an empty one stands for the defaults.") if gone else source.read())
    except BaseException as error:  # noqa: BLE001 - whoever waits for the answer gets it
        answer.set_exception(error)


def _faulty(source: ConfigSource, problem: str) -> Configuration:
    return Configuration(Settings(), (ConfigError(source.shown, None, problem),))
