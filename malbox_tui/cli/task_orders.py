"""`malbox-tui cancel`, `retry`, `priority`, `profile` and `change`: on a running engine, or on the store when none runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from msgspec import structs

from malbox_tui.cli.command_records import target_record
from malbox_tui.cli.engine_door import Door, check_store, some_engine, usable_settings
from malbox_tui.cli.options import FLAG, GlobalOptions, whole_number
from malbox_tui.cli.output import OutputClosed, tell, write_line, write_record
from malbox_tui.cli.question import agreed, can_be_asked
from malbox_tui.cli.selectors import Chosen, Filters, Selector, WrongSelection, chosen, parse_selector
from malbox_tui.cli.text import counted, sentence
from malbox_tui.model.commands import (
    Action,
    CancelTasks,
    ChangeTasks,
    IdentifySamples,
    RetryTasks,
    SetPriority,
    SetProfile,
    TargetResult,
)
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.profile import AUTO
from malbox_tui.model.queries import MAX_ROWS
from malbox_tui.model.task import FINAL_STATES, TaskState

EXIT_OK = 0
EXIT_NOT_ALL = 1
EXIT_USAGE = 2

Json = Annotated[bool, FLAG]


def cancel(
    *selectors: Annotated[str, Parameter(name="SELECTOR")],
    filters: Filters | None = None,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """End tasks for good: those that wait, and those at work.

    Exit code 0: each of them; 1: some, or none, and the answers say why; 2: wrong usage, or nothing is chosen.

    Parameters
    ----------
    selectors
        Ids, ranges of ids such as `3-9`, beginnings of a sample's SHA-256.
    json
        Print one JSON object a task.
    """
    order = TaskOrder("cancel", frozenset(TaskState) - FINAL_STATES, lambda ids: CancelTasks(task_ids=ids))
    return order.carry_out(selectors, filters, json, options)


def retry(
    *selectors: Annotated[str, Parameter(name="SELECTOR")],
    filters: Filters | None = None,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Analyse the contents of tasks that have ended again, each as a new task.

    Exit code 0: each of them; 1: some, or none, and the answers say why; 2: wrong usage, or nothing is chosen.

    Parameters
    ----------
    selectors
        Ids, ranges of ids such as `3-9`, beginnings of a sample's SHA-256.
    json
        Print one JSON object a task.
    """
    return TaskOrder("retry", FINAL_STATES, lambda ids: RetryTasks(task_ids=ids)).carry_out(selectors, filters, json, options)


def priority(
    number: Annotated[int, Parameter(name="N", converter=whole_number, validator=Number(gte=-1_000_000, lte=1_000_000))],
    /,
    *selectors: Annotated[str, Parameter(name="SELECTOR")],
    filters: Filters | None = None,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Give waiting tasks another priority; a higher one is taken first. A negative one goes behind `--`.

    Exit code 0: each of them; 1: some, or none, and the answers say why; 2: wrong usage, or nothing is chosen.

    Parameters
    ----------
    number
        The priority.
    selectors
        Ids, ranges of ids such as `3-9`, beginnings of a sample's SHA-256.
    json
        Print one JSON object a task.
    """
    order = TaskOrder("priority", frozenset({TaskState.PENDING}), lambda ids: SetPriority(task_ids=ids, priority=number))
    return order.carry_out(selectors, filters, json, options)


def profile(
    name: Annotated[str, Parameter(name="NAME")],
    /,
    *selectors: Annotated[str, Parameter(name="SELECTOR")],
    filters: Filters | None = None,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Give waiting tasks another profile.

    Exit code 0: each of them; 1: some, or none, and the answers say why; 2: wrong usage, or nothing is chosen.

    Parameters
    ----------
    name
        The profile; `auto`: the one for the kind of their content, or the default.
    selectors
        Ids, ranges of ids such as `3-9`, beginnings of a sample's SHA-256.
    json
        Print one JSON object a task.
    """
    given = "" if name == AUTO else name
    order = TaskOrder("profile", frozenset({TaskState.PENDING}), lambda ids: SetProfile(task_ids=ids, profile=given))
    return order.carry_out(selectors, filters, json, options)


def change(
    *selectors: Annotated[str, Parameter(name="SELECTOR")],
    type: Annotated[str | None, Parameter(metavar="TYPE")] = None,
    platform: Annotated[str | None, Parameter(metavar="NAME")] = None,
    arch: Annotated[str | None, Parameter(metavar="NAME")] = None,
    tags: Annotated[str | None, Parameter(metavar="TAG,…")] = None,
    timeout: Annotated[float | None, Parameter(metavar="SECONDS", validator=Number(gt=0, lte=7 * 86400))] = None,
    filters: Filters | None = None,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Let waiting tasks ask for something else; what isn't given stays. Priority and profile have commands of their own.

    Exit code 0: each of them; 1: some, or none, and the answers say why; 2: wrong usage, or nothing is chosen.

    Parameters
    ----------
    selectors
        Ids, ranges of ids such as `3-9`, beginnings of a sample's SHA-256.
    type
        The task type: `static` or `dynamic`. A static one asks for no machine any more.
    platform
        Run it in a machine of this platform; `""`: of any.
    arch
        Run it in a machine of this architecture; `""`: of any.
    tags
        Run it in a machine with all of these tags; `""`: with any.
    timeout
        How many seconds its plugins, and the sample in its machine, may take together.
    json
        Print one JSON object a task.
    """
    listed = None if tags is None else tuple(word.strip() for word in tags.split(",") if word.strip())
    asked = ChangeTasks(task_ids=(), task_type=type, platform=platform, arch=arch, tags=listed, timeout_s=timeout)
    if asked == ChangeTasks(task_ids=()):
        raise WrongSelection("Say what is to change: --type, --platform, --arch, --tags or --timeout.")
    order = TaskOrder("change", frozenset({TaskState.PENDING}), lambda ids: structs.replace(asked, task_ids=ids))
    return order.carry_out(selectors, filters, json, options)


def identify(
    *selectors: Annotated[str, Parameter(name="SELECTOR")],
    filters: Filters | None = None,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Find out what the samples of waiting tasks are, before their run, and which profile is for them.

    Exit code 0: each of them; 1: some, or none, and the answers say why; 2: wrong usage, or nothing is chosen.

    Parameters
    ----------
    selectors
        Ids, ranges of ids such as `3-9`, beginnings of a sample's SHA-256.
    json
        Print one JSON object a task.
    """
    order = TaskOrder("identify", frozenset({TaskState.PENDING}), lambda ids: IdentifySamples(task_ids=ids))
    return order.carry_out(selectors, filters, json, options)


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """A command for tasks: its name, the states in which it can do something, and the action for some ids."""

    name: str
    possible: frozenset[TaskState]
    action: Callable[[tuple[int, ...]], Action]

    def carry_out(self, words: Sequence[str], filters: Filters | None, as_json: bool, options: GlobalOptions | None) -> int:
        """Choose, ask if that is to be, do it, and say what became of each task; returns the exit code."""
        selectors = [parse_selector(word) for word in words]
        return asyncio.run(self._carry_out(selectors, filters or Filters(), as_json, options or GlobalOptions()))

    async def _carry_out(self, selectors: Sequence[Selector], filters: Filters, as_json: bool, options: GlobalOptions) -> int:
        settings = usable_settings(options)
        check_store(options.folders)  # one that isn't there is not to be made
        async with some_engine(options, settings) as door:
            selection = await chosen(door.client.query, selectors, filters, self.possible)
            if not self._is_meant(selection, filters):
                tell("Nothing was done.")
                return EXIT_USAGE
            told = _Outcomes(self.name, as_json)
            for ids in _slices(selection.task_ids):
                told.tell(await self._do(door, ids))
        if told.failure is not None:
            raise told.failure
        return EXIT_OK if told.all_done else EXIT_NOT_ALL

    def _is_meant(self, selection: Chosen, filters: Filters) -> bool:
        count = len(selection.task_ids)
        if count == 1 or selection.is_named or filters.yes:
            return True
        if not can_be_asked():
            raise MalboxError(f"This hits {count} tasks, and there is no terminal to ask on: say --yes if that is meant.")
        return agreed(f"{self.name.capitalize()} {counted(count, 'task')}: {_in_short(selection.task_ids)}?")

    async def _do(self, door: Door, task_ids: tuple[int, ...]) -> Sequence[TargetResult]:
        outcome = await door.do(self.action(task_ids))
        if outcome.targets:
            return outcome.targets
        return [TargetResult(task_id, outcome.done, outcome.message) for task_id in task_ids]


class _Outcomes:
    """What became of the tasks, printed as it is known. That nobody takes it stops nothing, and is told at the end."""

    def __init__(self, command: str, as_json: bool) -> None:
        self._command = command
        self._as_json = as_json
        self.all_done = True
        self.failure: OutputClosed | None = None

    def tell(self, targets: Sequence[TargetResult]) -> None:
        self.all_done = self.all_done and all(target.done for target in targets)
        for target in targets if self.failure is None else ():
            try:
                if self._as_json:
                    write_record(target_record(self._command, target))
                else:
                    write_line(sentence(target.message))
            except OutputClosed as failure:
                self.failure = failure
                return


def _slices(task_ids: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for start in range(0, len(task_ids), MAX_ROWS):
        yield task_ids[start : start + MAX_ROWS]


def _in_short(task_ids: tuple[int, ...]) -> str:
    """`3-9, 12, 15 and 40 more`."""
    runs: list[list[int]] = []
    for task_id in task_ids:
        if runs and runs[-1][-1] == task_id - 1:
            runs[-1] = [runs[-1][0], task_id]
        else:
            runs.append([task_id])
    shown = ", ".join("-".join(map(str, run)) for run in runs[:6])
    left = sum(run[-1] - run[0] + 1 for run in runs[6:])
    return shown + (f" and {left} more" if left else "")
