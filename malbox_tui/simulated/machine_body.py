"""A simulated machine as it is, whatever its hypervisor or guest says of it."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field

from malbox_tui.model.machine import Downfall, MachineFacts, MachineSpec, Throttle

_FACTS = MachineFacts(memory_mb=2048, vcpus=2)
_UNBOUND = Throttle()


@dataclass(eq=False)
class MachineBody:
    """One machine's physical state.

    `fresh`: reverted, and nothing was put into it since. `dirt`: what was put into it since the last true revert; `touched_at`: when
    the first of it was since it was switched on, on the loop's clock. `mark`: the traces that were left in it since then and that the
    living engine knows of; `kept_mark`: those that its next start will know of. `lied`: its latest revert was reported as done and left
    the dirt, and no traces by which an engine could notice. `facts`: what its hypervisor says of it. `throttle`: what bounds it while
    it runs. `downfall`: why it runs no more.

    `run_number` counts the times it was switched on or off: a conversation with an earlier run is over. `boots` counts how often the
    guest started anew by itself. `guest_up_at`: when it answers, on the loop's clock; infinite: never. `files`: the guest's, by path;
    `written`: when they were, on the loop's clock. `processes`: the commands that run in the guest, by number. `call`: what the
    provider is doing with the machine. `in_use`: numbers of the open conversations that put or ran something, `busy` of those that do
    so now.
    """

    spec: MachineSpec
    running: bool = False
    fresh: bool = False
    dirt: str = ""
    mark: str = ""
    kept_mark: str = ""
    lied: bool = False
    facts: MachineFacts = _FACTS
    throttle: Throttle = _UNBOUND
    downfall: Downfall = Downfall.SWITCHED_OFF
    touched_at: float = math.inf
    run_number: int = 0
    guest_up_at: float = math.inf
    files: dict[str, bytes] = field(default_factory=dict)
    written: dict[str, float] = field(default_factory=dict)
    processes: dict[int, str] = field(default_factory=dict)
    boots: int = 0
    call: str | None = None
    in_use: set[int] = field(default_factory=set)
    busy: set[int] = field(default_factory=set)
    _watchers: list[asyncio.Future[None]] = field(default_factory=list)

    def answers_in(self, now: float) -> float:
        """Seconds until the guest answers, if nothing changes; 0: it does; infinite: it never will."""
        return max(0.0, self.guest_up_at - now) if self.running else math.inf

    def switch_off(self, why: Downfall = Downfall.SHUT_DOWN) -> None:
        """The guest is gone, and what it was doing; what is on its disk stays."""
        if self.running:
            self.downfall = why
            self._begin_run(running=False, guest_up_at=math.inf)

    def revert(self, guest_up_at: float) -> None:
        """Bring it to its clean snapshot, running."""
        self.files.clear()
        self.written.clear()
        self.fresh, self.dirt, self.mark, self.lied = True, "", "", False
        self._begin_run(running=True, guest_up_at=guest_up_at)

    def pretend_revert(self, guest_up_at: float) -> None:
        """Restart it with all that is on its disk."""
        self.fresh, self.lied = False, not self.mark
        self._begin_run(running=True, guest_up_at=guest_up_at)

    def lose_guest(self) -> None:
        """The machine runs on; its guest never answers again."""
        self._begin_run(running=self.running, guest_up_at=math.inf)

    def reboot(self, guest_up_at: float) -> None:
        """The guest starts anew; the machine runs on, and conversations with it go on when it answers again."""
        self.guest_up_at = guest_up_at
        self.boots += 1
        self.processes.clear()
        self._wake()

    def touch(self, dirt: str) -> None:
        """Something of a task got into it."""
        if self.touched_at == math.inf:
            self.touched_at = asyncio.get_running_loop().time()
        self.fresh, self.dirt, self.lied = False, dirt, False

    def leave_traces(self, word: str) -> None:
        """The engine marked it, and will know by that whether it was reverted; for a task it is as good as before."""
        self.mark = word
        self.dirt = self.dirt or word

    def forget_mark(self) -> None:
        """The engine has ended, and the next one knows what was kept."""
        if self.mark != self.kept_mark:
            self.mark = ""

    def forget_callers(self) -> None:
        """Whoever called, talked or left traces is gone. A guest that was starting is up by the time somebody asks again."""
        self.call = None
        self.forget_mark()
        self.in_use.clear()
        self.busy.clear()
        self._watchers.clear()
        if self.guest_up_at < math.inf:
            self.guest_up_at = -math.inf

    async def change(self) -> None:
        """Returns when the machine is switched on or off, or its guest is lost. Cancelled: nothing is left behind."""
        watcher = asyncio.get_running_loop().create_future()
        self._watchers.append(watcher)
        try:
            await watcher
        finally:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

    def _begin_run(self, *, running: bool, guest_up_at: float) -> None:
        self.running, self.guest_up_at = running, guest_up_at
        self.run_number += 1
        self.throttle, self.touched_at = _UNBOUND, math.inf
        self.in_use.clear()
        self.busy.clear()
        self.processes.clear()
        self._wake()

    def _wake(self) -> None:
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)
