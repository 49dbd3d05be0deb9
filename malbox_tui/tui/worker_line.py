"""The workers as lines: each with its tasks, in which stage they are and how long they may take; or how long it idles and what it
could take. Where there are several worker groups, each has a line above its workers; a worker that may hold several tasks, or runs a
batch, has a line for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from malbox_tui.model.overview import GroupView, Overview
from malbox_tui.model.task import TaskState
from malbox_tui.model.worker import WorkerKind, WorkerState, WorkerView
from malbox_tui.tui.countdown import Countdown, countdown_of, timing_cell
from malbox_tui.tui.glyphs import STATES
from malbox_tui.tui.live import LiveTask
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import clock_time, first_fitting, fit, joined_cells, plain, sentence, shown

KIND_FROM_WIDTH = 44
"""Below, the kind of worker gives way to what it does: times and deadlines are not to be cut off."""
MACHINE_CELLS = 12
LEAST_NAME_CELLS = 4
IN_A_BATCH = " in a batch"


@dataclass(frozen=True, slots=True)
class Entry:
    """What one line is of: a group (`worker` None), a worker, or one task of a worker (`task_id` given) below that worker's line."""

    group: GroupView | None
    worker: WorkerView | None = None
    task_id: int | None = None


def entries(overview: Overview) -> list[Entry]:
    """The lines from top to bottom."""
    groups = {group.name: group for group in overview.groups}
    found: list[Entry] = []
    if len(groups) < 2:
        for worker in overview.workers:
            found += _of_worker(worker, groups.get(worker.group))
        return found
    for group in overview.groups:
        found.append(Entry(group))
        for worker in overview.workers:
            if worker.group == group.name:
                found += _of_worker(worker, group)
    for worker in overview.workers:
        if worker.group not in groups:
            found += _of_worker(worker, None)
    return found


def _of_worker(worker: WorkerView, group: GroupView | None) -> list[Entry]:
    tasks = [Entry(group, worker, task_id) for task_id in worker.task_ids] if worker.slots > 1 else []
    return [Entry(group, worker), *tasks]


def worker_line(
    worker: WorkerView, task: LiveTask | None, group: GroupView | None, overview: Overview, moment: Moment, width: int
) -> Text:
    """One worker of `overview`: id, kind, and what it works on with the deadline, how many tasks it holds, or how long it idles."""
    head = _head(worker, moment, width)
    room = width - head.cell_len - 1
    leaves = _leaves(worker, group, overview.stopping)
    if worker.task_id is None:
        about = _leaving_part(leaves, moment, room) or _idle_part(worker, group, moment, room)
    elif worker.slots > 1:
        about = _several_part(worker, group, leaves, moment, room)
    else:
        about = _task_part(_held(worker, worker.task_id, task, overview, moment), leaves, moment, room)
    return fit(joined_cells([head, about]), width)


def held_line(worker: WorkerView, task_id: int, task: LiveTask | None, overview: Overview, moment: Moment, width: int) -> Text:
    """One of several tasks of a worker of `overview`."""
    held = _held(worker, task_id, task, overview, moment)
    return fit(joined_cells([plain("  "), _task_part(held, (), moment, width - 3)]), width)


@dataclass(frozen=True, slots=True)
class _Held:
    """A task in a worker's hands, as far as it is known: its state, how long it is in it, and how long it may go on."""

    id: int
    task: LiveTask | None
    state: TaskState
    elapsed_s: float
    left: Countdown | None


def _held(worker: WorkerView, task_id: int, task: LiveTask | None, overview: Overview, moment: Moment) -> _Held:
    state = task.state if task is not None and task.state.is_owned else TaskState.INITIALIZING
    elapsed_s = moment.now - (task.since if task is not None and task.spans else worker.since)
    return _Held(task_id, task, state, elapsed_s, countdown_of(worker, task_id, overview, moment.now))


def _head(worker: WorkerView, moment: Moment, width: int) -> Text:
    head = shown(worker.id[:8], moment.tone("muted"))
    if width < KIND_FROM_WIDTH:
        return head
    is_baseline = worker.kind is WorkerKind.BASELINE
    return joined_cells([head, fit(plain("base" if is_baseline else "demand", moment.tone("muted")), 6)])


def _task_part(held: _Held, notes: Sequence[str], moment: Moment, room: int) -> Text:
    """Stage, id, and time of a task; what is left goes to one of `notes`, or to its machine and its name."""
    look = STATES[held.state]
    fixed = joined_cells([fit(plain(f"{look.glyph} {look.word}", moment.tone(look.tone)), 11), plain(f"#{held.id}", "bold")])
    timing = timing_cell(held.elapsed_s, held.left, held.state, moment, room - fixed.cell_len - 2)
    rest = room - fixed.cell_len - timing.cell_len - 2
    return joined_cells([fixed, _what(held.task, notes, moment, rest), timing])


def _several_part(worker: WorkerView, group: GroupView | None, leaves: Sequence[str], moment: Moment, room: int) -> Text:
    """How many tasks it holds of how many it may: each by itself, or together in a batch."""
    held = len(worker.task_ids)
    runs_batches = group is not None and group.batch_size > 1
    about = plain(f"{held} of {max(held, group.batch_size) if group is not None and runs_batches else worker.slots} tasks")
    if (leaving := _leaving_part(leaves, moment, room - about.cell_len - 1)) is not None:
        return joined_cells([about, leaving])
    if runs_batches and room >= about.cell_len + len(IN_A_BATCH):
        about.append(IN_A_BATCH, moment.tone("muted"))
    return about


def _what(task: LiveTask | None, notes: Sequence[str], moment: Moment, room: int) -> Text:
    if room < 4:
        return plain(" " * max(0, room))
    if notes:
        return fit(plain(first_fitting([*notes, ""], room), moment.tone("late")), room)
    if task is None:
        return plain(" " * room)
    if task.machine is None:
        return fit(plain(task.name), room)
    machine = shown(task.machine, moment.tone("preparing"))
    machine = fit(machine, min(machine.cell_len, MACHINE_CELLS, room))
    has_room = room - machine.cell_len > LEAST_NAME_CELLS
    return fit(joined_cells([machine, plain(task.name)]) if has_room else machine, room)


def _leaving_part(leaves: Sequence[str], moment: Moment, room: int) -> Text | None:
    """Why it takes nothing more; None when it stays."""
    return plain(first_fitting(leaves, room), moment.tone("late")) if leaves else None


def _leaves(worker: WorkerView, group: GroupView | None, stopping: str | None) -> Sequence[str]:
    """That it leaves and why, from the most words to the fewest; empty when it stays."""
    if worker.state is not WorkerState.LEAVING:
        return ()
    if stopping is not None:
        return "◌ leaves: the engine stops", "◌ leaves: stopping", "◌ leaves"
    if group is not None and group.active > group.max_workers:
        return f"◌ leaves: max {group.max_workers}", "◌ leaves"
    return ("◌ leaves",)


def _idle_part(worker: WorkerView, group: GroupView | None, moment: Moment, room: int) -> Text:
    """How long it idles, when a demand worker leaves, and what it could take: in as many words as there is room for, the time at which
    it leaves last of all."""
    idle = max(0.0, moment.now - worker.since)
    words = [f"○ idle {clock_time(idle)}", "○ idle"]
    if worker.kind is WorkerKind.DEMAND and group is not None:
        left = clock_time(group.idle_timeout_s - idle)
        words = [f"{words[0]}, leaves in {left}", f"○ idle, leaves in {left}", f"○ leaves in {left}", f"○ {left} left", *words]
    text = plain(first_fitting(words, room), moment.tone("muted"))
    notes = [worker.note, worker.note.removeprefix("could take ")] if worker.note else []
    fitting = first_fitting([*(f" · {sentence(note).plain}" for note in notes), ""], room - text.cell_len)
    text.append(fitting)
    return text
