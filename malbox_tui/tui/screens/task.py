"""One task in full: its timeline in numbers, why it waits or how it ended, plugins with progress, reports, results, log."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from malbox_tui.model.errors import Disconnected, EngineStopped, MalboxError
from malbox_tui.model.queries import TaskFilter, TaskQuery, TaskRecord
from malbox_tui.model.report import REPORT_RESULT, PluginRun, ResultRef
from malbox_tui.ports import Client
from malbox_tui.tui import keys
from malbox_tui.tui.countdown import countdown_in
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.report_page import report_lines
from malbox_tui.tui.task_page import MAX_LOG_BYTES, AtWork, log_lines, task_lines, unreadable_lines
from malbox_tui.tui.widgets.key_bar import KeyBar

MAX_REPORT_BYTES = 1024 * 1024
LOG_RESULT = "log"
MARGIN_CELLS = 4
"""What the page's padding and its scroll bar take."""


class TaskScreen(Screen[None]):
    """Everything about one task, live while it goes on. Arrows scroll."""

    AUTO_FOCUS = "#task-scroll"

    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.TASK_SCREEN)

    def __init__(
        self,
        task_id: int,
        client: Client,
        picture: LivePicture,
        moment: Callable[[], Moment],
        clock: Callable[[float], str],
    ) -> None:
        super().__init__()
        self.task_id = task_id
        self._client = client
        self._picture = picture
        self._moment = moment
        self._clock = clock
        self._record: TaskRecord | None = None
        self._read: dict[str, list[Text]] = {}
        """The lines of each result that was read, by its path: results never change."""
        self._page = Static(id="task-page")

    @property
    def record(self) -> TaskRecord | None:
        """The task as it was seen last."""
        return self._record

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        with VerticalScroll(id="task-scroll"):
            yield self._page
        yield KeyBar()

    async def on_mount(self) -> None:
        """Read it."""
        await self.reread()

    async def reread(self) -> None:
        """Ask for the task again, and for results that are new."""
        try:
            page = await self._client.query(TaskQuery(where=TaskFilter(task_ids=(self.task_id,))))
        except EngineStopped:
            raise
        except MalboxError as error:
            if self._record is None:
                self._page.update(Text("\n").join(unreadable_lines(f"Task {self.task_id}", str(error), self._moment())))
            return
        if page.rows:
            self._record = page.rows[0]
            for run in self._record.task.plugins:
                await self._read_results(run)
        self.tick()

    def tick(self) -> None:
        """Draw what moves with time alone."""
        if self._record is None:
            return
        moment = self._moment()
        lines = task_lines(self._record, self._at_work(moment), moment, self._clock, self.size.width - MARGIN_CELLS)
        for run in self._record.task.plugins:
            for reference in run.results:
                lines += self._read.get(reference.path, [])
        self._page.update(Text("\n").join(lines))

    def _at_work(self, moment: Moment) -> AtWork:
        overview = self._picture.overview
        left = None if overview is None else countdown_in(overview, self.task_id, moment.now)
        return AtWork(self._picture.tasks.get(self.task_id), left)

    async def _read_results(self, run: PluginRun) -> None:
        for reference in run.results:
            if reference.name in (REPORT_RESULT, LOG_RESULT) and reference.path not in self._read:
                with suppress(Disconnected):
                    self._read[reference.path] = await self._lines_of(run, reference)

    async def _lines_of(self, run: PluginRun, reference: ResultRef) -> list[Text]:
        is_report = reference.name == REPORT_RESULT
        try:
            content = await self._client.read(reference, MAX_REPORT_BYTES if is_report else MAX_LOG_BYTES)
        except Disconnected:
            raise
        except MalboxError as error:
            return unreadable_lines(f"{'Report' if is_report else 'Log'} of {run.name}", str(error), self._moment())
        if is_report:
            return report_lines(run, content, self._moment())
        return log_lines(run, content.decode("utf-8", "surrogateescape"), self._moment())
