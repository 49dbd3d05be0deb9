"""`malbox-tui sample SHA`: everything about one content, and what people note of it. Also beside a running engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated

from cyclopts import Parameter

from malbox_tui.cli.engine_door import check_store, open_store, some_engine, usable_settings, wall_time
from malbox_tui.cli.options import FLAG, GlobalOptions
from malbox_tui.cli.output import tell, write_line, write_record
from malbox_tui.cli.records import Record, sample_record
from malbox_tui.cli.selectors import Digits, WrongSelection, parse_selector
from malbox_tui.cli.task_page import sample_fields, summary_lines
from malbox_tui.cli.text import sentence, timestamp
from malbox_tui.model.commands import CommandOutcome, MarkSample
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.sample import visible
from malbox_tui.model.verdict import summary_of_sample
from malbox_tui.reports.words import verdict_words

EXIT_OK = 0
EXIT_REFUSED = 1


def sample(
    sha256: Annotated[str, Parameter(name="SHA")],
    /,
    *,
    note: Annotated[str, Parameter(metavar="TEXT", show_default=False)] = "",
    tag: Annotated[tuple[str, ...], Parameter(metavar="TAG", negative=(), show_default=False)] = (),
    untag: Annotated[tuple[str, ...], Parameter(metavar="TAG", negative=(), show_default=False)] = (),
    json: Annotated[bool, FLAG] = False,
    options: GlobalOptions | None = None,
) -> int:
    """Show a sample: names, notes and tags, what the latest reports on it come to, and each of its tasks. Or note something of it.

    Exit code 0: shown, and noted if that was asked for; 1: not noted, and the answer says why; 2: wrong usage, or no such sample.

    Parameters
    ----------
    sha256
        The beginning of its SHA-256: at least four digits.
    note
        Add this note, in your name.
    tag
        Add this tag; once for each.
    untag
        Take this tag away; once for each.
    json
        Print one JSON object.
    """
    chosen = options or GlobalOptions()
    check_store(chosen.folders)
    code = EXIT_OK
    rows = asyncio.run(tasks_of(chosen, sha256))
    if note or tag or untag:
        action = MarkSample(sha256=rows[0].sample.sha256, note=note, tags=tag, untags=untag)
        outcome = asyncio.run(_mark(chosen, action))
        tell(sentence(outcome.message))
        code = EXIT_OK if outcome.done else EXIT_REFUSED
        rows = asyncio.run(tasks_of(chosen, action.sha256))
    if json:
        write_record(_record(rows))
    else:
        for line in _lines(rows):
            write_line(line)
    return code


async def tasks_of(options: GlobalOptions, sha256: str) -> list[TaskRecord]:
    """All tasks of the sample whose SHA-256 begins so, the oldest first. Raises `WrongSelection` when it is none, or several."""
    selector = parse_selector(sha256 if sha256.lower().startswith("sha256:") else f"sha256:{sha256}")
    assert isinstance(selector, Digits), "nothing else begins so"
    prefix = selector.prefix
    rows: list[TaskRecord] = []
    where = TaskFilter(sha256_prefix=prefix)
    async with open_store(options.folders) as store:
        while True:
            query = TaskQuery(where=where, sort=TaskSort.OLDEST, offset=len(rows), limit=MAX_ROWS)
            page = await store.tasks(query, wall_time())
            rows += page.rows
            if not page.rows or len(rows) >= page.total:
                break
    sums = sorted({row.sample.sha256 for row in rows})
    if not sums:
        raise WrongSelection(f"There is no sample whose SHA-256 begins with {prefix}.")
    if len(sums) > 1:
        raise WrongSelection(f"{len(sums)} samples begin with {prefix}: {', '.join(sums[:4])}{', …' if len(sums) > 4 else ''}.")
    return rows


async def _mark(options: GlobalOptions, action: MarkSample) -> CommandOutcome:
    async with some_engine(options, usable_settings(options)) as door:
        return await door.do(action)


def _record(rows: Sequence[TaskRecord]) -> Record:
    return sample_record(rows[-1].sample, [row.task for row in rows])


def _lines(rows: Sequence[TaskRecord]) -> Iterator[str]:
    sample = rows[-1].sample
    tasks = [row.task for row in rows]
    summary = summary_of_sample(tasks)
    yield f"Sample {sample.sha256}"
    fields = [*sample_fields(sample), ("tags", ", ".join(map(visible, sample.tags))), ("verdict", verdict_words(summary.verdict))]
    yield from (f"  {label:<10} {text}" for label, text in fields if text)
    yield from summary_lines(summary)
    if sample.notes:
        yield ""
        yield "Notes"
        for note in sample.notes:
            yield f"  {timestamp(note.at)}  {visible(note.actor)}: {sentence(note.text)}"
    yield ""
    yield "Tasks"
    for task in reversed(tasks):
        at = timestamp(task.finished_at) or timestamp(task.created_at)
        yield f"  {task.id:>6}  {at}  {task.state.value.replace('_', ' '):<10}  {verdict_words(task.verdict)}".rstrip()
