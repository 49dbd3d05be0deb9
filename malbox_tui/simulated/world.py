"""One simulated world: what is true of its machines and disks, whatever an engine believes.

1. Everything random comes from the seed: events in the same order make the same world.
2. All waiting passes through the `sleep` that is handed in; no wall time, no other thread.
3. The world outlives engines. After `engine_died`, whatever the dead engine still does is cancelled, and changes nothing: adapters
   belong to the era they were made in.
4. What no correct engine would do (a sample put into a used machine, a revert under a running sample, two tasks on one bench) is
   written down in `violations`. What an engine can't notice, because it was lied to, is written down in `deceptions`.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import GuestMark
from malbox_tui.simulated.faults import Fault, Faults
from malbox_tui.simulated.machine_body import MachineBody

Sleep = Callable[[float], Awaitable[None]]

Span = tuple[float, float]
"""The shortest and the longest duration of something, in seconds."""


@dataclass(frozen=True, slots=True)
class Durations:
    """How long things take. `slow` is what a call takes that a fault made slow, `outage` how long the store fails when it does.

    `rival` is the lease that another engine takes a task over with, before it dies.
    """

    check: Span = (0.05, 0.3)
    revert: Span = (1.0, 4.0)
    boot: Span = (2.0, 10.0)
    stop: Span = (0.1, 0.5)
    look: Span = (0.0, 0.1)
    dump: Span = (0.5, 3.0)
    put: Span = (0.1, 1.0)
    execute: Span = (5.0, 60.0)
    ask: Span = (0.0, 0.02)
    hang_up: Span = (0.0, 0.1)
    inbox: Span = (0.0, 0.02)
    disk: Span = (0.0, 0.05)
    slow: Span = (20.0, 90.0)
    outage: Span = (0.0, 5.0)
    rival: Span = (0.0, 5.0)


@dataclass(frozen=True, slots=True)
class Program:
    """What a content does when a guest runs it.

    `code` None: it switches the machine off at its end or, with `reboots`, starts the guest anew. `drops`: what it writes as soon as it
    runs, by name in the folder that samples are put into, or by path.
    """

    seconds: float
    code: int | None = 0
    output: bytes = b""
    drops: tuple[tuple[str, bytes], ...] = ()
    reboots: bool = False


class World:
    """What all simulated adapters of one fleet share.

    `machines` maps names to the machines as they are. `files` maps paths of this host, which need not exist on disk, to what lies
    there. `samples` (by SHA-256), `results` (by path) and `marks` (by machine) are the disks under the simulated quarantine, result
    store and book of marks. `programs` says what a content does in a guest; one that isn't named does what the seed says. `numbers`
    tell conversations and benches apart.
    In a world that `grows`, a machine comes into being when its hypervisor is first asked for it.
    """

    def __init__(
        self,
        seed: int,
        sleep: Sleep,
        machines: Iterable[MachineSpec] = (),
        rates: Mapping[Fault, float] | None = None,
        durations: Durations | None = None,
        *,
        grows: bool = False,
    ) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.faults = Faults(self.chance, rates or {})
        self.durations = durations or Durations()
        self.machines = {spec.name: MachineBody(spec) for spec in machines}
        self.files: dict[Path, bytes] = {}
        self.samples: dict[str, bytes] = {}
        self.results: dict[str, bytes] = {}
        self.marks: dict[str, GuestMark] = {}
        self.programs: dict[bytes, Program] = {}
        self.violations: list[str] = []
        self.deceptions: list[str] = []
        self.numbers = itertools.count(1)
        self.era = 1
        self._grows = grows
        self._sleep = sleep

    def machine(self, spec: MachineSpec) -> MachineBody | None:
        """The machine as it is; None: there is none of this name."""
        if self._grows and spec.name not in self.machines:
            self.machines[spec.name] = MachineBody(spec)
        return self.machines.get(spec.name)

    def engine_died(self) -> None:
        """The engine's process is gone: its calls, conversations and benches with it. Machines stay as they are."""
        self.era += 1
        self.files.clear()
        for body in self.machines.values():
            body.forget_callers()

    def engine_ended(self) -> None:
        """The engine's process ended in good order. The next one knows nothing of marks in guests but those that were kept."""
        for body in self.machines.values():
            body.forget_mark()

    def drawn(self, span: Span) -> float:
        """A duration within `span`."""
        low, high = span
        return self.chance.uniform(low, high)

    def fortune(self, *words: object) -> Random:
        """Chance that depends on the seed and `words` alone, not on what happened before."""
        spelt = (hashlib.sha256(word).hexdigest() if isinstance(word, bytes) else str(word) for word in (self.seed, *words))
        return Random("|".join(spelt))

    def program_of(self, content: bytes) -> Program:
        """What `content` does in a guest."""
        if content in self.programs:
            return self.programs[content]
        fortune = self.fortune("program", content)
        seconds, printed = fortune.uniform(*self.durations.execute), b"ran\n" * fortune.randrange(64)
        drops = tuple((f"loot-{number}", b"%d" % fortune.randrange(10**6)) for number in range(fortune.choice((0, 0, 1, 3))))
        code = fortune.choice((*((0,) * 12), 1, 1, 1, None))
        return Program(seconds, code, printed, drops, reboots=fortune.random() < 0.05)

    def leave_file(self, target: Path, content: bytes) -> None:
        """Write a file of this host: among `files`, and on disk where its folder is there."""
        self.files[target] = content
        if target.parent.is_dir():
            target.write_bytes(content)

    # --- waiting ---

    def check_era(self, era: int) -> None:
        """Raises CancelledError when the engine of `era` is dead."""
        if era != self.era:
            raise asyncio.CancelledError("the engine of this adapter is dead")

    async def take(self, era: int, span: Span) -> None:
        """Let a duration within `span` pass."""
        self.check_era(era)
        await self._sleep(self.drawn(span))
        self.check_era(era)

    async def take_or_until(self, era: int, seconds: float | None, *ends: Callable[[], Awaitable[object]]) -> bool:
        """Let `seconds` pass (None: all time there is); False when one of `ends` came before."""
        self.check_era(era)
        async with asyncio.TaskGroup() as group:
            resting = group.create_task(self._rest(seconds))
            ending = [group.create_task(_awaited(end)) for end in ends]
            await asyncio.wait({resting, *ending}, return_when=asyncio.FIRST_COMPLETED)
            rested = resting.done()
            for waiting in (resting, *ending):
                waiting.cancel()
        self.check_era(era)
        return rested

    async def hang(self, era: int) -> None:
        """Never returns; ends by cancellation."""
        self.check_era(era)
        await self._rest(None)

    async def _rest(self, seconds: float | None) -> None:
        if seconds is None:
            await asyncio.get_running_loop().create_future()
        else:
            await self._sleep(seconds)


async def _awaited(wait: Callable[[], Awaitable[object]]) -> None:
    await wait()
