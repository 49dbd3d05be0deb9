"""One machine as the engine keeps it, and the lease by which a task holds it. State changes through `Machine.move` alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from malbox_tui.model import events as news
from malbox_tui.model.machine import BUSY_STATES, MachineSpec, MachineState, MachineTrigger, MachineView, next_machine_state


@dataclass(eq=False, slots=True)
class MachineLease:
    """A machine in the hands of one task, from its reservation until it is given back."""

    machine: MachineSpec
    task_id: int
    started: bool = False
    """The machine was touched for the task, so it has to be made clean."""
    ended: bool = False
    """Given back; doing so again does nothing."""


class Machine:
    """A machine's state and record. It begins as `reverting`: nothing is known of what it ran before."""

    def __init__(self, spec: MachineSpec, now: Callable[[], float], announce: Callable[[news.EventBody], None]) -> None:
        self.spec = spec
        self.state = MachineState.REVERTING
        self.since = now()
        self.reason = ""
        self.lease: MachineLease | None = None
        self.failures = 0
        """In a row, since a task was served without one."""
        self.disable_reason: str | None = None
        """It is to be disabled as soon as no task holds it, and why."""
        self.clean_at: float | None = None
        """When it was last proven clean, on the loop's clock; None: something may have touched it since."""
        self.served_at = 0.0
        """When a task last held it, on the loop's clock."""
        self.next_try: asyncio.TimerHandle | None = None
        """When it is quarantined or missing: what tries it once more."""
        self._now = now
        self._announce = announce

    def __repr__(self) -> str:
        return f"<Machine {self.spec.name} {self.state} {self.lease}>"

    @property
    def is_busy(self) -> bool:
        """A task holds it."""
        return self.state in BUSY_STATES

    def move(self, trigger: MachineTrigger, reason: str = "") -> None:
        """Change the state and tell it. Raises `IllegalMachineMove`, with nothing changed."""
        self.state = next_machine_state(self.state, trigger)
        if self.next_try is not None:
            self.next_try.cancel()
            self.next_try = None
        self.since = self._now()
        self.reason = reason
        task_id = None if self.lease is None else self.lease.task_id
        self._announce(news.MachineChanged(machine=self.spec.name, state=self.state, task_id=task_id, reason=reason))

    def view(self) -> MachineView:
        """The machine as it is now."""
        return MachineView(
            name=self.spec.name,
            provider=self.spec.provider,
            platform=self.spec.platform,
            arch=self.spec.arch,
            tags=self.spec.tags,
            state=self.state,
            since=self.since,
            reason=self.reason,
            task_id=None if self.lease is None else self.lease.task_id,
            failures=self.failures,
            leaving=self.disable_reason is not None,
        )
