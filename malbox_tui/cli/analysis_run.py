"""One submission, and everything it waits for, over a `Client`: until its tasks and those of earlier runs are final.

Three strands share a `Tally`: offers go in and give receipts, events say what ended, and a reporter reads what ended or is a
duplicate and tells it. Events are followed from a position taken before anything is submitted or looked up, so no end is missed; after
a gap the tasks still waited for are looked up again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from malbox_tui.cli.breakdown import first_cause
from malbox_tui.cli.tally import Tally
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.events import Event, Gap, Position, TaskCanceled, TaskCompleted, TaskFailed, TaskTimedOut
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskPage, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.submission import Duplicate, Offer, Opened, Receipt, Refused, SubmissionOptions
from malbox_tui.model.task import FINAL_STATES, TaskState
from malbox_tui.ports import Client

Read = Callable[[TaskQuery], Awaitable[TaskPage]]

_UNFINISHED = frozenset(TaskState) - FINAL_STATES
_END_STATES = {
    TaskCompleted: TaskState.COMPLETED,
    TaskFailed: TaskState.FAILED,
    TaskTimedOut: TaskState.TIMED_OUT,
    TaskCanceled: TaskState.CANCELED,
}


class Audience(Protocol):
    """Who is told what happens, in the order it happens."""

    def task_ended(self, record: TaskRecord) -> None:
        """A task of this run is final."""
        ...

    def duplicate(self, receipt: Duplicate, original: TaskRecord | None) -> None:
        """A content has a task already; None when that task can't be read any more."""
        ...

    def refused(self, receipt: Refused) -> None:
        """Something was not taken."""
        ...

    def opened(self, receipt: Opened) -> None:
        """Something is an archive, whose members were handed in."""
        ...

    def moved_on(self) -> None:
        """The tally has changed."""
        ...


class AnalysisRun:
    """A run of `analyze`; it is used once."""

    def __init__(self, client: Client, tally: Tally, audience: Audience) -> None:
        self._client = client
        self._tally = tally
        self._audience = audience
        self._untold: deque[int | Duplicate] = deque()
        self._submitted = False
        self._stopped = False
        self._news = asyncio.Event()

    async def run(self, offers: AsyncIterator[Offer] | None, options: SubmissionOptions, began_at: float | None) -> bool:
        """Submit `offers` (None: only what was left over) and wait. True when all is final, False when the engine stopped before.

        `began_at` is when the engine was started: tasks that its recovery ended since then, and those that earlier runs left over, are
        of this run. None: only what is submitted is. Raises what a submission or a query raises, and what the audience raises.
        Cancelled or failed, the engine goes on with what it has.
        """
        try:
            position = await self._look_back(began_at)
            async with asyncio.TaskGroup() as strands:
                following = strands.create_task(self._follow(position))
                submitting = strands.create_task(self._submit(offers, options))
                await self._report()
                following.cancel()
                submitting.cancel()
        except EngineStopped:
            return False
        except BaseExceptionGroup as group:
            raise first_cause(group) from None
        return self._is_done

    @property
    def took_everything(self) -> bool:
        """False when the end came before all offers were in."""
        return self._submitted

    async def tell_rest(self, read: Read) -> None:
        """After the engine's end: tell what ended and was not told; `read` reads the store without the engine."""
        await self._look_again(read)
        await _each_unfinished(read, self._tally.still_waiting)
        while self._untold:
            await self._tell_some(read)
        self._audience.moved_on()

    @property
    def _is_done(self) -> bool:
        return self._submitted and not self._tally.waiting and not self._untold

    async def _look_back(self, began_at: float | None) -> Position:
        """Find what earlier runs left over; the position is of before."""
        position = (await self._client.overview()).position
        if began_at is None:
            return position
        final = TaskFilter(states=FINAL_STATES)
        total = (await self._client.query(TaskQuery(where=final, sort=TaskSort.ENDED, limit=0))).total
        recovered: list[TaskRecord] = []
        while total > 0:
            first = max(0, total - MAX_ROWS)
            page = await self._client.query(TaskQuery(where=final, sort=TaskSort.ENDED, offset=first, limit=total - first))
            since = [row for row in page.rows if (row.task.finished_at or 0.0) >= began_at]
            recovered = since + recovered
            total = first if len(since) == len(page.rows) else 0
        self._tally.left_over(row.task.id for row in recovered)
        for row in recovered:
            self._ended(row.task.id, row.task.state)
        await _each_unfinished(self._client.query, self._tally.left_over)
        return position

    async def _submit(self, offers: AsyncIterator[Offer] | None, options: SubmissionOptions) -> None:
        try:
            if offers is not None:
                await self._client.submit(offers, options, self._received)
            self._submitted = True
        except EngineStopped:
            self._stopped = True
        self._news.set()

    def _received(self, receipt: Receipt) -> None:
        self._tally.received(receipt)
        if isinstance(receipt, Refused):
            self._audience.refused(receipt)
        elif isinstance(receipt, Opened):
            self._audience.opened(receipt)
        elif isinstance(receipt, Duplicate):
            self._untold.append(receipt)
        self._news.set()

    async def _follow(self, position: Position) -> None:
        try:
            async for item in self._client.events(position):
                if isinstance(item, Gap):
                    await self._look_again(self._client.query)
                else:
                    self._happened(item)
        except EngineStopped:
            pass
        self._stopped = True
        self._news.set()

    def _happened(self, event: Event) -> None:
        state = _END_STATES.get(type(event.body))  # type: ignore[arg-type]
        if state is not None:
            assert isinstance(event.body, TaskCompleted | TaskFailed | TaskTimedOut | TaskCanceled)
            self._ended(event.body.task_id, state)

    async def _look_again(self, read: Read) -> None:
        for task_ids in _slices(sorted(self._tally.waiting)):
            page = await read(TaskQuery(where=TaskFilter(task_ids=task_ids), sort=TaskSort.ENDED, limit=MAX_ROWS))
            for row in page.rows:
                if row.task.state.is_final:
                    self._ended(row.task.id, row.task.state)

    def _ended(self, task_id: int, state: TaskState) -> None:
        if self._tally.ended_as(task_id, state):
            self._untold.append(task_id)
            self._news.set()

    async def _report(self) -> None:
        """Tell what there is to tell; returns when all is final and told, or when the engine has stopped."""
        try:
            while not self._is_done and not self._stopped:
                await self._news.wait()
                self._news.clear()
                while self._untold and not self._stopped:
                    await self._tell_some(self._client.query)
                self._audience.moved_on()
        except EngineStopped:
            self._stopped = True

    async def _tell_some(self, read: Read) -> None:
        """Read and tell the first of what is untold; if it can't be read, nothing of it is told."""
        some = [self._untold[index] for index in range(min(len(self._untold), MAX_ROWS))]
        task_ids = tuple({item if isinstance(item, int) else item.task_id for item in some})
        page = await read(TaskQuery(where=TaskFilter(task_ids=task_ids), limit=MAX_ROWS))
        rows = {row.task.id: row for row in page.rows}
        for item in some:
            self._untold.popleft()
            if isinstance(item, Duplicate):
                original = rows.get(item.task_id)
                if original is not None:
                    self._tally.judged_before(original)
                self._audience.duplicate(item, original)
            elif (row := rows.get(item)) is not None:
                self._tally.judged(row)
                self._audience.task_ended(row)


async def _each_unfinished(read: Read, take: Callable[[Iterable[int]], None]) -> None:
    """Hand the ids of all tasks that are not final to `take`, some of them twice."""
    # Tasks that end meanwhile move the later ones up. Read from the end, that shows some twice and leaves none out.
    where = TaskFilter(states=_UNFINISHED)
    unread = (await read(TaskQuery(where=where, limit=0))).total
    while unread > 0:
        first = max(0, unread - MAX_ROWS)
        page = await read(TaskQuery(where=where, sort=TaskSort.OLDEST, offset=first, limit=unread - first))
        take([row.task.id for row in page.rows])
        unread = first


def _slices(task_ids: Sequence[int]) -> Iterable[tuple[int, ...]]:
    for start in range(0, len(task_ids), MAX_ROWS):
        yield tuple(task_ids[start : start + MAX_ROWS])
