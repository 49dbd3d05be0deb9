"""How a conversation with a guest is ended that nobody needs any more."""

from __future__ import annotations

import logging

from malbox_tui.engine import clock
from malbox_tui.model.errors import MachineError
from malbox_tui.ports import GuestSession

log = logging.getLogger(__name__)

SESSION_LIMIT_S = 5.0
"""How long a guest may take to be told goodbye."""


async def say_goodbye(session: GuestSession) -> None:
    """In a bounded time, and whatever comes of it: the machine is being stopped, nobody is left to say it to."""
    try:
        async with clock.within(SESSION_LIMIT_S):
            await session.close()
    except (MachineError, TimeoutError):
        return
    except Exception:
        log.exception("the adapter of a guest broke while it was told goodbye")
