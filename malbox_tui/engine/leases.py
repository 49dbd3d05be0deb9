"""Time-limited ownership: every attempt renews its lease, all in one write, well before any of them ends.

An attempt whose token owns nothing any more (another engine took the task over) is told so and records nothing. A task whose lease
ran out and that nobody here drives is put right as after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from malbox_tui.engine import clock
from malbox_tui.engine.attempt import Attempt
from malbox_tui.engine.cancellation import CancelReason
from malbox_tui.engine.recovery import Recovery
from malbox_tui.engine.store_health import StoreHealth
from malbox_tui.model.errors import LeaseLost, StoreError
from malbox_tui.model.task import Task
from malbox_tui.ports import Clock, PendingEntry, Store

log = logging.getLogger(__name__)

RENEWALS_PER_LEASE = 3


class LeaseKeeper:
    """Renews the leases of `attempts`; reaps those that ran out and whose tasks are not `in_hand`: `on_pending` queues these."""

    def __init__(
        self,
        *,
        store: Store,
        health: StoreHealth,
        wall: Clock,
        lease_s: float,
        attempts: Mapping[int, Attempt],
        in_hand: Collection[int],
        recovery: Recovery,
        on_pending: Callable[[PendingEntry], None],
    ) -> None:
        self._store = store
        self._health = health
        self._wall = wall
        self._lease_s = lease_s
        self._attempts = attempts
        self._in_hand = in_hand
        self._recovery = recovery
        self._on_pending = on_pending

    async def run(self) -> None:
        """Renew and reap for ever; ends by cancellation. A failing store is asked again at the next turn."""
        while True:
            await clock.sleep(self._lease_s / RENEWALS_PER_LEASE)
            try:
                await self.renew()
                await self.reap()
            except StoreError as error:
                self._health.failed(error)

    async def renew(self) -> None:
        """Extend all leases once. Raises `StoreError`."""
        attempts = {attempt.claim.token: attempt for attempt in self._attempts.values() if attempt.outcome is None}
        if not attempts:
            return
        for token in await self._store.renew(list(attempts), self._wall.now() + self._lease_s):
            if attempts[token].outcome is None:
                attempts[token].token.cancel(CancelReason.LEASE_LOST)

    async def reap(self) -> None:
        """Put tasks right whose lease ran out; after `renew`, so that a clock that jumped takes nothing from a live attempt.

        Raises `StoreError`.
        """
        in_hand_before = set(self._in_hand)
        for task in await self._store.owned():
            ran_out = task.lease_until is not None and task.lease_until < self._wall.now()
            # Looked at twice: what was in hand when the store was read may have ended since, and is not as it was read.
            if ran_out and task.id not in in_hand_before and task.id not in self._in_hand:
                await self._put_right(task)

    async def _put_right(self, task: Task) -> None:
        try:
            entry = await self._recovery.put_right(task)
        except LeaseLost as error:
            log.warning("%s", error)
        else:
            if entry is not None:
                self._on_pending(entry)
