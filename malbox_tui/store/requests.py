"""What callers hand to a store, and how a batch of it is cut so that it can be carried out grouped.

A batch has the effect of carrying its requests out one by one in the order of the calls. Inside a `Segment` the kinds are carried
out in the order of their phases; `segments` starts a new one wherever that would swap two requests that touch the same thing. Only a
claim doesn't say which content it touches: a task that an add joins may be answered as it was before a claim that was asked for just
before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from malbox_tui.model.events import EventBody
from malbox_tui.model.intake import IntakeEntry
from malbox_tui.model.report import Identification
from malbox_tui.model.task import Task
from malbox_tui.model.upkeep import Cause
from malbox_tui.ports import Added, Change, ClaimRequest, NewTask, Removal
from malbox_tui.store.answers import Answer


class Adding(msgspec.Struct, frozen=True, eq=False):
    """A task to add."""

    phase: ClassVar[int] = 0
    new: NewTask
    answer: Answer[Added]

    def touched(self) -> tuple[Hashable, ...]:
        """The content, and what is known of its kind."""
        sha256 = self.new.sha256
        return sha256, ("kind", sha256)


class Claiming(msgspec.Struct, frozen=True, eq=False):
    """A task to claim."""

    phase: ClassVar[int] = 1
    claim: ClaimRequest
    answer: Answer[Task | None]

    def touched(self) -> tuple[Hashable, ...]:
        """The task and the token."""
        return self.claim.task_id, self.claim.token


class Changing(msgspec.Struct, frozen=True, eq=False):
    """A move of a task."""

    phase: ClassVar[int] = 2
    change: Change
    answer: Answer[None]

    def touched(self) -> tuple[Hashable, ...]:
        """The task, the token that owns it (None: nobody's) and its content."""
        before = self.change.before
        return before.id, before.token, before.sha256


class Renewing(msgspec.Struct, frozen=True, eq=False):
    """Leases to extend."""

    phase: ClassVar[int] = 3
    tokens: tuple[str, ...]
    lease_until: float
    answer: Answer[frozenset[str]]

    def touched(self) -> tuple[Hashable, ...]:
        """The tokens."""
        return self.tokens


class Noting(msgspec.Struct, frozen=True, eq=False):
    """News without a move."""

    phase: ClassVar[int] = 4
    at: float
    news: EventBody
    answer: Answer[None]

    def touched(self) -> tuple[Hashable, ...]:
        """Nothing that others touch."""
        return ()


class Identifying(msgspec.Struct, frozen=True, eq=False):
    """A sample's kind to keep."""

    phase: ClassVar[int] = 5
    sha256: str
    identification: Identification
    answer: Answer[None]

    def touched(self) -> tuple[Hashable, ...]:
        """What is known of the content's kind."""
        return (("kind", self.sha256),)


class Removing(msgspec.Struct, frozen=True, eq=False):
    """A sample to forget with all its tasks, or, where `sha256` is empty, results of tasks."""

    phase: ClassVar[int] = 6
    sha256: str
    task_ids: tuple[int, ...]
    at: float
    cause: Cause
    answer: Answer[Removal | None]

    def touched(self) -> tuple[Hashable, ...]:
        """The content and the tasks."""
        return self.sha256, *self.task_ids


class Closing(msgspec.Struct, frozen=True, eq=False):
    """A removal that is at its end."""

    phase: ClassVar[int] = 7
    number: int
    answer: Answer[None]

    def touched(self) -> tuple[Hashable, ...]:
        """Nothing that others touch."""
        return ()


class Entering(msgspec.Struct, frozen=True, eq=False):
    """A line for the account of an intake."""

    phase: ClassVar[int] = 8
    entry: IntakeEntry
    answer: Answer[None]

    def touched(self) -> tuple[Hashable, ...]:
        """Nothing that others touch."""
        return ()


Request = Adding | Claiming | Changing | Renewing | Noting | Identifying | Removing | Closing | Entering


PHASES = 9


class Segment:
    """Requests of one batch by kind, each with its place in the batch. `by_phase` holds the same lists in the order of the phases."""

    __slots__ = (
        "adds",
        "by_phase",
        "changes",
        "claims",
        "closings",
        "entries",
        "identifications",
        "notes",
        "removals",
        "renewals",
    )

    def __init__(self) -> None:
        self.adds: list[tuple[int, Adding]] = []
        self.claims: list[tuple[int, Claiming]] = []
        self.changes: list[tuple[int, Changing]] = []
        self.renewals: list[tuple[int, Renewing]] = []
        self.notes: list[tuple[int, Noting]] = []
        self.identifications: list[tuple[int, Identifying]] = []
        self.removals: list[tuple[int, Removing]] = []
        self.closings: list[tuple[int, Closing]] = []
        self.entries: list[tuple[int, Entering]] = []
        self.by_phase: tuple[list[tuple[int, Any]], ...] = (
            self.adds, self.claims, self.changes, self.renewals, self.notes, self.identifications,
            self.removals, self.closings, self.entries,
        )  # fmt: skip


def segments(batch: Sequence[Request]) -> Iterator[Segment]:
    """`batch` cut into as few segments as keep the order of requests that touch the same task, content or token.

    Ids, contents and tokens are told apart by what they are; should two be equal all the same, that only cuts once more.
    """
    segment, seen = Segment(), _nothing_seen()
    for place, request in enumerate(batch):
        phase, touched = request.phase, request.touched()
        for later in seen[phase + 1 :]:
            if later and not later.isdisjoint(touched):
                yield segment
                segment, seen = Segment(), _nothing_seen()
                break
        seen[phase].update(touched)
        segment.by_phase[phase].append((place, request))
    yield segment


def _nothing_seen() -> list[set[Hashable]]:
    """What the requests of each phase touch."""
    return [set() for _ in range(PHASES)]
