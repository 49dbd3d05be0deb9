"""`malbox-tui intake [N]`: what came in, and of one intake the account: a line for each thing that was handed in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from malbox_tui.cli.engine_door import open_store
from malbox_tui.cli.options import FLAG, GlobalOptions, enum_value, whole_number
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.records import Record
from malbox_tui.cli.text import sentence, tallied, timestamp
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.intake import Fate, IntakeLine, IntakePage, IntakeView, LineQuery
from malbox_tui.model.queries import MAX_ROWS
from malbox_tui.model.sample import escape, visible


def intake(
    number: Annotated[int | None, Parameter(metavar="N", converter=whole_number, validator=Number(gte=1))] = None,
    /,
    *,
    fate: Annotated[tuple[Fate, ...], Parameter(metavar="FATE", name_transform=enum_value, negative=(), show_default=False)] = (),
    limit: Annotated[
        int | None, Parameter(metavar="N", converter=whole_number, validator=Number(gte=0), show_default=False)
    ] = None,
    json: Annotated[bool, FLAG] = False,
    options: GlobalOptions | None = None,
) -> int:
    """Say what came in, the latest first; of the intake N say what became of each thing. Also beside a running engine.

    Exit code 0: said; 2: there is no such intake, or no store yet.

    Parameters
    ----------
    number
        One intake: its account, whole, in the order it came.
    fate
        Only lines of this fate: `accepted`, `duplicate`, `opened` or `refused`; may be given more than once.
    limit
        At most so many; without it 50 intakes, and all lines of one.
    json
        Print one JSON object an intake or a line.
    """
    chosen = options or GlobalOptions()
    if number is None:
        asyncio.run(_list(chosen, 50 if limit is None else limit, json))
    else:
        asyncio.run(_account(chosen, number, frozenset(fate) or None, limit, json))
    return 0


async def _list(options: GlobalOptions, limit: int, as_json: bool) -> None:
    before: int | None = None
    async with open_store(options.folders) as store:
        while limit > 0 and (page := await store.intakes(before, min(MAX_ROWS, limit))):
            for view in page:
                write_record(intake_record(view)) if as_json else write_line(intake_line(view))
            before, limit = page[-1].number, limit - len(page)


async def _account(options: GlobalOptions, number: int, fates: frozenset[Fate] | None, limit: int | None, as_json: bool) -> None:
    async with aclosing(_pages(options, LineQuery(intake=number, fates=fates), limit)) as pages:
        async for page in pages:
            for line in page.lines:
                write_record(line_record(number, line)) if as_json else write_line(line_words(line))


async def _pages(options: GlobalOptions, query: LineQuery, limit: int | None) -> AsyncGenerator[IntakePage, None]:
    """Pages of lines, at most `limit` lines. Raises `MalboxError` when there is no such intake."""
    left, after, more = limit, 0, True
    async with open_store(options.folders) as store:
        while more:
            window = MAX_ROWS if left is None else min(MAX_ROWS, left)
            page = await store.intake_lines(LineQuery(intake=query.intake, fates=query.fates, after=after, limit=window))
            if page.intake is None:
                raise MalboxError(f"There is no intake {query.intake}; `{options.command('intake')}` lists those there are.")
            yield page
            left = None if left is None else left - len(page.lines)
            more = page.more and left != 0
            after = page.lines[-1].number if page.lines else after


def intake_record(view: IntakeView) -> Record:
    """One intake."""
    head = view.head
    return {
        "record": "intake",
        "id": view.number,
        "began_at": timestamp(head.began_at),
        "latest_at": timestamp(view.latest_at),
        "actor": visible(head.actor),
        "origin": sentence(head.origin),
        "way": head.way.value,
        "title": sentence(head.title),
        **_counts(view),
    }


def line_record(number: int, line: IntakeLine) -> Record:
    """One line of an account."""
    return {
        "record": "line",
        "intake": number,
        "number": line.number,
        "fate": line.fate.value,
        "at": timestamp(line.at),
        "name": escape(line.name.name),
        "path": escape(line.name.origin),
        "archive": line.name.archive or None,
        "sha256": line.sha256 or None,
        "size_bytes": line.size_bytes,
        "task_id": line.task_id,
        "code": visible(line.code) or None,
        "reason": sentence(line.reason),
    }


def intake_line(view: IntakeView) -> str:
    """One intake in words."""
    head = view.head
    origin = f" ({sentence(head.origin)})" if head.origin else ""
    title = f" {sentence(head.title)}" if head.title else ""
    counts = {fate.value: count for fate, count in zip(Fate, _counts(view).values(), strict=True)}
    said = tallied(counts) or "nothing"
    return f"{view.number:>6}  {timestamp(head.began_at)}  {visible(head.actor)}{origin} {head.way.value}{title}: {said}"


def line_words(line: IntakeLine) -> str:
    """One line of an account in words."""
    name = escape(line.name.origin or line.name.name)
    words = {
        Fate.ACCEPTED: f"task {line.task_id}",
        Fate.DUPLICATE: f"duplicate of task {line.task_id}",
        Fate.OPENED: f"opened: {sentence(line.reason)}",
        Fate.REFUSED: f"refused: {sentence(line.reason)}",
    }
    member = f"  (of archive {line.name.archive[:12]})" if line.name.archive else ""
    return f"{name}  {words[line.fate]}{member}"


def _counts(view: IntakeView) -> dict[str, int]:
    return {"accepted": view.accepted, "duplicates": view.duplicates, "opened": view.opened, "refused": view.refused}
