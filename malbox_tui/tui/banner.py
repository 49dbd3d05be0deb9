"""What an operator must not miss, in words, below the header: as many lines as it takes, none when all is well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.due import TimeLimit
from malbox_tui.model.overview import Overview
from malbox_tui.ports import Away
from malbox_tui.tui.countdown import Countdown, countdown_of
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import clock_time, joined_cells, plain, sentence, wrapped

STRONG_ISOLATION = "bubblewrap"
"""What an engine calls its isolation when nothing is missing."""
SIMULATED = "simulated"
"""The provider whose machines are played."""
MAX_LINES_EACH = 3
"""A longer sentence ends with an ellipsis."""
NAMED_TASKS = 4

_BEFORE_THE_END = frozenset({TimeLimit.ANALYSIS, TimeLimit.CRITICAL, TimeLimit.STOPPING, TimeLimit.ENDING})
"""Limits with which a task ends, one way or the other."""

_STOPPING = {
    ShutdownMode.DRAIN.value: "no task is taken, what runs is finished",
    ShutdownMode.GIVE_BACK.value: "what runs is stopped, and kept for the next start",
    ShutdownMode.CANCEL.value: "what runs is canceled",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """A word that stands out, and what there is to say about it, which may hold foreign words."""

    word: str
    tone: str
    words: str


def notices(overview: Overview, now: float) -> list[Notice]:
    """What has to be said at this moment, the worst first."""
    found = [Notice("TROUBLE", "bad", trouble) for trouble in overview.troubles]
    if overview.low_disk:
        found.append(Notice("LOW DISK", "bad", overview.low_disk))
    if overview.stopping is not None:
        words = _STOPPING.get(overview.stopping, overview.stopping.replace("_", " "))
        found.append(Notice("STOPPING", "late", f"{words}{_what_runs(overview, now)}"))
    if (paused := _paused(overview)) is not None:
        found.append(Notice("PAUSED", "late", f"{paused}; no task is taken, what runs goes on"))
    if overview.isolation not in ("", STRONG_ISOLATION):
        found.append(Notice("WEAK ISOLATION", "bad", overview.isolation))
    played = sum(machine.provider == SIMULATED for machine in overview.machines)
    if played:
        of_all = len(overview.machines)
        which = "all machines are" if played == of_all else f"{played} of {of_all} machines {'is' if played == 1 else 'are'}"
        found.append(Notice("SIMULATED", "preparing", f"{which} played: results are made up"))
    return found


def away_notice(away: Away, time_of_day: Callable[[float], str]) -> Notice:
    """What has to be said while the engine can't be reached."""
    left_s = away.retry_in_s
    again = "trying again now" if left_s is None or left_s < 0.5 else f"trying again in {left_s:.0f} s"
    return Notice("NOT CONNECTED", "bad", f"since {time_of_day(away.since)}: {away.problem}; {again}; what you see is of then")


def banner_lines(shown: list[Notice], moment: Moment, width: int) -> list[Text]:
    """The notices in lines of `width` cells: short ones share a line."""
    lines: list[Text] = []
    is_alone = False
    for notice in shown:
        word = plain(f" {notice.word} ", f"bold reverse {moment.tone(notice.tone)}")
        style = moment.tone(notice.tone) if notice.tone == "bad" else ""
        said = sentence(notice.words).plain
        indent = word.cell_len + 1
        if is_alone and lines[-1].cell_len + 2 + indent + plain(said).cell_len <= width:
            lines[-1] = joined_cells([lines[-1], plain(""), word, plain(said, style)])
            continue
        first, *others = wrapped(said, width - indent, MAX_LINES_EACH)
        is_alone = not others
        lines.append(joined_cells([word, plain(first, style)]))
        lines += [joined_cells([plain(" " * word.cell_len), plain(other, style)]) for other in others]
    return lines


def waits_for(overview: Overview, now: float) -> str:
    """The tasks that are being worked on, and how long they may take yet: `#431 (at most 4:18), #432`; empty when there are none."""
    held = [(task_id, worker) for worker in overview.workers for task_id in worker.task_ids]
    named = [f"#{task_id}{_left(countdown_of(worker, task_id, overview, now))}" for task_id, worker in held[:NAMED_TASKS]]
    if len(held) > NAMED_TASKS:
        named.append(f"and {len(held) - NAMED_TASKS} more")
    return ", ".join(named)


def _what_runs(overview: Overview, now: float) -> str:
    named = waits_for(overview, now)
    return f": {named}" if named else ""


def _left(left: Countdown | None) -> str:
    """Nothing of a stage after which the task goes on: how long it takes in all is not known then."""
    if left is None or left.limit not in _BEFORE_THE_END:
        return ""
    at_most = f"at most {clock_time(left.left_s)}"
    return f" (waits, then {at_most})" if left.stands else f" ({at_most})"


def _paused(overview: Overview) -> str | None:
    """Why no task is taken, without what a trouble says already."""
    if overview.paused is None:
        return None
    said = " ".join(overview.troubles).casefold()
    reasons = [
        reason
        for reason in overview.paused.split("; ")
        if reason.casefold() not in said and not (overview.low_disk and reason.startswith("disk below"))
    ]
    return "; ".join(reasons) or None
