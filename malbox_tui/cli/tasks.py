"""`malbox-tui tasks` and `malbox-tui task SELECTOR…`: what the store knows, also while an engine runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from msgspec import structs

from malbox_tui.cli import table
from malbox_tui.cli.audience import table_layout, write_row
from malbox_tui.cli.engine_door import open_store, wall_time
from malbox_tui.cli.options import FLAG, GlobalOptions, enum_value, whole_number
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.records import task_record
from malbox_tui.cli.selectors import Filters, Ids, Read, Selector, WrongSelection, chosen, name_bytes, parse_selector
from malbox_tui.cli.task_page import task_lines
from malbox_tui.cli.text import counted, tallied
from malbox_tui.config.folders import DataFolders
from malbox_tui.model.errors import UnknownTask
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskPage, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.task import TaskState

_ALL = frozenset(TaskState)


def tasks(
    *selectors: Annotated[str, Parameter(name="SELECTOR")],
    json: Annotated[bool, FLAG] = False,
    state: Annotated[tuple[TaskState, ...] | None, Parameter(metavar="STATE", negative=(), name_transform=enum_value)] = None,
    name: Annotated[str | None, Parameter(metavar="TEXT")] = None,
    limit: Annotated[int, Parameter(metavar="N", converter=whole_number, validator=Number(gte=1))] = 50,
    options: GlobalOptions | None = None,
) -> int:
    """List tasks, the newest first.

    Exit code 0: it is the list that was asked for, and may be empty; 2: there is none of what was chosen by id or SHA-256, or no store.

    Parameters
    ----------
    selectors
        Only these: ids, ranges of ids such as `3-9`, beginnings of a sample's SHA-256.
    json
        Print one JSON object a line instead of a table.
    state
        Only tasks in this state; may be given more than once.
    name
        Only tasks with a sample that came under a name with this in it.
    limit
        At most so many.
    """
    where = TaskFilter(states=frozenset(state) if state else None, name_contains=None if name is None else name_bytes(name))
    parsed = [parse_selector(word) for word in selectors]
    asyncio.run(_list((options or GlobalOptions()).folders, parsed, where, limit, json))
    return 0


def task(
    *selectors: Annotated[str, Parameter(name="SELECTOR")],
    json: Annotated[bool, FLAG] = False,
    options: GlobalOptions | None = None,
) -> int:
    """Show a task, or some: stages in numbers, how it ended, what each plugin found.

    Exit code 0: all that was chosen is shown; 2: some of it isn't there.

    Parameters
    ----------
    selectors
        Ids as `malbox-tui tasks` shows them, ranges of ids such as `3-9`, beginnings of a sample's SHA-256.
    json
        Print each as one JSON object.
    """
    if not selectors:
        raise WrongSelection("Say which tasks: ids, ranges of ids, or beginnings of a SHA-256.")
    asyncio.run(_show((options or GlobalOptions()).folders, [parse_selector(word) for word in selectors], json))
    return 0


async def _list(folders: DataFolders, selectors: Sequence[Selector], where: TaskFilter, limit: int, as_json: bool) -> None:
    async with open_store(folders) as reader:

        async def read(query: TaskQuery) -> TaskPage:
            return await reader.tasks(query, wall_time())

        if selectors:
            where = structs.replace(where, task_ids=(await chosen(read, selectors, Filters(), _ALL)).task_ids)
        shown, total = await _write_rows(folders, read, where, limit, as_json)
        if not as_json:
            counts = {state.value: count for state, count in (await reader.counts()).items()}
            gap = "\n" if shown else ""
            write_line(f"{gap}{shown} of {counted(total, 'task')} shown. In all: {tallied(counts) or 'none'}.")
        await _check_named(read, selectors)


async def _write_rows(folders: DataFolders, read: Read, where: TaskFilter, limit: int, as_json: bool) -> tuple[int, int]:
    """Returns how many were shown, and how many there are."""
    shown = total = 0
    form = table_layout(0)
    while shown < limit:
        page = await read(TaskQuery(where=where, offset=shown, limit=min(MAX_ROWS, limit - shown)))
        total = page.total
        if not page.rows:
            break
        if not as_json and not shown:
            form = table_layout(max(row.task.id for row in page.rows))
            write_row(table.header(), form)
        for row in page.rows:
            if as_json:
                write_record(task_record(row, folders.results))
            else:
                write_row(table.task_row(row), form)
        shown += len(page.rows)
    return shown, total


async def _show(folders: DataFolders, selectors: Sequence[Selector], as_json: bool) -> None:
    rows: list[TaskRecord] = []
    async with open_store(folders) as reader:

        async def read(query: TaskQuery) -> TaskPage:
            return await reader.tasks(query, wall_time())

        task_ids = (await chosen(read, selectors, Filters(), _ALL)).task_ids
        for start in range(0, len(task_ids), MAX_ROWS):
            some = TaskFilter(task_ids=task_ids[start : start + MAX_ROWS])
            rows += (await read(TaskQuery(where=some, sort=TaskSort.OLDEST, limit=MAX_ROWS))).rows
        for row in rows:
            if as_json:
                write_record(task_record(row, folders.results))
                continue
            if row is not rows[0]:
                write_line("")
            for line in task_lines(row, folders.results):
                write_line(line)
        await _check_named(read, selectors)


async def _check_named(read: Read, selectors: Sequence[Selector]) -> None:
    """Raises `UnknownTask` for the first id that was given by itself and that no task has."""
    named = tuple(dict.fromkeys(selector.first for selector in selectors if isinstance(selector, Ids) and selector.is_named))
    for start in range(0, len(named), MAX_ROWS):
        some = named[start : start + MAX_ROWS]
        page = await read(TaskQuery(where=TaskFilter(task_ids=some), limit=MAX_ROWS))
        known = {row.task.id for row in page.rows}
        for task_id in some:
            if task_id not in known:
                raise UnknownTask(task_id)
