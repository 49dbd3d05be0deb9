"""`malbox-tui report TASK`: what was found in a task, to take along: JSON, Markdown or one HTML page. Also beside a running engine."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from malbox_tui.cli.engine_door import open_store, wall_time
from malbox_tui.cli.options import GlobalOptions, enum_value, some_path, whole_number
from malbox_tui.cli.output import OutputClosed, abandon_stdout, tell
from malbox_tui.model.errors import UnknownTask
from malbox_tui.model.queries import TaskFilter, TaskQuery
from malbox_tui.reports.new_file import write_file
from malbox_tui.reports.writing import Form, form_of, written


def report(
    task_id: Annotated[int, Parameter(name="TASK", converter=whole_number, validator=Number(gte=1))],
    /,
    *,
    form: Annotated[Form | None, Parameter(name="--as", metavar="FORM", name_transform=enum_value, show_default=False)] = None,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"), metavar="FILE", converter=some_path)] = None,
    options: GlobalOptions | None = None,
) -> int:
    """Write the report of a task: verdict, why, and what each plugin found. Everything of the sample in it is text, and nothing else.

    Exit code 0: written; 2: there is no such task or no store, or the file can't be written.

    Parameters
    ----------
    task_id
        The task, by its id.
    form
        What it is written as: json (as the plugins sent it, in Malbox's shape), markdown, or html (one page that loads nothing).
        Without it, what the ending of FILE says, or markdown.
    output
        Write it to this file, which is replaced, readable by its owner alone; without it, to stdout.
    """
    chosen = options or GlobalOptions()
    asked = form or (form_of(output) if output is not None else None) or Form.MARKDOWN
    text = asyncio.run(_written(chosen, task_id, asked))
    if output is not None:
        write_file(output, text)
        tell(f"Written as {asked.value}: {output}")
    else:
        _print(text)
    return 0


async def _written(options: GlobalOptions, task_id: int, form: Form) -> str:
    from malbox_tui.runtime import open_results

    async with open_store(options.folders) as store, open_results(options.folders) as results:
        page = await store.tasks(TaskQuery(where=TaskFilter(task_ids=(task_id,))), wall_time())
        if not page.rows:
            raise UnknownTask(task_id)
        return await written(results.read, page.rows[0], form)


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as exc:
        abandon_stdout()
        raise OutputClosed("" if isinstance(exc, BrokenPipeError) else f"{exc.strerror or exc}") from exc
