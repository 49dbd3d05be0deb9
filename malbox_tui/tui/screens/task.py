"""One task in full: its timeline in numbers, why it waits or how it ended, plugins, screenshots, reports, results, log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from malbox_tui.model.errors import Disconnected, EngineStopped, MalboxError
from malbox_tui.model.queries import TaskFilter, TaskQuery, TaskRecord
from malbox_tui.model.report import REPORT_RESULT, PluginRun, ResultRef
from malbox_tui.model.task import Task, TaskState
from malbox_tui.ports import Client
from malbox_tui.reports.gathering import read_report
from malbox_tui.tui import keys
from malbox_tui.tui.countdown import countdown_in
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.pictures import Gallery, screenshots
from malbox_tui.tui.report_page import preview_lines
from malbox_tui.tui.screens.exporting import ask_where
from malbox_tui.tui.screens.report import ReportScreen
from malbox_tui.tui.task_page import MAX_LOG_BYTES, AtWork, in_order, log_lines, of_what, task_lines, unreadable_lines
from malbox_tui.tui.text import clock_time
from malbox_tui.tui.widgets.key_bar import KeyBar
from malbox_tui.tui.widgets.picture_view import PictureView

LOG_RESULT = "log"
MARGIN_CELLS = 4
"""What the page's padding and its scroll bar take."""

_AT_THE_MACHINE = (TaskState.RUNNING, TaskState.STOPPING)
"""States in which there may be something to see on its machine's screen."""


@dataclass(frozen=True, slots=True)
class _Screenshot:
    """The picture to be shown, and what it is in words."""

    result: ResultRef | None
    words: str


class _Shown:
    """The lines of a result, made anew for another width or theme alone."""

    def __init__(self, make: Callable[[Moment, int], list[Text]]) -> None:
        self._make = make
        self._made_for: tuple[bool, int] | None = None
        self._lines: list[Text] = []

    def lines(self, moment: Moment, width: int) -> list[Text]:
        """In lines of `width` cells."""
        if self._made_for != (moment.dark, width):
            self._made_for = (moment.dark, width)
            self._lines = self._make(moment, width)
        return self._lines


class TaskScreen(Screen[None]):
    """Everything about one task, live while it goes on. Arrows scroll."""

    AUTO_FOCUS = "#task-scroll"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal")]  # noqa: RUF012 - as the base declares it

    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.TASK_SCREEN)

    def __init__(
        self,
        task_id: int,
        client: Client,
        picture: LivePicture,
        gallery: Gallery,
        moment: Callable[[], Moment],
        clock: Callable[[float], str],
    ) -> None:
        super().__init__()
        self.task_id = task_id
        self._client = client
        self._picture = picture
        self._gallery = gallery
        self._moment = moment
        self._clock = clock
        self._record: TaskRecord | None = None
        self._read: dict[str, _Shown] = {}
        """What is shown of each result that was read, by its path: results never change."""
        self._page = Static(id="task-page")
        self._view = PictureView(gallery, moment, id="task-picture")
        self._reports = Static(id="task-reports")
        self._chosen: int | None = None
        """Which of an ended task's screenshots is shown, by its place among them; None: the last one."""

    @property
    def record(self) -> TaskRecord | None:
        """The task as it was seen last."""
        return self._record

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        with VerticalScroll(id="task-scroll"):
            with Container(classes="picture-panes"):
                yield self._page
                yield self._view
            yield self._reports
        yield KeyBar()

    async def on_mount(self) -> None:
        """Read it."""
        await self.reread()

    def on_resize(self) -> None:
        """Its lines have another width."""
        self.call_after_refresh(self.tick)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """See `Screen`: of one screenshot there is no other."""
        if action in ("report", "export"):
            return self._record is not None and self._record.task.state.is_final
        return action != "picture" or len(self._kept()) > 1

    def action_report(self) -> None:
        """The reports whole."""
        if self._record is not None:
            self.app.push_screen(ReportScreen(self._record, self._client, self._gallery, self._moment))

    def action_export(self) -> None:
        """Ask for a file, and write the report to it."""
        if self._record is not None:
            ask_where(self.app, self._record, self._client)

    def action_picture(self, step: int) -> None:
        """Another one of an ended task's screenshots."""
        last = len(self._kept()) - 1
        self._chosen = max(0, min(last, (last if self._chosen is None else self._chosen) + step))
        self.tick()

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
        self._record = page.rows[0] if page.rows else None
        if self._record is None:
            self._show_gone()
        else:
            for run in () if self._record.results_removed_at is not None else self._record.task.plugins:
                await self._read_results(run)
        self.tick()

    def _show_gone(self) -> None:
        problem = "It is not kept any more: it was removed with its sample."
        self._page.update(Text("\n").join(unreadable_lines(f"Task {self.task_id}", problem, self._moment())))
        self._reports.update("")
        self._view.display = False

    def tick(self) -> None:
        """Draw what moves with time alone."""
        if self._record is None:
            return
        moment = self._moment()
        self._view.display = self._show_screenshot(self._screenshot(self._record.task))
        is_beside = self._view.display and self.has_class("-normal")
        width = self.size.width * 3 // 5 if is_beside else self.size.width
        lines = task_lines(self._record, self._at_work(moment), moment, self._clock, width - MARGIN_CELLS)
        self._page.update(Text("\n").join(lines))
        room = max(2, self.size.width - MARGIN_CELLS)
        reports = [line for run in in_order(self._record.task.plugins) for line in self._of(run, moment, room)]
        self._reports.update(Text("\n").join(reports))

    def _of(self, run: PluginRun, moment: Moment, width: int) -> Iterable[Text]:
        for reference in run.results:
            if (shown := self._read.get(reference.path)) is not None:
                yield from shown.lines(moment, width)

    def _show_screenshot(self, screenshot: _Screenshot | None) -> bool:
        """Whether there is one, or will be."""
        if screenshot is not None:
            self._view.show(screenshot.result, lambda: screenshot.words)
        return screenshot is not None

    def _screenshot(self, task: Task) -> _Screenshot | None:
        """Of one at work in a machine the latest, of an ended one that which was chosen; None when there is none and will be none."""
        kept = self._kept()
        if kept:
            place = len(kept) - 1 if self._chosen is None else min(self._chosen, len(kept) - 1)
            others = " (← → for the others)" if len(kept) > 1 else ""
            return _Screenshot(kept[place], f"Screenshot {place + 1} of {len(kept)}{others}")
        if task.state not in _AT_THE_MACHINE or task.machine is None:
            return None
        latest, at = self._latest(task)
        if latest is None:
            return _Screenshot(None, f"No picture of {task.machine}'s screen yet.")
        ago = "" if at is None else f", {clock_time(self._moment().now - at)} ago"
        return _Screenshot(latest, f"The screen of {task.machine}{ago}")

    def _latest(self, task: Task) -> tuple[ResultRef | None, float | None]:
        """As it was told last, or as its machine has it if the console was opened after that."""
        live = self._picture.tasks.get(task.id)
        if live is not None and live.screenshot is not None:
            return live.screenshot, live.screenshot_at
        machines = () if self._picture.overview is None else self._picture.overview.machines
        holder = next((machine for machine in machines if machine.name == task.machine and machine.task_id == task.id), None)
        if holder is None or holder.screenshot_at is None or holder.screenshot_at < task.stage_since:
            return None, None
        return holder.screenshot, holder.screenshot_at

    def _kept(self) -> tuple[ResultRef, ...]:
        if self._record is None or self._record.results_removed_at is not None:
            return ()
        return screenshots(self._record.task.plugins)

    def _at_work(self, moment: Moment) -> AtWork:
        overview = self._picture.overview
        left = None if overview is None else countdown_in(overview, self.task_id, moment.now)
        return AtWork(self._picture.tasks.get(self.task_id), left)

    async def _read_results(self, run: PluginRun) -> None:
        for reference in run.results:
            if reference.name in (REPORT_RESULT, LOG_RESULT) and reference.path not in self._read:
                with suppress(Disconnected):
                    self._read[reference.path] = await self._shown_of(run, reference)

    async def _shown_of(self, run: PluginRun, reference: ResultRef) -> _Shown:
        if reference.name == REPORT_RESULT:
            report = await read_report(self._client.read, run, reference)
            return _Shown(lambda moment, width: preview_lines(report, moment, width))
        try:
            content = await self._client.read(reference, MAX_LOG_BYTES)
        except Disconnected:
            raise
        except MalboxError as error:
            title, problem = f"Log of {of_what(run.name, run)}", str(error)
            return _Shown(lambda moment, width: unreadable_lines(title, problem, moment))
        log = content.decode("utf-8", "surrogateescape")
        return _Shown(lambda moment, width: log_lines(run, log, moment))
