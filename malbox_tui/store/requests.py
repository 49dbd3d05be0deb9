"""What callers hand to a store, and how a batch of it is cut so that it can be carried out grouped.

A batch has the effect of carrying its requests out one by one in the order of the calls. Inside a `Segment` the kinds are carried
out in the order of its fields; `segments` starts a new one wherever that would swap two requests that touch the same thing. Only a
claim doesn't say which content it touches: a task that an add joins may be answered as it was before a claim that was asked for just
before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from malbox_tui.model.events import EventBody
from malbox_tui.model.report import Identification
from malbox_tui.model.task import Task
from malbox_tui.ports import Added, Change, ClaimRequest, NewTask
from malbox_tui.store.answers import Answer


@dataclass(frozen=True, slots=True, eq=False)
class Adding:
    """A task to add."""

    new: NewTask
    answer: Answer[Added]


@dataclass(frozen=True, slots=True, eq=False)
class Claiming:
    """A task to claim."""

    claim: ClaimRequest
    answer: Answer[Task | None]


@dataclass(frozen=True, slots=True, eq=False)
class Changing:
    """A move of a task."""

    change: Change
    answer: Answer[None]


@dataclass(frozen=True, slots=True, eq=False)
class Noting:
    """News without a move."""

    at: float
    news: EventBody
    answer: Answer[None]


@dataclass(frozen=True, slots=True, eq=False)
class Renewing:
    """Leases to extend."""

    tokens: tuple[str, ...]
    lease_until: float
    answer: Answer[frozenset[str]]


@dataclass(frozen=True, slots=True, eq=False)
class Identifying:
    """A sample's kind to keep."""

    sha256: str
    identification: Identification
    answer: Answer[None]


Request = Adding | Claiming | Changing | Noting | Renewing | Identifying


@dataclass(slots=True)
class Segment:
    """Requests of one batch by kind, each with its place in the batch."""

    adds: list[tuple[int, Adding]] = field(default_factory=list)
    claims: list[tuple[int, Claiming]] = field(default_factory=list)
    changes: list[tuple[int, Changing]] = field(default_factory=list)
    notes: list[tuple[int, Noting]] = field(default_factory=list)
    renewals: list[tuple[int, Renewing]] = field(default_factory=list)
    identifications: list[tuple[int, Identifying]] = field(default_factory=list)


def segments(batch: Sequence[Request]) -> Iterator[Segment]:
    """`batch` cut into as few segments as keep the order of requests that touch the same task, content or token."""
    segment, latest = Segment(), dict[Hashable, int]()
    for place, request in enumerate(batch):
        phase, touched = _phase_and_touched(request)
        if any(latest.get(key, 0) > phase for key in touched):
            yield segment
            segment, latest = Segment(), {}
        latest.update(dict.fromkeys(touched, phase))
        _put(segment, place, request)
    yield segment


def _phase_and_touched(request: Request) -> tuple[int, tuple[Hashable, ...]]:
    match request:
        case Adding(new=new):
            return 0, (("content", new.sha256), ("kind", new.sha256))
        case Claiming(claim=claim):
            return 1, (claim.task_id, claim.token)
        case Changing(change=change):
            return 2, (change.before.id, change.before.token, ("content", change.before.sha256))
        case Renewing(tokens=tokens):
            return 3, tokens
        case Identifying(sha256=sha256):
            return 4, (("kind", sha256),)
        case Noting():
            return 4, ()


def _put(segment: Segment, place: int, request: Request) -> None:
    match request:
        case Adding():
            segment.adds.append((place, request))
        case Claiming():
            segment.claims.append((place, request))
        case Changing():
            segment.changes.append((place, request))
        case Noting():
            segment.notes.append((place, request))
        case Renewing():
            segment.renewals.append((place, request))
        case Identifying():
            segment.identifications.append((place, request))
