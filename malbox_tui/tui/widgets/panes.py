"""The panes that are drawn from the live picture alone: header, workers, timelines, event log."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from rich.text import Text

from malbox_tui.tui.header import header_line
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.past import bar_depends_on, log_text, timeline_axis, timeline_bar
from malbox_tui.tui.text import fit, joined_cells, plain
from malbox_tui.tui.widgets.line_view import LineView
from malbox_tui.tui.worker_line import worker_line

NAME_CELLS = 14
NAMES_FROM_WIDTH = 60
TIMELINE_SECONDS = (60.0, 300.0, 1800.0)


class HeaderBar(LineView, can_focus=False):
    """The pool in one line."""

    def __init__(self, picture: LivePicture, moment: Callable[[], Moment], host: str) -> None:
        super().__init__(id="header")
        self._picture = picture
        self._moment = moment
        self._host = host

    def line_count(self) -> int:
        """See `LineView`."""
        return 1

    def line(self, index: int, width: int) -> Text:
        """See `LineView`."""
        return header_line(self._picture.overview, self._moment(), width, self._host)


class WorkerStrip(LineView):
    """A line for each worker."""

    def __init__(self, picture: LivePicture, moment: Callable[[], Moment]) -> None:
        super().__init__(id="workers")
        self._picture = picture
        self._moment = moment

    def line_count(self) -> int:
        """See `LineView`."""
        return len(self._picture.overview.workers) if self._picture.overview else 0

    def line(self, index: int, width: int) -> Text:
        """See `LineView`."""
        overview = self._picture.overview
        assert overview is not None
        worker = overview.workers[index]
        group = next((group for group in overview.groups if group.name == worker.group), None)
        task = self._picture.tasks.get(worker.task_id) if worker.task_id is not None else None
        return worker_line(worker, task, group, self._moment(), width)


class Timelines(LineView):
    """A bar for each task that something happens to or happened to lately, the latest on top; each stays where it is."""

    HEADER_LINES = 1

    def __init__(self, picture: LivePicture, moment: Callable[[], Moment]) -> None:
        super().__init__(id="timelines")
        self._picture = picture
        self._moment = moment
        self._lines: dict[int, tuple[object, Text]] = {}
        """The line of each task that was on the screen lately, with what it was made from."""
        self.seconds = TIMELINE_SECONDS[0]

    def zoom(self) -> None:
        """The next of the lengths of time."""
        place = TIMELINE_SECONDS.index(self.seconds)
        self.seconds = TIMELINE_SECONDS[(place + 1) % len(TIMELINE_SECONDS)]
        self.changed()

    def line_count(self) -> int:
        """See `LineView`."""
        return len(self._picture.tasks)

    def header(self, width: int) -> Text:
        """See `LineView`."""
        room = self._room(width)
        return joined_cells([fit(plain(""), width - room - 1), timeline_axis(self.seconds, room, self._moment())])

    def line(self, index: int, width: int) -> Text:
        """See `LineView`."""
        task = next(islice(reversed(self._picture.tasks.values()), index, None))
        moment, room = self._moment(), self._room(width)
        made_from = (width, moment.dark, *bar_depends_on(task, self.seconds, room, moment))
        known = self._lines.get(task.id)
        if known is not None and known[0] == made_from:
            return known[1]
        words = f"{task.id:>5} {task.name}" if width >= NAMES_FROM_WIDTH else f"{task.id:>5}"
        label = fit(plain(words, moment.tone("muted")), width - room - 1)
        line = joined_cells([label, timeline_bar(task, self.seconds, room, moment)])
        if len(self._lines) > 4 * self.page_lines:
            self._lines.clear()
        self._lines[task.id] = (made_from, line)
        return line

    def _room(self, width: int) -> int:
        return max(10, width - 7 - (NAME_CELLS if width >= NAMES_FROM_WIDTH else 0))


class EventLog(LineView):
    """What happened, the latest on top."""

    def __init__(self, picture: LivePicture, moment: Callable[[], Moment], clock: Callable[[float], str]) -> None:
        super().__init__(id="events")
        self._picture = picture
        self._moment = moment
        self._clock = clock

    def line_count(self) -> int:
        """See `LineView`."""
        return len(self._picture.log)

    def line(self, index: int, width: int) -> Text:
        """See `LineView`."""
        return fit(log_text(self._picture.log[-1 - index], self._moment(), self._clock), width)
