"""A connection to the Unix socket of an engine, as a client makes it: whatever the path's length is, and however many wait there."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CONNECT_S = 15.0
LONGEST_SOCKET_NAME = 107
"""unix(7): sun_path without its last zero."""

_AGAIN_S = 0.05


async def dial(path: str, limit_s: float = CONNECT_S) -> socket.socket:
    """A connection, non-blocking, to who listens at `path`. Raises OSError, TimeoutError when there was no room for it until `limit_s`.

    Where too many wait to be let in, unix(7) says EAGAIN, of which no event tells when it is over: it is tried again.
    """
    connecting = socket.socket(socket.AF_UNIX)
    connecting.setblocking(False)
    try:
        async with asyncio.timeout(limit_s):
            with _short_name(path) as name:
                while not _is_connected(connecting, name):
                    await _a_moment()
    except BaseException:
        connecting.close()
        raise
    return connecting


def listener_of(connected: socket.socket) -> int | None:
    """The process that listens there (unix(7), SO_PEERCRED); None when that can't be told."""
    with suppress(OSError):
        pid, _, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        return pid or None
    return None


def _is_connected(connecting: socket.socket, name: str) -> bool:
    try:
        connecting.connect(name)
    except BlockingIOError:
        return False
    return True


async def _a_moment() -> None:
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    timer = loop.call_later(_AGAIN_S, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()


@contextmanager
def _short_name(path: str) -> Iterator[str]:
    """While entered, a name for the socket that is short enough: its folder is opened, and named by /proc."""
    if len(os.fsencode(path)) <= LONGEST_SOCKET_NAME:
        yield path
        return
    place = Path(path)
    folder = os.open(place.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{place.name}"
    finally:
        os.close(folder)
