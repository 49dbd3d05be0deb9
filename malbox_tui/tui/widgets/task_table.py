"""The task table: a window over all tasks, which the engine filters and sorts. The cursor is on a task, not on a row."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from rich.text import Text
from textual.events import Click
from textual.message import Message

from malbox_tui.model.errors import Disconnected, EngineStopped, MalboxError
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskPage, TaskQuery, TaskRecord, TaskSort
from malbox_tui.tui import keys
from malbox_tui.tui.columns import line_depends_on, task_header, task_line
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import plain
from malbox_tui.tui.widgets.line_view import LineView

Ask = Callable[[TaskQuery], Awaitable[TaskPage]]

HINT_MARGIN = 3

_EMPTY = TaskPage(rows=(), total=0, offset=0, clock=0.0)


class TaskTable(LineView, can_focus=True):
    """Rows of the window that was fetched last; outside of it, dots until the next window is there."""

    BINDINGS = keys.bindings(keys.TABLE)
    HEADER_LINES = 1

    class Moved(Message):
        """The window is too small for what is visible, or doesn't hold the task under the cursor."""

    def __init__(self, ask: Ask, moment: Callable[[], Moment], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._ask = ask
        self._moment = moment
        self._page = _EMPTY
        self._places: dict[int, int] = {}
        """Where in the window each of its tasks is."""
        self._is_behind = True
        """What is shown is not yet what was asked for last."""
        self._lines: dict[int, tuple[TaskRecord, object, Text]] = {}
        """The line of each task of the window, with what it was made from."""
        self.problem: str | None = None
        """Why the tasks couldn't be read when they were asked for last."""
        self.hint: tuple[str, ...] = ()
        """What is shown in the middle when no task matches."""
        self.where = TaskFilter()
        self.sort = TaskSort.NEWEST
        self.cursor_id: int | None = None
        self._cursor_at = 0
        """Where the cursor stood last: it stays there when its task is gone."""
        self._follows_top = True
        """The cursor was never moved: it stays on the first row."""

    @property
    def total(self) -> int:
        """How many tasks match."""
        return self._page.total

    @property
    def current(self) -> TaskRecord | None:
        """The task under the cursor, as it was seen last."""
        place = None if self.cursor_id is None else self._places.get(self.cursor_id)
        return None if place is None else self._page.rows[place]

    async def chosen(self) -> TaskRecord | None:
        """As `current`, but of what was asked for last: when that is not there yet, it is waited for."""
        if self._is_behind:
            await self.fetch()
        return self.current

    async def fetch(self) -> None:
        """Ask for the window again. The cursor stays on its task, and that on its line of the screen.

        An engine that has stopped or can't be reached answers no more, and a store may fail: what was seen last stays.
        """
        try:
            page = await self._window()
        except (EngineStopped, Disconnected):
            return
        except MalboxError as error:
            self.problem = str(error)
            return
        self.problem = None
        before = self.cursor_index()
        self._page, self._is_behind = page, False
        self._places = {record.task.id: place for place, record in enumerate(page.rows)}
        self._lines = {task_id: line for task_id, line in self._lines.items() if task_id in self._places}
        self._put_cursor(before)
        self.changed()

    def line_count(self) -> int:
        """See `LineView`."""
        return self._page.total or len(self.hint) + HINT_MARGIN

    def header(self, width: int) -> Text:
        """See `LineView`."""
        return task_header(width, self._moment())

    def line(self, index: int, width: int) -> Text:
        """See `LineView`."""
        place = index - self._page.offset
        if self._page.total == 0:
            return self._hint_line(index, width)
        if 0 <= place < len(self._page.rows):
            return self._task_line(self._page.rows[place], width)
        return plain("…", self._moment().tone("muted"))

    def cursor_index(self) -> int | None:
        """See `LineView`."""
        place = None if self.cursor_id is None else self._places.get(self.cursor_id)
        return None if place is None else self._page.offset + place

    def show(self, where: TaskFilter, sort: TaskSort) -> None:
        """Ask for other tasks from now on; the next `fetch` brings them."""
        self.where, self.sort, self._is_behind = where, sort, True

    def put_cursor_on(self, task_id: int) -> None:
        """Put the cursor on a task; the next `fetch` brings it into the window."""
        self.cursor_id, self._follows_top, self._is_behind = task_id, False, True
        self.post_message(self.Moved())

    def action_cursor(self, rows: int) -> None:
        """Move the cursor."""
        self._move_to((self.cursor_index() or self._cursor_at) + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by what is visible at once."""
        self.action_cursor(pages * max(1, self.page_lines - 1))

    def action_edge(self, direction: int) -> None:
        """Move the cursor to the first or the last row."""
        self._move_to(0 if direction < 0 else self._page.total - 1)
        self._follows_top = direction < 0

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scrolled by wheel or bar: the window may have to follow."""
        super().watch_scroll_y(old_value, new_value)
        if not self._covers_what_is_visible():
            self.post_message(self.Moved())

    def on_click(self, event: Click) -> None:
        """Put the cursor where the mouse was."""
        index = self.clicked_index(event)
        if index is not None:
            self._move_to(index)

    def _move_to(self, index: int) -> None:
        if not self._page.total:
            return
        index = max(0, min(index, self._page.total - 1))
        self._cursor_at = index
        self._follows_top = False
        place = index - self._page.offset
        self.show_line(index)
        is_there = 0 <= place < len(self._page.rows)
        self.cursor_id = self._page.rows[place].task.id if is_there else None
        self.changed()
        if not is_there or not self._covers_what_is_visible():
            self._is_behind |= not is_there
            self.post_message(self.Moved())

    async def _window(self) -> TaskPage:
        """The window for what is visible, asked for anew when a key wanted another one meanwhile."""
        while True:
            query, cursor = self._query(), (self.cursor_id, self._cursor_at)
            page = await self._ask(query)
            if self.cursor_id is not None and not self._follows_top and not _holds(page, self.cursor_id):
                around = await self._ask(msgspec.structs.replace(query, around=self.cursor_id))
                page = around if _holds(around, self.cursor_id) else page
            is_of_today = (query.where, query.sort) == (self.where, self.sort)
            if is_of_today and (cursor == (self.cursor_id, self._cursor_at) or _holds(page, self.cursor_id)):
                return page

    def _task_line(self, record: TaskRecord, width: int) -> Text:
        moment = self._moment()
        stamp = (width, moment.dark, line_depends_on(record, moment))
        known = self._lines.get(record.task.id)
        if known is not None and known[1] == stamp and known[0] == record:
            return known[2]
        line = task_line(record, width, moment)
        self._lines[record.task.id] = (record, stamp, line)
        return line

    def _hint_line(self, index: int, width: int) -> Text:
        place = index - HINT_MARGIN
        words = self.hint[place] if place >= 0 else ""
        return plain(words.center(width), self._moment().tone("muted"))

    def _query(self) -> TaskQuery:
        lines = self.page_lines
        first = max(0, round(self.scroll_offset.y) - lines)
        return TaskQuery(where=self.where, sort=self.sort, offset=first, limit=min(MAX_ROWS, 3 * lines + 2))

    def _put_cursor(self, before: int | None) -> None:
        if not self._page.rows:
            self.cursor_id, self._cursor_at = None, 0
            return
        if self._follows_top:
            self.cursor_id, self._cursor_at = self._page.rows[0].task.id if not self._page.offset else self.cursor_id, 0
            return
        now = self.cursor_index()
        if now is None:
            place = max(0, min(self._cursor_at - self._page.offset, len(self._page.rows) - 1))
            self.cursor_id = self._page.rows[place].task.id
            now = self._page.offset + place
        elif before is not None and now != before:
            self.scroll_to(y=max(0, round(self.scroll_offset.y) + now - before), animate=False, force=True)
        self._cursor_at = now

    def _covers_what_is_visible(self) -> bool:
        """With some lines to spare on either side, so that the next window is there before it is needed."""
        top, spare = round(self.scroll_offset.y), self.page_lines // 2
        first, last = max(0, top - spare), min(top + self.page_lines + spare, self._page.total)
        return self._page.offset <= first and last <= self._page.offset + len(self._page.rows)


def _holds(page: TaskPage, task_id: int | None) -> bool:
    return any(record.task.id == task_id for record in page.rows)
