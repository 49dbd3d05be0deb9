"""The queries of requests, as structs: their fields are the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskQuery, TaskSort
from malbox_tui.model.task import TaskState
from malbox_tui.model.upkeep import SampleForm
from malbox_tui.remote.protocol import MAX_READ_BYTES
from malbox_tui.remote.sample_query import LISTS, SampleQuery


@dataclass(frozen=True, slots=True)
class Parameters:
    """A query: a struct of its parameters, of which those in `lists` may come several times and those in `raw` are bytes,
    percent-encoded."""

    kind: type[msgspec.Struct]
    lists: frozenset[str] = frozenset()
    raw: frozenset[str] = frozenset()


class NoListing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No parameters."""


Number = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
TaskId = Annotated[int, msgspec.Meta(ge=1, lt=2**53)]
"""Whole numbers that also those can write and read whose numbers are doubles."""
Window = Annotated[int, msgspec.Meta(ge=0, le=MAX_ROWS)]


class TaskListing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters and window of a list of tasks; `sha256` is the beginning of one, `name` a part of a sample's name; an empty `owner` is
    nobody."""

    id: Annotated[tuple[TaskId, ...], msgspec.Meta(max_length=MAX_ROWS)] = ()
    state: tuple[TaskState, ...] = ()
    sha256: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    name: bytes | None = None
    owner: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    sort: TaskSort = TaskSort.NEWEST
    offset: Number = 0
    limit: Window = 100
    around: TaskId | None = None

    def query(self) -> TaskQuery:
        """The same as an engine takes it."""
        where = TaskFilter(
            task_ids=self.id or None,
            states=frozenset(self.state) or None,
            sha256_prefix=self.sha256,
            name_contains=self.name,
            owner=self.owner,
        )
        return TaskQuery(where=where, sort=self.sort, offset=self.offset, limit=self.limit, around=self.around)


class ActionListing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The window of a list of actions: those with a number below `before`, the latest first."""

    before: Number | None = None
    limit: Window = 100


class IntakeListing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The window of a list of intakes: those with a number below `before`, the latest first."""

    before: Number | None = None
    limit: Window = 100


class ReadListing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much is read of a result."""

    max_bytes: Annotated[int, msgspec.Meta(ge=0, le=MAX_READ_BYTES)] = MAX_READ_BYTES


class ContentListing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In which form a sample is wanted."""

    form: SampleForm = SampleForm.ZIP


class EventListing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a stream begins, ENGINE:EPOCH:NUMBER, and whether it goes on when everything up to now was told."""

    after: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    follow: bool = True


NOTHING = Parameters(NoListing)
TASKS = Parameters(TaskListing, lists=frozenset({"id", "state"}), raw=frozenset({"name"}))
ACTIONS = Parameters(ActionListing)
INTAKES = Parameters(IntakeListing)
READING = Parameters(ReadListing)
CONTENT = Parameters(ContentListing)
EVENTS = Parameters(EventListing)
SAMPLE = Parameters(SampleQuery, lists=LISTS, raw=frozenset({"name", "origin"}))
"""Its raw parameters are no fields of the struct; `parse_sample_query` reads all of them."""
