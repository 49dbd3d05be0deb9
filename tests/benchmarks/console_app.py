"""One of three apps showing the same changing tasks: `python -m tests.benchmarks.console_app KIND ROWS RATE SECONDS`.

KIND is `console` (the product), `bare` (a list drawn line by line and nothing else) or `datatable` (Textual's own table). RATE is
changes of a task's state a second.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import ClassVar

import msgspec
from rich.segment import Segment
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import DataTable

from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.events import Event, Gap, Position, TaskStageChanged, TaskStarting
from malbox_tui.model.overview import GroupView, Overview
from malbox_tui.model.queries import TaskPage, TaskQuery, TaskRecord
from malbox_tui.model.report import ResultRef
from malbox_tui.model.sample import Sample, SampleName
from malbox_tui.model.submission import Account, Offer, Receipt, SubmissionOptions
from malbox_tui.model.task import Task, TaskState
from malbox_tui.ports import Dropped
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.columns import task_line
from malbox_tui.tui.console import Surroundings
from malbox_tui.tui.moment import Moment

STATES = (TaskState.PENDING, TaskState.INITIALIZING, TaskState.RUNNING, TaskState.STOPPING)
TURNS_PER_SECOND = 50


class Tasks:
    """Rows whose states change at a rate."""

    def __init__(self, count: int) -> None:
        self.records = [_record(number) for number in range(count, 0, -1)]
        self._random = random.Random(7)

    def change(self) -> int:
        """Move a task on; returns its place."""
        place = self._random.randrange(len(self.records))
        task = self.records[place].task
        state = STATES[(STATES.index(task.state) + 1) % len(STATES)]
        changed = msgspec.structs.replace(task, state=state, stage_since=time.time())  # noqa: TID251 - no engine here
        self.records[place] = TaskRecord(changed, self.records[place].sample)
        return place

    async def changes(self, rate: float) -> AsyncIterator[int]:
        """The place of each changed row, at the rate."""
        owed, last = 0.0, time.monotonic()
        while True:
            await asyncio.sleep(1 / TURNS_PER_SECOND)  # noqa: TID251 - a load
            now = time.monotonic()
            owed, last = owed + (now - last) * rate, now
            while owed >= 1:
                owed -= 1
                yield self.change()


def _record(number: int) -> TaskRecord:
    sha256 = f"{number:064x}"
    now = time.time()  # noqa: TID251 - no engine here
    task = Task(id=number, sha256=sha256, created_at=now, stage_since=now)
    return TaskRecord(
        task, Sample(sha256=sha256, size_bytes=number * 991, first_seen_at=now, names=(SampleName(b"sample %d.exe" % number),))
    )


class LoadClient:
    """An engine's door over `Tasks`."""

    def __init__(self, tasks: Tasks, rate: float) -> None:
        self._tasks = tasks
        self._rate = rate
        self._seqs = itertools.count(2)

    async def do(self, command: Command) -> CommandOutcome:
        return CommandOutcome(done=True, message="done")

    async def submit(
        self, offers: AsyncIterator[Offer], options: SubmissionOptions, on_receipt: Callable[[Receipt], None] | None = None
    ) -> Account:
        return Account()

    async def overview(self) -> Overview:
        counts = dict.fromkeys(TaskState, 0) | {TaskState.PENDING: len(self._tasks.records)}
        group = GroupView(name="default", min_workers=1, max_workers=4, active=4, busy=4, idle_timeout_s=60.0)
        position = Position("load", 1, next(self._seqs))
        now = time.time()  # noqa: TID251 - no engine here
        return Overview(clock=now, position=position, counts=counts, groups=(group,), workers=(), isolation="bubblewrap")

    async def query(self, query: TaskQuery) -> TaskPage:
        rows = tuple(self._tasks.records[query.offset : query.offset + query.limit])
        return TaskPage(rows=rows, total=len(self._tasks.records), offset=query.offset, clock=0.0)

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        return b""

    async def events(self, after: Position | None) -> AsyncIterator[Event | Gap]:
        async for place in self._tasks.changes(self._rate):
            task = self._tasks.records[place].task
            body: TaskStarting | TaskStageChanged = TaskStageChanged(task_id=task.id, state=task.state)
            if task.state is TaskState.INITIALIZING:
                body = TaskStarting(task_id=task.id, worker="w", attempt=1)
            yield Event(Position("load", 1, next(self._seqs)), task.stage_since, body)


class _NoIntake:
    def files(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        raise AssertionError("nothing is looked at")

    def offers(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        raise AssertionError("nothing is added")

    def dropped(self, text: str) -> Dropped:
        return Dropped((), "nothing is added")

    def completions(self, text: str, limit: int) -> list[str]:
        return []


class BareList(ScrollView, can_focus=True):
    """A list drawn line by line; only changed lines that are visible are drawn again."""

    BINDINGS: ClassVar[list[BindingType]] = [("down", "down", "down")]

    def __init__(self, tasks: Tasks) -> None:
        super().__init__()
        self.tasks = tasks
        self.cursor = 0

    def on_mount(self) -> None:
        self.virtual_size = Size(140, len(self.tasks.records))
        self.set_interval(1.0, self.refresh)  # the elapsed times, which the console shows too

    def render_line(self, y: int) -> Strip:
        place = round(self.scroll_offset.y) + y
        text = task_line(self.tasks.records[place], self.size.width, Moment(time.time()))  # noqa: TID251 - no engine here
        style = self.rich_style + self.get_visual_style(partial=True).rich_style if place == self.cursor else self.rich_style
        return Strip(Segment.apply_style(list(text.render(self.app.console)), style)).adjust_cell_length(self.size.width)

    def changed(self, place: int) -> None:
        y = place - round(self.scroll_offset.y)
        if 0 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def action_down(self) -> None:
        self.cursor += 1
        self.refresh()


class BareApp(App[None]):
    def __init__(self, tasks: Tasks, rate: float) -> None:
        super().__init__()
        self._tasks = tasks
        self._rate = rate
        self._list = BareList(tasks)

    def compose(self) -> ComposeResult:
        yield self._list

    def on_mount(self) -> None:
        self._list.focus()
        self.run_worker(self._follow())

    async def _follow(self) -> None:
        async for place in self._tasks.changes(self._rate):
            self._list.changed(place)


class DataTableApp(App[None]):
    def __init__(self, tasks: Tasks, rate: float) -> None:
        super().__init__()
        self._tasks = tasks
        self._rate = rate
        self._table: DataTable[Text] = DataTable(cursor_type="row")

    def compose(self) -> ComposeResult:
        yield self._table

    def on_mount(self) -> None:
        for title in ("id", "sample", "size", "state"):
            self._table.add_column(title, key=title)
        for record in self._tasks.records:
            name = record.sample.names[0].name.decode()
            cells = (str(record.task.id), name, str(record.sample.size_bytes), record.task.state.value)
            self._table.add_row(*map(Text, cells), key=str(record.task.id))
        self._table.focus()
        self.run_worker(self._follow())

    async def _follow(self) -> None:
        async for place in self._tasks.changes(self._rate):
            task = self._tasks.records[place].task
            self._table.update_cell(str(task.id), "state", Text(task.state.value))


def main(kind: str, rows: int, rate: float, seconds: float) -> None:
    """Run one app for a time."""
    tasks = Tasks(rows)
    app: App[object]
    if kind == "console":
        around = Surroundings(LoadClient(tasks, rate), _NoIntake(), "ana", "sbx-01", lambda _mode: None)
        app = MalboxApp(around)  # type: ignore[assignment]
    else:
        app = (BareApp if kind == "bare" else DataTableApp)(tasks, rate)  # type: ignore[assignment]
    if seconds:
        app.set_timer(seconds, lambda: app.exit(None))
    app.run()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
