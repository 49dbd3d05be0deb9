"""Which tasks a command is for: `SELECTOR…`, `--state`, `--name`, `--all`, turned into ids.

A selector is an id (`12`), a range of ids (`3-9`), or the beginning of a sample's SHA-256: at least four hexadecimal digits, one of
them a letter, or any behind `sha256:`. What several selectors choose is added up; filters keep some of it, or of all tasks when there
is no selector. Tasks that the command could do nothing to are left out, unless their own ids were given: then the answer says why.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from malbox_tui.cli.options import FLAG, enum_value
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskPage, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.sample import unescape, visible
from malbox_tui.model.task import TaskState

Read = Callable[[TaskQuery], Awaitable[TaskPage]]

FEWEST_DIGITS = 4
_LARGEST_ID = 2**53 - 1
_SHOWN_SAMPLES = 4

_ID = re.compile(r"[0-9]+")
_RANGE = re.compile(r"([0-9]+)-([0-9]+)")
_DIGITS = re.compile(r"[0-9a-f]{1,64}")


class WrongSelection(MalboxError):
    """Tasks were chosen in a way that can't be understood, or of which there are none."""


@dataclass(frozen=True, slots=True)
class Ids:
    """The tasks from `first` to `last`; `is_named` when it is one that was given by its own id."""

    first: int
    last: int
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Digits:
    """The tasks of the sample whose SHA-256 begins so."""

    prefix: str


Selector = Ids | Digits


def parse_selector(text: str) -> Selector:
    """What a word of the command line chooses. Raises `WrongSelection`."""
    if _ID.fullmatch(text):
        return Ids(*2 * (_id(text),), is_named=True)
    if (found := _RANGE.fullmatch(text)) is not None:
        first, last = _id(found[1]), _id(found[2])
        if first > last:
            raise WrongSelection(f"{text} is no range of ids: it ends before it begins.")
        return Ids(first, last)
    marked = text.lower().startswith("sha256:")
    digits = text.lower().removeprefix("sha256:")
    if _DIGITS.fullmatch(digits):
        if len(digits) < FEWEST_DIGITS:
            raise WrongSelection(
                f"{visible(text)} is too short for the beginning of a SHA-256; give {FEWEST_DIGITS} digits at least."
            )
        return Digits(digits)
    what = (
        "what follows is no SHA-256"
        if marked
        else "it is no id (12), no range of ids (3-9), no beginning of a SHA-256 (4 digits or more)"
    )
    shown = visible(text)[:80] or "''"
    raise WrongSelection(f"{shown} chooses no task: {what}.")


def _id(text: str) -> int:
    if len(text) > 16 or int(text) > _LARGEST_ID:
        raise WrongSelection(f"There is no task {text[:40]}.")
    return int(text)


@Parameter(name="*", group="Which tasks")
@dataclass(frozen=True, slots=True)
class Filters:
    """What chosen tasks have to be, and how many may be meant without a question."""

    state: Annotated[
        tuple[TaskState, ...], Parameter(metavar="STATE", negative=(), name_transform=enum_value, show_default=False)
    ] = ()
    """Only tasks in this state; may be given more than once."""
    name: Annotated[str | None, Parameter(metavar="TEXT")] = None
    """Only tasks with a sample that came under a name with this in it."""
    all: Annotated[bool, FLAG] = False
    """All tasks that it can be done to, as far as the filters let them through."""
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), negative=(), show_default=False)] = False
    """Ask nothing, also when more tasks are hit than were named by their ids."""

    @property
    def choose(self) -> bool:
        """Whether they alone say which tasks."""
        return bool(self.all or self.state or self.name is not None)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Ids in order; `is_named`: each was given by itself."""

    task_ids: tuple[int, ...]
    is_named: bool


async def chosen(read: Read, selectors: Sequence[Selector], filters: Filters, possible: frozenset[TaskState]) -> Chosen:
    """The tasks that are meant. `possible` are the states in which something can be done to a task.

    Raises `WrongSelection` when there are none, and when a SHA-256 begins as several do.
    """
    if filters.all and selectors:
        raise WrongSelection("--all means every task; leave it out, or the other selectors.")
    if not selectors and not filters.choose:
        raise WrongSelection("Say which tasks: ids, ranges of ids, beginnings of a SHA-256, or --state, --name, --all.")
    found: set[int] = set()
    if not selectors:
        found = {row.task.id async for row in _rows(read, _where(filters, possible))}
    for selector in selectors:
        found |= await _hit(read, selector, filters, possible)
    if not found:
        if possible == frozenset(TaskState):
            raise WrongSelection("There is no such task.")
        raise WrongSelection("No task that this could be done to is chosen; nothing was done.")
    is_named = all(isinstance(selector, Ids) and selector.is_named for selector in selectors) and bool(selectors)
    return Chosen(tuple(sorted(found)), is_named)


async def _hit(read: Read, selector: Selector, filters: Filters, possible: frozenset[TaskState]) -> set[int]:
    if isinstance(selector, Digits):
        return await _of_sample(read, selector.prefix, filters, possible)
    if selector.is_named and not filters.choose:
        return {selector.first}
    states = frozenset(TaskState) if selector.is_named else possible
    newest = await read(TaskQuery(limit=1))
    last = min(selector.last, newest.rows[0].task.id if newest.rows else 0)
    found: set[int] = set()
    for start in range(selector.first, last + 1, MAX_ROWS):
        ids = tuple(range(start, min(start + MAX_ROWS, last + 1)))
        page = await read(TaskQuery(where=_where(filters, states, task_ids=ids), limit=MAX_ROWS))
        found |= {row.task.id for row in page.rows}
    return found


async def _of_sample(read: Read, prefix: str, filters: Filters, possible: frozenset[TaskState]) -> set[int]:
    rows = [row async for row in _rows(read, TaskFilter(sha256_prefix=prefix))]
    samples = sorted({row.task.sha256 for row in rows})
    if not samples:
        raise WrongSelection(f"No task has a sample whose SHA-256 begins with {prefix}.")
    if len(samples) > 1:
        shown = ", ".join(f"{sha256[: len(prefix) + 4]}…" for sha256 in samples[:_SHOWN_SAMPLES])
        more = f" and {len(samples) - _SHOWN_SAMPLES} more" if len(samples) > _SHOWN_SAMPLES else ""
        raise WrongSelection(f"{prefix} is the beginning of {len(samples)} samples' SHA-256 ({shown}{more}); give more digits.")
    if not filters.choose:
        return {row.task.id for row in rows if row.task.state in possible} or {row.task.id for row in rows}
    where = _where(filters, possible, sha256_prefix=samples[0])
    return {row.task.id async for row in _rows(read, where)}


def _where(
    filters: Filters, possible: frozenset[TaskState], task_ids: tuple[int, ...] | None = None, sha256_prefix: str | None = None
) -> TaskFilter:
    return TaskFilter(
        task_ids=task_ids,
        states=possible & frozenset(filters.state) if filters.state else possible,
        sha256_prefix=sha256_prefix,
        name_contains=None if filters.name is None else name_bytes(filters.name),
    )


def name_bytes(text: str) -> bytes:
    """A part of a name as it was typed: as names are shown, or, with other backslashes in it, as it is."""
    try:
        return unescape(text)
    except ValueError:
        return os.fsencode(text)


async def _rows(read: Read, where: TaskFilter) -> AsyncIterator[TaskRecord]:
    """All tasks that match, some of them twice: what ends meanwhile moves the later ones up, so they are read from the end."""
    unread = (await read(TaskQuery(where=where, limit=0))).total
    while unread > 0:
        first = max(0, unread - MAX_ROWS)
        for row in (await read(TaskQuery(where=where, sort=TaskSort.OLDEST, offset=first, limit=unread - first))).rows:
            yield row
        unread = first
