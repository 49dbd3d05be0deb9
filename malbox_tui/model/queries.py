"""What can be asked about tasks. No answer holds more than `MAX_ROWS` rows: the engine filters and sorts, the asker shows a window."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from malbox_tui.model.due import Due
from malbox_tui.model.sample import Sample
from malbox_tui.model.suggestion import Suggestion
from malbox_tui.model.task import Task, TaskState

MAX_ROWS = 1000


class TaskSort(StrEnum):
    """How tasks are ordered. `queue`: as they will be taken (priority first); `newest` and `oldest` by id.

    `ended`: in the order they ended, those that have not ended after them.
    """

    NEWEST = "newest"
    OLDEST = "oldest"
    QUEUE = "queue"
    ENDED = "ended"


class TaskFilter(msgspec.Struct, frozen=True, kw_only=True):
    """All given conditions must hold; None asks nothing. `name_contains` is compared with the raw bytes of the names.

    `sha256s`: the content is one of these; `archive`: the content came in this archive. An empty `owner` asks for what belongs to
    nobody.
    """

    task_ids: tuple[int, ...] | None = None
    states: frozenset[TaskState] | None = None
    sha256_prefix: str | None = None
    name_contains: bytes | None = None
    sha256s: tuple[str, ...] | None = None
    archive: str | None = None
    owner: str | None = None


class TaskQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks, in which order, and which window of them.

    `around` moves the window so that this task stands in the middle of it, if it matches; otherwise `offset` is where it begins.
    """

    where: TaskFilter = TaskFilter()
    sort: TaskSort = TaskSort.NEWEST
    offset: int = 0
    limit: int = 100
    around: int | None = None


class Waiting(msgspec.Struct, frozen=True):
    """Why a pending task waits, in words; at which place among all `pending` ones (1 is next; None: it is being taken); since when."""

    reason: str
    position: int | None
    pending: int
    since: float


class TaskRecord(msgspec.Struct, frozen=True):
    """A task together with its sample. An engine adds why a pending one waits and, where there are profiles and it is known what its
    sample is, the one for it; and which limit a task at work will reach next. `results_removed_at`: since when its results are gone;
    None: they were not removed."""

    task: Task
    sample: Sample
    waiting: Waiting | None = None
    due: Due | None = None
    suggestion: Suggestion | None = None
    results_removed_at: float | None = None


class TaskPage(msgspec.Struct, frozen=True, kw_only=True):
    """A window of the tasks that match: `offset` of them stand before it, `total` match in all; `clock` is the engine's time."""

    rows: tuple[TaskRecord, ...]
    total: int
    offset: int
    clock: float
