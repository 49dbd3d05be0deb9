"""`malbox-tui tasks` and `malbox-tui task ID`: what the store knows, also while an engine runs."""

from __future__ import annotations

import asyncio
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from malbox_tui.cli import table
from malbox_tui.cli.audience import table_layout, write_row
from malbox_tui.cli.engine_door import open_store, wall_time
from malbox_tui.cli.options import FLAG, GlobalOptions, enum_value, whole_number
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.records import task_record
from malbox_tui.cli.task_page import task_lines
from malbox_tui.cli.text import counted, tallied
from malbox_tui.config.folders import DataFolders
from malbox_tui.model.errors import UnknownTask
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskQuery
from malbox_tui.model.task import TaskState

_MAX_ID = 2**63 - 1


def tasks(
    *,
    json: Annotated[bool, FLAG] = False,
    state: Annotated[tuple[TaskState, ...] | None, Parameter(metavar="STATE", negative=(), name_transform=enum_value)] = None,
    limit: Annotated[int, Parameter(metavar="N", converter=whole_number, validator=Number(gte=1))] = 50,
    options: GlobalOptions | None = None,
) -> int:
    """List tasks, the newest first.

    Parameters
    ----------
    json
        Print one JSON object a line instead of a table.
    state
        Only tasks in this state; may be given more than once.
    limit
        At most so many.
    """
    folders = (options or GlobalOptions()).folders
    where = TaskFilter(states=frozenset(state) if state else None)
    asyncio.run(_list(folders, where, limit, json))
    return 0


def task(
    task_id: Annotated[int, Parameter(name="ID", converter=whole_number, validator=Number(gte=0, lte=_MAX_ID))],
    /,
    *,
    json: Annotated[bool, FLAG] = False,
    options: GlobalOptions | None = None,
) -> int:
    """Show one task: its stages in numbers, how it ended, what each plugin found.

    Parameters
    ----------
    task_id
        The task's number, as `malbox-tui tasks` shows it.
    json
        Print it as one JSON object.
    """
    asyncio.run(_show((options or GlobalOptions()).folders, task_id, json))
    return 0


async def _list(folders: DataFolders, where: TaskFilter, limit: int, as_json: bool) -> None:
    async with open_store(folders) as reader:
        shown = total = 0
        form = table_layout(0)
        while shown < limit:
            page = await reader.tasks(TaskQuery(where=where, offset=shown, limit=min(MAX_ROWS, limit - shown)), wall_time())
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
        if not as_json:
            counts = {state.value: count for state, count in (await reader.counts()).items()}
            gap = "\n" if shown else ""
            write_line(f"{gap}{shown} of {counted(total, 'task')} shown. In all: {tallied(counts) or 'none'}.")


async def _show(folders: DataFolders, task_id: int, as_json: bool) -> None:
    async with open_store(folders) as reader:
        page = await reader.tasks(TaskQuery(where=TaskFilter(task_ids=(task_id,)), limit=1), wall_time())
    if not page.rows:
        raise UnknownTask(task_id)
    if as_json:
        write_record(task_record(page.rows[0], folders.results))
        return
    for line in task_lines(page.rows[0], folders.results):
        write_line(line)
