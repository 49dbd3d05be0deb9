"""How one plugin has been doing lately, over all benches: whether it may be started, and when.

The first crash is forgiven at once; after each further one in a row the next start waits twice as long, and after `MOST_CRASHES` the
plugin is given up: its part of a task fails at once, with the reason, and the operator is told. `TRY_AGAIN_S` later it is tried once.
"""

from __future__ import annotations

import asyncio

from malbox_tui.confine.endings import ConfinedProcessError
from malbox_tui.plugins.replies import shortened

MOST_CRASHES = 10
FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 30.0
TRY_AGAIN_S = 600.0


class Condition:
    """That of the plugin `name`. Times are the loop's."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.crashes = 0
        """In a row."""
        self._reason = ""
        self._not_before = 0.0

    @property
    def trouble(self) -> str:
        """That it was given up, and why, in a sentence; empty: it wasn't."""
        if self.crashes < MOST_CRASHES:
            return ""
        again = "`malbox-tui plugin reload` has it tried again at once"
        return f"The plugin {self.name} was given up after {self.crashes} crashes in a row; the last: {self._reason}. {again}."

    def worked(self) -> None:
        """It did what it was asked, well or not."""
        self.crashes = 0
        self._not_before = 0.0

    def crashed(self, reason: str) -> None:
        """Its process ended, broke the rules, or was never ready."""
        self.crashes += 1
        self._reason = shortened(reason, 200)
        wait_s = 0.0 if self.crashes == 1 else min(FIRST_WAIT_S * 2 ** (self.crashes - 2), LONGEST_WAIT_S)
        self._not_before = asyncio.get_running_loop().time() + (TRY_AGAIN_S if self.trouble else wait_s)

    async def may_start(self) -> None:
        """Returns when a process may be started. Raises `ConfinedProcessError` when it is given up."""
        loop = asyncio.get_running_loop()
        if self.trouble:
            if loop.time() < self._not_before:
                raise GivenUp(f"it was given up after {self.crashes} crashes in a row; the last: {self._reason}")
            self._not_before = loop.time() + TRY_AGAIN_S  # this one try only
            return
        never: asyncio.Future[None] = loop.create_future()
        try:
            async with asyncio.timeout_at(self._not_before):
                if loop.time() < self._not_before:
                    await never
        except TimeoutError:
            pass


class GivenUp(ConfinedProcessError):
    """Nothing was tried, so nothing crashed."""
