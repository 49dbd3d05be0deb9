"""The task table: a window over many tasks, and a cursor that is on a task, wherever that stands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from malbox_tui.model.queries import TaskFilter, TaskPage, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.sample import Sample, SampleName
from malbox_tui.model.task import Task
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.widgets.task_table import TaskTable


class Rows:
    """An engine's answers over a list of ids, the newest first, and how many were asked for."""

    def __init__(self, count: int) -> None:
        self.ids = list(range(count, 0, -1))
        self.most_rows_asked = 0
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()

    async def ask(self, query: TaskQuery) -> TaskPage:
        self.most_rows_asked = max(self.most_rows_asked, query.limit)
        self.asked.set()
        ids = [i for i in self.ids if query.where.task_ids is None or i in query.where.task_ids]
        offset = query.offset
        if query.around in ids:
            offset = max(0, ids.index(query.around) - query.limit // 2)
        window = ids[offset : offset + query.limit]
        await self.may_answer.wait()
        return TaskPage(rows=tuple(map(_record, window)), total=len(ids), offset=offset, clock=0.0)


def _record(task_id: int) -> TaskRecord:
    sha256 = f"{task_id:064x}"
    task = Task(id=task_id, sha256=sha256, created_at=0.0, stage_since=0.0)
    return TaskRecord(task, Sample(sha256=sha256, size_bytes=1, first_seen_at=0.0, names=(SampleName(b"s%d" % task_id),)))


class TableApp(App[None]):
    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self.rows = rows
        self.table = TaskTable(rows.ask, lambda: Moment(0.0), id="tasks")

    def compose(self) -> ComposeResult:
        yield self.table

    async def on_mount(self) -> None:
        self.table.focus()
        await self.table.fetch()

    async def on_task_table_moved(self) -> None:
        await self.table.fetch()

    def line_of(self, task_id: int) -> int | None:
        """On which line of the screen a task stands."""
        for y in range(self.table.size.height):
            if f" {task_id} " in self.table.render_line(y).text[:8] + " ":
                return y
        return None


async def _with(count: int, test: Callable[[TableApp, Pilot[None]], object]) -> TableApp:
    app = TableApp(Rows(count))
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.pause()
        await test(app, pilot)  # type: ignore[misc]
    return app


async def test_the_cursor_begins_on_the_newest_and_follows_it_until_it_is_moved() -> None:
    async def test(app: TableApp, pilot: Pilot[None]) -> None:
        assert app.table.cursor_id == 50
        app.rows.ids.insert(0, 51)
        await app.table.fetch()
        assert app.table.cursor_id == 51
        await pilot.press("down")
        assert app.table.cursor_id == 50
        app.rows.ids.insert(0, 52)
        await app.table.fetch()
        assert app.table.cursor_id == 50

    await _with(50, test)


@pytest.mark.slow
async def test_a_task_stays_on_its_line_while_others_come_above_it() -> None:
    async def test(app: TableApp, pilot: Pilot[None]) -> None:
        for _ in range(30):
            await pilot.press("down")
        await pilot.pause()
        chosen, line = app.table.cursor_id, app.line_of(app.table.cursor_id or 0)
        assert chosen == 70
        assert line is not None
        for task_id in range(101, 140):
            app.rows.ids.insert(0, task_id)
        await app.table.fetch()
        await pilot.pause()
        assert app.table.cursor_id == chosen
        assert app.line_of(chosen) == line

    await _with(100, test)


async def test_when_the_task_is_gone_the_cursor_stays_where_it_was() -> None:
    async def test(app: TableApp, pilot: Pilot[None]) -> None:
        await pilot.press("down", "down", "down")
        assert app.table.cursor_id == 17
        app.rows.ids.remove(17)
        await app.table.fetch()
        assert app.table.cursor_id == 16
        app.rows.ids.clear()
        await app.table.fetch()
        assert app.table.current is None
        await pilot.press("down", "end", "pageup")
        assert app.table.current is None

    await _with(20, test)


async def test_a_hundred_thousand_rows_are_walked_through_a_small_window() -> None:
    async def test(app: TableApp, pilot: Pilot[None]) -> None:
        await pilot.press("end")
        await pilot.pause()
        assert app.table.cursor_id == 1
        assert app.line_of(1) == app.table.size.height - 1
        await pilot.press("pageup", "pageup")
        await pilot.pause()
        assert app.table.cursor_id == 1 + 2 * (app.table.page_lines - 1)
        await pilot.press("home")
        await pilot.pause()
        assert app.table.cursor_id == 100_000
        app.table.scroll_to(y=50_000, animate=False, force=True)
        await pilot.pause()
        assert app.line_of(50_000) is not None, "the window followed"

    app = await _with(100_000, test)
    assert app.rows.most_rows_asked < 100


async def test_a_filter_that_hides_the_task_moves_the_cursor_and_one_that_does_not_leaves_it() -> None:
    async def test(app: TableApp, pilot: Pilot[None]) -> None:
        await pilot.press("down", "down")
        assert app.table.cursor_id == 48
        app.table.show(TaskFilter(task_ids=(48, 20, 10)), TaskSort.NEWEST)
        await app.table.fetch()
        assert (app.table.cursor_id, app.table.total) == (48, 3)
        app.table.show(TaskFilter(task_ids=(20, 10)), TaskSort.NEWEST)
        await app.table.fetch()
        assert app.table.cursor_id in (20, 10)

    await _with(50, test)


async def test_an_answer_that_comes_after_the_cursor_moved_on_does_not_take_it_back() -> None:
    app = TableApp(Rows(1000))
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.pause()
        app.rows.asked.clear()
        app.rows.may_answer.clear()
        late = asyncio.create_task(app.table.fetch())  # noqa: TID251 - a frame of news
        await app.rows.asked.wait()
        app.table.action_edge(1)
        app.rows.may_answer.set()
        await late
        assert app.table.cursor_id == 1


async def test_an_answer_to_what_was_asked_before_the_filter_changed_is_not_shown() -> None:
    app = TableApp(Rows(1000))
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.pause()
        app.rows.asked.clear()
        app.rows.may_answer.clear()
        late = asyncio.create_task(app.table.fetch())  # noqa: TID251 - a frame of news
        await app.rows.asked.wait()
        app.table.show(TaskFilter(task_ids=(20, 10)), TaskSort.NEWEST)
        app.rows.may_answer.set()
        await late
        assert (app.table.total, app.table.cursor_id) == (2, 20)


async def test_moving_the_cursor_within_the_window_asks_the_engine_nothing() -> None:
    async def test(app: TableApp, pilot: Pilot[None]) -> None:
        await app.table.fetch()
        app.rows.asked.clear()
        await pilot.press("down", "down", "up", "pagedown")
        assert not app.rows.asked.is_set()

    await _with(1000, test)


async def test_a_click_puts_the_cursor_on_the_row_that_was_hit() -> None:
    async def test(app: TableApp, pilot: Pilot[None]) -> None:
        app.table.styles.border = ("round", "white")
        await pilot.pause()
        top = app.table.content_region.y - app.table.region.y
        assert top == 1
        for task_id in (50, 47):
            line = app.line_of(task_id)
            assert line is not None
            await pilot.click(app.table, offset=(5, top + line))
            assert app.table.cursor_id == task_id
        await pilot.click(app.table, offset=(5, top))
        assert app.table.cursor_id == 47, "the header is no row"

    await _with(50, test)


async def test_an_empty_table_says_what_to_do() -> None:
    async def test(app: TableApp, pilot: Pilot[None]) -> None:
        app.table.hint = ("Drop files here.",)
        app.table.changed()
        await pilot.pause()
        shown = [app.table.render_line(y).text.strip() for y in range(app.table.size.height)]
        assert "Drop files here." in shown

    await _with(0, test)


@pytest.mark.parametrize("size", [(60, 6), (300, 100)])
async def test_any_size_is_drawn(size: tuple[int, int]) -> None:
    app = TableApp(Rows(1000))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for y in range(app.table.size.height):
            assert app.table.render_line(y).cell_length <= size[0]
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert app.line_of(1000) is not None
