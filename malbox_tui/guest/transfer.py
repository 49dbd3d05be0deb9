"""Files on their way into a guest and out of it, through its agent.

A daemon of libvirt that starts anew takes the way to the guest with it, and leaves the guest and its agent as they were. What may be
done twice is then begun again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import BinaryIO, TypeVar

from malbox_tui.guest.agent import READ_BYTES, Agent
from malbox_tui.model.errors import GuestLineLost, GuestRefused, GuestUnreachable

TRIES = 3

T = TypeVar("T")


async def once_more(work: Callable[[], Awaitable[T]]) -> T:
    """What `work` gives, which may be done several times, and is when the way to the guest is lost under it."""
    for _ in range(TRIES - 1):
        try:
            return await work()
        except GuestLineLost:
            continue
    return await work()


async def copy(agent: Agent, content: BinaryIO, path: str) -> None:
    """Put all of `content` into the file at `path`. Raises `GuestUnreachable`, `GuestRefused`; some of it may be there then.

    It is opened and closed once: a second handle that writes would keep it from being run, and nobody knows the number of one that was
    lost.
    """
    handle = await agent.open(path, "wb")
    is_begun = False

    async def write() -> None:
        nonlocal is_begun
        if is_begun:
            await agent.seek(handle, 0)
            await asyncio.to_thread(content.seek, 0)
        is_begun = True
        while piece := await asyncio.to_thread(content.read, READ_BYTES):
            await agent.write(handle, piece)

    try:
        await once_more(write)
    except (GuestRefused, OSError):
        await _let_go(agent, handle)
        raise
    await agent.close(handle)


async def read_into(agent: Agent, path: str, write: Callable[[bytes], None], max_bytes: int) -> bool:
    """Hand the first `max_bytes` of a file to `write`, piece by piece; whether that was all of it. Raises as `copy`."""
    left = max_bytes

    async def work() -> bool:
        nonlocal left
        handle = await agent.open(path, "rb")
        try:
            if left < max_bytes:
                await agent.seek(handle, max_bytes - left)
            while True:
                # One byte more than may be handed on tells whether there is more.
                content, ends = await agent.read(handle, min(READ_BYTES, left + 1))
                is_more = len(content) > left
                if piece := content[:left]:
                    write(piece)
                    left -= len(piece)
                if is_more or ends:
                    return not is_more
        finally:
            await _let_go(agent, handle)

    return await once_more(work)


async def read(agent: Agent, path: str, max_bytes: int) -> tuple[bytes, bool]:
    """The beginning of a file, and whether that was all of it. Raises as `copy`."""
    pieces: list[bytes] = []
    is_whole = await read_into(agent, path, pieces.append, max_bytes)
    return b"".join(pieces), is_whole


async def _let_go(agent: Agent, handle: int) -> None:
    """Close a file that was read. Whoever cannot doesn't need to: what was read counts."""
    try:
        await agent.close(handle)
    except (GuestRefused, GuestUnreachable):
        return
