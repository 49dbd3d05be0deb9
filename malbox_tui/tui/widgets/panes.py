"""The panes that are drawn from the live picture alone: header, banner, workers, timelines, event log."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from rich.text import Text

from malbox_tui.model.overview import Overview
from malbox_tui.ports import Attachment
from malbox_tui.tui.banner import Notice, banner_lines, notices
from malbox_tui.tui.groups import GroupChoice, group_line
from malbox_tui.tui.header import header_line
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.past import MACHINE_CELLS, bar_depends_on, log_text, timeline_axis, timeline_bar, timeline_label
from malbox_tui.tui.text import fit, joined_cells, plain
from malbox_tui.tui.widgets.line_view import LineView
from malbox_tui.tui.worker_line import Entry, entries, held_line, worker_line

NAME_CELLS = 14
NAMES_FROM_WIDTH = 60
MACHINES_FROM_WIDTH = 74
TIMELINE_SECONDS = (60.0, 300.0, 1800.0)


class HeaderBar(LineView, can_focus=False):
    """The pool in one line."""

    def __init__(
        self, picture: LivePicture, groups: GroupChoice, moment: Callable[[], Moment], host: str, attachment: Attachment | None
    ) -> None:
        super().__init__(id="header")
        self._picture = picture
        self._groups = groups
        self._moment = moment
        self._host = host
        self._attachment = attachment

    def line_count(self) -> int:
        """See `LineView`."""
        return 1

    def line(self, index: int, width: int) -> Text:
        """See `LineView`."""
        overview = self._picture.overview
        chosen = None if overview is None else self._groups.of(overview)
        return header_line(overview, chosen, self._moment(), width, self._attachment or self._host)


class Banner(LineView, can_focus=False):
    """What must not be missed, below the header; not there when all is well."""

    def __init__(self, picture: LivePicture, moment: Callable[[], Moment], away: Callable[[], Notice | None]) -> None:
        """`away` is what there is to say while the engine can't be reached."""
        super().__init__(id="banner")
        self._picture = picture
        self._moment = moment
        self._away = away
        self._lines: list[Text] = []
        self.problem: str | None = None
        """What the console itself can't do, besides what the engine says."""
        self.display = False

    def changed(self) -> None:
        """See `LineView`: there are more or fewer lines now, too."""
        overview, moment = self._picture.overview, self._moment()
        said = [] if overview is None else notices(overview, moment.now)
        if (away := self._away()) is not None:
            said.insert(0, away)
        elif self.problem is not None:
            said.insert(0, Notice("TROUBLE", "bad", f"The tasks can't be read: {self.problem}"))
        self._lines = banner_lines(said, moment, self.app.size.width)
        self.display = bool(self._lines)
        super().changed()

    def line_count(self) -> int:
        """See `LineView`."""
        return len(self._lines)

    def line(self, index: int, width: int) -> Text:
        """See `LineView`."""
        return self._lines[index]


class WorkerStrip(LineView):
    """The workers, group by group, with what they work on."""

    def __init__(self, picture: LivePicture, groups: GroupChoice, moment: Callable[[], Moment]) -> None:
        super().__init__(id="workers")
        self._picture = picture
        self._groups = groups
        self._moment = moment
        self._entries: list[Entry] = []
        self._made_from: Overview | None = None

    def line_count(self) -> int:
        """See `LineView`."""
        return len(self._current())

    def line(self, index: int, width: int) -> Text:
        """See `LineView`."""
        entry, overview, moment = self._current()[index], self._picture.overview, self._moment()
        assert overview is not None
        if entry.worker is None:
            assert entry.group is not None
            return group_line(entry.group, entry.group is self._groups.of(overview), moment, width)
        tasks = self._picture.tasks
        if entry.task_id is not None:
            return held_line(entry.worker, entry.task_id, tasks.get(entry.task_id), overview, moment, width)
        task = None if entry.worker.task_id is None else tasks.get(entry.worker.task_id)
        return worker_line(entry.worker, task, entry.group, overview, moment, width)

    def show_group(self) -> None:
        """Bring the chosen group into sight."""
        overview = self._picture.overview
        chosen = None if overview is None else self._groups.of(overview)
        lines = [index for index, entry in enumerate(self._current()) if entry.group is chosen]
        for index in (lines[-1:] + lines[:1]) if chosen is not None else ():
            self.show_line(index)
        self.changed()

    def _current(self) -> list[Entry]:
        """The lines of what was seen last."""
        overview = self._picture.overview
        if overview is not None and overview is not self._made_from:
            self._entries, self._made_from = entries(overview), overview
        return self._entries


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
        with_name = width >= NAMES_FROM_WIDTH
        label = timeline_label(task, with_name, self._names_machines(width), width - room - 1, moment)
        line = joined_cells([label, timeline_bar(task, self.seconds, room, moment)])
        if len(self._lines) > 4 * self.page_lines:
            self._lines.clear()
        self._lines[task.id] = (made_from, line)
        return line

    def _room(self, width: int) -> int:
        machine = MACHINE_CELLS + 1 if self._names_machines(width) else 0
        return max(10, width - 7 - (NAME_CELLS if width >= NAMES_FROM_WIDTH else 0) - machine)

    def _names_machines(self, width: int) -> bool:
        overview = self._picture.overview
        return width >= MACHINES_FROM_WIDTH and overview is not None and bool(overview.machines)


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
