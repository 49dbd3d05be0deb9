"""The question to an idle process how it is."""

from __future__ import annotations

import asyncio

from malbox_tui.confine.endings import BrokenWire, ConfinedProcessError
from malbox_tui.confine.process import ConfinedProcess
from malbox_tui.plugins import replies
from malbox_tui.plugins.replies import REPLIES

ANSWER_TIMEOUT_S = 10.0
UNHEALTHY = "unhealthy"

_MAX_STALE_REPLIES = 1000


async def asked_for_health(process: ConfinedProcess) -> replies.Health:
    """What it says. Raises `ConfinedProcessError` when it doesn't. Cancelled: the wire can't be used any more."""
    process.send({"kind": "health"})
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            for _ in range(_MAX_STALE_REPLIES):
                reply, _payload = await process.receive(REPLIES)
                if isinstance(reply, replies.Health):
                    return reply
                if not isinstance(reply, replies.RunReply):
                    raise BrokenWire("the process was asked how it is and said something else")
    except TimeoutError:
        raise ConfinedProcessError(f"it did not answer the health check within {ANSWER_TIMEOUT_S:g} s") from None
    raise BrokenWire("the process goes on about tasks that are over")
