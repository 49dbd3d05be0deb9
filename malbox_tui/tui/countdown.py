"""How long a task may go on: the limit that the engine says is due, counted down on from the engine's clock, as cells.

Between two overviews the clock goes on here by itself, unless the engine said that the task's own clock stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from malbox_tui.model.due import Due, TimeLimit
from malbox_tui.model.overview import Overview
from malbox_tui.model.task import TaskState
from malbox_tui.model.worker import WorkerView
from malbox_tui.tui.glyphs import BAR_EMPTY, BAR_FULL, STANDS
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import clock_time, plain

NEAR = 0.1
"""With less than this part of a limit left, it is near."""


@dataclass(frozen=True, slots=True)
class Countdown:
    """One limit at one moment: of its `seconds`, `left_s` are left; 0 when it is reached. `stands`: they don't become fewer."""

    limit: TimeLimit
    seconds: float
    left_s: float
    stands: bool = False

    @property
    def is_near(self) -> bool:
        """There is little left."""
        return self.left_s < NEAR * self.seconds


def countdown(due: Due | None, seen_at: float, now: float) -> Countdown | None:
    """What is left of a limit. `seen_at` is the engine's time when it said so, `now` what it is by now."""
    if due is None:
        return None
    return Countdown(due.limit, due.seconds, max(0.0, due.at - (seen_at if due.stands else now)), due.stands)


def countdown_of(worker: WorkerView, task_id: int, overview: Overview, now: float) -> Countdown | None:
    """That of a task which a worker of this overview holds; None before its attempt began."""
    dues = dict(zip(worker.task_ids, worker.dues, strict=False))
    return countdown(dues.get(task_id), overview.clock, now)


def countdown_in(overview: Overview, task_id: int, now: float) -> Countdown | None:
    """That of a task, whoever holds it; None while nobody does."""
    holder = next((worker for worker in overview.workers if task_id in worker.task_ids), None)
    return None if holder is None else countdown_of(holder, task_id, overview, now)


_NAMES = {TimeLimit.CRITICAL: ("critical", "crit"), TimeLimit.ENDING: ("ending", "ends")}


def timing_cell(elapsed_s: float, left: Countdown | None, state: TaskState, moment: Moment, room: int) -> Text:
    """How long a task is in its stage, and how long it may go on: in as many words as there is room for, what is left last of all.

    The limit of the whole attempt, and what is left to end, are named; any other limit is that of the stage.
    """
    elapsed = clock_time(elapsed_s)
    if left is None:
        return plain(elapsed)
    name, short_name = _NAMES.get(left.limit, ("", ""))
    if left.stands:
        return _standing(left, name, "waits for its turn" if state is TaskState.RUNNING else "waits", moment, room)
    tone = moment.tone("bad" if left.is_near else "late" if name else "muted")
    bare = plain(f"-{clock_time(left.left_s)}", tone)
    rest = _rest(name, left, tone)
    forms = [(_with_bar(elapsed, left, 10, rest, moment), 13), (_with_bar(elapsed, left, 5, rest, moment), 5 if name else 0)]
    forms.append((plain(f"{elapsed} ").append_text(rest if name else bare), 0))
    shorter = (rest, _rest(short_name, left, tone)) if name else (plain(f"{clock_time(left.left_s)} left", tone),)
    forms += [(form, 0) for form in shorter]
    return next((form for form, for_its_name in forms if form.cell_len + for_its_name <= room), bare)


def _rest(name: str, left: Countdown, tone: str) -> Text:
    return plain(f"{name} {clock_time(left.left_s)}".lstrip(), tone)


def _with_bar(elapsed: str, left: Countdown, cells: int, rest: Text, moment: Moment) -> Text:
    full = int(cells * (1 - left.left_s / left.seconds)) if left.left_s < left.seconds else 0
    text = plain(f"{elapsed} ")
    text.append(BAR_FULL * full, moment.tone("bad" if left.is_near else "running"))
    text.append(f"{BAR_EMPTY * (cells - full)} ", moment.tone("muted"))
    return text.append_text(rest)


def _standing(left: Countdown, name: str, why: str, moment: Moment, room: int) -> Text:
    """Nothing in it moves."""
    time = f"{clock_time(left.left_s)} left"
    named = f"{name} {time}".lstrip()
    forms = [f"{STANDS} {named}, {why}", f"{STANDS} {named}", f"{STANDS} {time}"]
    fitting = next((form for form in forms if len(form) <= room), f"{STANDS} {clock_time(left.left_s)}")
    return plain(fitting, moment.tone("muted"))
