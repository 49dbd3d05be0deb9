"""One machine as the engine keeps it, and the lease by which a task holds it. State changes through `Machine.move` alone."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from malbox_tui.engine import clock
from malbox_tui.model import events as news
from malbox_tui.model.machine import (
    BUSY_STATES,
    MachineFacts,
    MachineMoment,
    MachineSpec,
    MachineState,
    MachineTrigger,
    MachineView,
    next_machine_state,
)
from malbox_tui.model.report import ResultRef
from malbox_tui.ports import GuestMark, GuestSession, GuestView

MOMENTS_KEPT = 20
"""How many changes of its state a machine remembers."""
MOST_WARNINGS = 16


@dataclass(eq=False, slots=True)
class MachineLease:
    """A machine in the hands of one task, from its reservation until it is given back."""

    machine: MachineSpec
    task_id: int
    started: bool = False
    """The machine was touched for the task, so it has to be made clean."""
    ended: bool = False
    """Given back; doing so again does nothing."""
    seen: GuestView | None = None
    """What was in its guest when it was proven clean; None: nobody could look, or it was not started yet."""
    is_unable: bool = False
    """The machine can't do what the task's worker group asks of it, which is no failure of the machine."""


class Machine:
    """A machine's state and record. It begins as `reverting`: nothing is known of what it ran before. `on_other` is called when it
    turns out to be of use for other tasks than before."""

    def __init__(
        self,
        spec: MachineSpec,
        now: Callable[[], float],
        announce: Callable[[news.EventBody], None],
        on_other: Callable[[], None] = lambda: None,
    ) -> None:
        self.spec = spec
        self.state = MachineState.REVERTING
        self.since = now()
        self.reason = ""
        self.lease: MachineLease | None = None
        self.failures = 0
        """In a row, since a task was served without one."""
        self.disable_reason: str | None = None
        """It is to be disabled as soon as no task holds it, and why."""
        self.next_spec: MachineSpec | None = None
        """What it is to be as soon as no task holds it."""
        self.removed_by: str | None = None
        """It is to be forgotten as soon as no task holds it, and who wants that."""
        self.facts: MachineFacts | None = None
        """What its hypervisor said of it; None: it was not asked yet."""
        self.is_ours = False
        """Its hypervisor knows it as it is configured. One that isn't may be somebody else's, and is never switched off."""
        self.mark: GuestMark | None = None
        """The traces in its guest that the next revert has to take away."""
        self.fault: str | None = None
        """Why it can't be used beside the others as it is configured; None: nobody has said so."""
        self.unthrottled: str | None = None
        """Why its hypervisor can't bound what it sends and reads; None: nothing speaks against it."""
        self.session: GuestSession | None = None
        """The conversation in which it was proven clean, for the task that comes next."""
        self.seen: GuestView | None = None
        """What was in its guest at the beginning of that conversation; None: nobody could look."""
        self.clean_at: float | None = None
        """When it was last proven clean, on the loop's clock; None: something may have touched it since."""
        self.served_at = 0.0
        """When a task last held it, on the loop's clock."""
        self.next_try: asyncio.TimerHandle | None = None
        """When it is quarantined or missing: what tries it once more."""
        self._warnings: dict[str, None] = {}
        self._screenshot: tuple[ResultRef, float] | None = None
        self._history = deque([MachineMoment(at=self.since, state=self.state)], MOMENTS_KEPT)
        self._hurry = asyncio.Event()
        self._now = now
        self._announce = announce
        self._on_other = on_other

    def __repr__(self) -> str:
        return f"<Machine {self.spec.name} {self.state} {self.lease}>"

    @property
    def is_busy(self) -> bool:
        """A task holds it."""
        return self.state in BUSY_STATES

    @property
    def has_orders(self) -> bool:
        """It is to be disabled, changed or removed as soon as no task holds it."""
        return self.disable_reason is not None or self.next_spec is not None or self.removed_by is not None

    def move(self, trigger: MachineTrigger, reason: str = "") -> None:
        """Change the state and tell it. Raises `IllegalMachineMove`, with nothing changed."""
        self.state = next_machine_state(self.state, trigger)
        if self.next_try is not None:
            self.next_try.cancel()
            self.next_try = None
        self.since = self._now()
        self.reason = reason
        self.tell(reason)

    def tell(self, reason: str) -> None:
        """Tell the state, and write it into the history."""
        task_id = None if self.lease is None else self.lease.task_id
        self._history.append(MachineMoment(at=self._now(), state=self.state, task_id=task_id, reason=reason))
        self._announce(news.MachineChanged(machine=self.spec.name, state=self.state, task_id=task_id, reason=reason))

    def become(self, spec: MachineSpec) -> None:
        """From now on it is another one of the same name: what was known of it holds no longer."""
        self.spec, self.next_spec = spec, None
        self.facts, self.is_ours, self.mark, self.unthrottled, self.clean_at = None, False, None, None, None
        self.failures, self.fault = 0, None
        self._warnings.clear()
        self._on_other()

    def learn(self, facts: MachineFacts) -> None:
        """Its hypervisor knows it as it is configured, and says this of it."""
        is_news, self.facts, self.is_ours = facts != self.facts, facts, True
        if is_news:
            self._on_other()

    def let_run_free(self, problem: str) -> None:
        """Its hypervisor can't bind it, for the reason `problem`: who needs that gets it no more."""
        self.unthrottled = problem
        self._on_other()

    def warn(self, what: str) -> None:
        """Remember what an operator should know of it, a sentence; once is enough."""
        if len(self._warnings) < MOST_WARNINGS:
            self._warnings[what] = None

    def show(self, screenshot: ResultRef, at: float) -> None:
        """Keep the latest picture of its screen."""
        self._screenshot = (screenshot, at)

    def hurry(self) -> None:
        """Whoever rests before another try at it tries at once."""
        self._hurry.set()

    async def rest(self, seconds: float) -> None:
        """Returns after `seconds`, or when there is a hurry."""
        self._hurry.clear()
        try:
            async with clock.within(seconds):
                await self._hurry.wait()
        except TimeoutError:
            return

    def view(self) -> MachineView:
        """The machine as it is now."""
        picture, taken_at = self._screenshot or (None, None)
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
            leaving=self.disable_reason is not None or self.removed_by is not None,
            history=tuple(self._history),
            screenshot=picture,
            screenshot_at=taken_at,
            spec=self.spec,
            facts=self._told_facts(),
        )

    def _told_facts(self) -> MachineFacts | None:
        if not self._warnings:
            return self.facts
        facts = self.facts or MachineFacts()
        return msgspec.structs.replace(facts, warnings=tuple(dict.fromkeys((*facts.warnings, *self._warnings))))
