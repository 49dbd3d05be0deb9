"""What is changed while the engine runs and outlives it: limits, machines, marks, a pause, who did what, and what came in."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol

from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.intake import IntakeEntry, IntakePage, IntakeView, LineQuery
from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports.machines import GuestMark


class ActionBook(Protocol):
    """The log of actions: what a store keeps of each `ActionTaken` that `Store.note` gives it, in the same commit, for good."""

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """At most `limit` records with a number below `before` (None: the latest of all), the latest first. Raises `StoreError`."""
        ...


class IntakeBook(Protocol):
    """The accounts of intakes. A task that `Store.add` is given gets its line in the same commit; other lines are entered here.

    At most `KEPT_LINES` lines and `KEPT_INTAKES` intakes are kept, the latest ones.
    """

    def enter(self, entry: IntakeEntry) -> Awaitable[None]:
        """Hand a line over, in order with all that is written; await the answer to know it durable. It raises `StoreError`."""
        ...

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        """At most `limit` intakes with a number below `before` (None: the latest of all), the latest first. Raises `StoreError`."""
        ...

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        """An intake and a window of its lines, at most `MAX_ROWS`. Raises `StoreError`."""
        ...


class MachineBook(Protocol):
    """Keeps machines that were added, edited or removed while the engine ran for the next start, apart from the operator's file."""

    async def save(self, machines: Sequence[MachineSpec]) -> str:
        """Keep all machines as they are now; returns where, for a person. Raises `StoreError`, with nothing changed."""
        ...


class MarkBook(Protocol):
    """Keeps the marks that were left in guests, so that the engine that comes next proves its first reverts, too."""

    async def kept(self, machine: MachineSpec) -> GuestMark | None:
        """The mark that was kept last for this machine, reverted to this snapshot; None: there is none, or it can't be read."""
        ...

    async def keep(self, machine: MachineSpec, mark: GuestMark) -> None:
        """Keep a mark in place of the one before. Raises `StoreError`, with the one before kept."""
        ...


class PauseBook(Protocol):
    """Keeps that an operator paused the pool, until somebody resumes it: also over the end of the engine, however it ends."""

    async def kept(self) -> str | None:
        """Why the pool is paused, for a person; None: it isn't."""
        ...

    async def keep(self, reason: str | None) -> None:
        """Keep this in place of what was kept. Of two calls the later one counts. Raises `StoreError`, with nothing changed."""
        ...


class LimitsStore(Protocol):
    """Keeps min and max of worker groups for the next start, apart from the operator's configuration file."""

    async def save(self, limits: Mapping[str, tuple[int, int]]) -> str:
        """Keep (min, max) by group; returns where, for a person. Raises `StoreError`, with nothing changed."""
        ...
