"""A worker as cells: what it works on, in which stage and how long it may take; or how long it idles."""

from __future__ import annotations

from rich.text import Text

from malbox_tui.model.overview import GroupView
from malbox_tui.model.task import TaskState
from malbox_tui.model.worker import WorkerKind, WorkerState, WorkerView
from malbox_tui.tui.glyphs import BAR_EMPTY, BAR_FULL, STATES
from malbox_tui.tui.live import LiveTask
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import clock_time, fit, joined_cells, plain

KIND_FROM_WIDTH = 44
"""Below, the kind of worker gives way to what it does: times and deadlines are not to be cut off."""


def worker_line(worker: WorkerView, task: LiveTask | None, group: GroupView | None, moment: Moment, width: int) -> Text:
    """One worker: id, kind, state, and what it works on with the deadline, or how long it idles."""
    head = [plain(worker.id[:8], moment.tone("muted"))]
    if width >= KIND_FROM_WIDTH:
        head.append(fit(plain("base" if worker.kind is WorkerKind.BASELINE else "demand", moment.tone("muted")), 6))
    if worker.state is WorkerState.IDLE or worker.task_id is None:
        head_cells = joined_cells(head).cell_len
        return fit(joined_cells([*head, _idle_part(worker, group, moment, width - head_cells - 1)]), width)
    state = STATES[task.state if task is not None and task.state.is_owned else TaskState.INITIALIZING]
    elapsed = moment.now - (task.spans[-1].start if task is not None and task.spans else worker.since)
    fixed = joined_cells(
        [*head, fit(plain(f"{state.glyph} {state.word}", moment.tone(state.tone)), 11), plain(f"#{worker.task_id}", "bold")]
    )
    timing = _deadline_part(task, elapsed, moment, width - fixed.cell_len - 1)
    room = width - fixed.cell_len - timing.cell_len - 2
    name = plain("") if task is None or room < 4 else fit(plain(task.name), room)
    return fit(joined_cells([fixed, name, timing]), width)


def _idle_part(worker: WorkerView, group: GroupView | None, moment: Moment, room: int) -> Text:
    """How long it idles and, of a demand worker, when it leaves: in as many words as there is room for, that time last of all."""
    idle = max(0.0, moment.now - worker.since)
    words = [f"○ idle {clock_time(idle)}", "○ idle"]
    if worker.kind is WorkerKind.DEMAND and group is not None:
        left = clock_time(group.idle_timeout_s - idle)
        words = [f"{words[0]}, leaves in {left}", f"○ idle, leaves in {left}", f"○ leaves in {left}", f"○ {left} left", *words]
    fitting = next((text for text in words if len(text) <= room), words[-1])
    return plain(fitting, moment.tone("muted"))


def _deadline_part(task: LiveTask | None, elapsed: float, moment: Moment, room: int) -> Text:
    if task is None or task.state is not TaskState.RUNNING or not task.timeout_s:
        return plain(clock_time(elapsed))
    left = task.timeout_s - elapsed
    cells = 10 if room >= 34 else 5
    if room < 17:
        return plain(f"{clock_time(elapsed)}/{clock_time(task.timeout_s)}")
    full = min(cells, int(cells * elapsed / task.timeout_s))
    colour = moment.tone("bad" if left < 0.1 * task.timeout_s else "running")
    text = plain(f"{clock_time(elapsed)} ")
    text.append(BAR_FULL * full, colour)
    text.append(BAR_EMPTY * (cells - full), moment.tone("muted"))
    text.append(f" {clock_time(left)}", moment.tone("muted"))
    return text
