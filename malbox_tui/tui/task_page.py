"""One task as lines of text: pure, from the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rich.text import Text

from malbox_tui.model.due import TimeLimit
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import PluginRun, PluginStatus
from malbox_tui.model.sample import Sample, visible
from malbox_tui.model.task import Task, TaskState
from malbox_tui.model.verdict import Summary, count_words, summary_of_task
from malbox_tui.reports.words import removed_words
from malbox_tui.tui.columns import state_cell, verdict_cell
from malbox_tui.tui.countdown import Countdown
from malbox_tui.tui.glyphs import BAR_EMPTY, BAR_FULL, STANDS, STATES
from malbox_tui.tui.live import LiveTask, PluginWork
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import clock_time, fit, labelled, plain, sentence, short_size, shown, shown_name

MAX_LOG_BYTES = 64 * 1024
MAX_LOG_LINES = 500
MAX_NAMES = 20
LABEL_CELLS = 12
STAGE_BAR_CELLS = 30

_STAGES = (TaskState.PENDING, TaskState.INITIALIZING, TaskState.PREPARING_RESOURCES, TaskState.RUNNING, TaskState.STOPPING)
_RUN_TONES = {
    PluginStatus.COMPLETED: ("✓", "good"),
    PluginStatus.FAILED: ("!", "bad"),
    PluginStatus.TIMED_OUT: ("◷", "late"),
    PluginStatus.CANCELED: ("⊘", "muted"),
    PluginStatus.SKIPPED: ("–", "muted"),
}


_LIMITS: Mapping[TimeLimit, str] = MappingProxyType(
    {
        TimeLimit.ANALYSIS: "the analysis timeout of {:g} s",
        TimeLimit.CRITICAL: "the critical timeout of {:g} s for the whole attempt",
        TimeLimit.INITIALIZING: "the timeout of {:g} s for starting",
        TimeLimit.PREPARING: "the timeout of {:g} s for preparing its machine",
        TimeLimit.STOPPING: "the timeout of {:g} s for stopping",
        TimeLimit.ENDING: "the {:g} s that its plugins were given to end",
    }
)


@dataclass(frozen=True, slots=True)
class AtWork:
    """What is known of a task besides its record while somebody works on it: its plugins, and which limit it reaches next."""

    live: LiveTask | None = None
    left: Countdown | None = None


def task_lines(record: TaskRecord, at_work: AtWork, moment: Moment, clock: Callable[[float], str], width: int) -> list[Text]:
    """Everything that is known without reading a result; sentences in lines of `width` cells at most."""
    return [
        *_head(record.task, moment),
        *summary_lines(summary_of_task(record.task), moment, width),
        *_waits(record, moment, clock, width),
        *_limits(record.task, at_work.left, moment, clock, width),
        *_about(record.task, moment, clock, width),
        *_removal(record, moment, clock, width),
        plain(""),
        *of_sample(record.sample, moment),
        *_marks(record.sample, moment, width),
        plain(""),
        *_stages(record.task, moment),
        plain(""),
        *_plugins(record.task, at_work.live, moment),
    ]


def heading(text: str, moment: Moment) -> Text:
    """A title between parts; it may hold foreign words."""
    return sentence(text, f"bold {moment.tone('accent')}")


def in_order(runs: Iterable[PluginRun]) -> list[PluginRun]:
    """Those on the task's sample first, then those on each thing that was collected of its run, as they came."""
    by_subject: dict[str, list[PluginRun]] = {"": []}
    for run in runs:
        by_subject.setdefault(run.subject, []).append(run)
    return [run for of_one in by_subject.values() for run in of_one]


def of_what(about: str, run: PluginRun) -> str:
    """`about`, and what the run looked at if that wasn't the task's sample."""
    return f"{about} on {run.subject}" if run.subject else about


def log_lines(run: PluginRun, log: str, moment: Moment) -> list[Text]:
    """A plugin's log, each line escaped; the end of a long one."""
    lines = log.splitlines()
    cut = len(lines) - MAX_LOG_LINES
    title = f"Log of {of_what(run.name, run)}" + (f" (the last {MAX_LOG_LINES} of {len(lines)} lines)" if cut > 0 else "")
    return [plain(""), heading(title, moment), *(shown(line) for line in lines[-MAX_LOG_LINES:])]


def unreadable_lines(title: str, problem: str, moment: Moment) -> list[Text]:
    """A result that should be shown and can't be read."""
    return [plain(""), heading(title, moment), sentence(problem, moment.tone("late"))]


def _labelled(label: str, value: Text, moment: Moment) -> Text:
    line = fit(plain(label, moment.tone("muted")), LABEL_CELLS)
    line.append_text(value)
    return line


def _head(task: Task, moment: Moment) -> Iterable[Text]:
    line = plain(f"Task {task.id}  ", "bold")
    line.append_text(state_cell(task.state, moment))
    line.append("   ")
    line.append_text(verdict_cell(task.verdict, moment))
    yield line
    if task.verdict is not None and task.verdict.labels:
        yield _labelled("labels", shown(", ".join(task.verdict.labels)), moment)


def _waits(record: TaskRecord, moment: Moment, clock: Callable[[float], str], width: int) -> Iterable[Text]:
    """Why a pending task waits, at which place, and since when; and which profile is for what its sample is."""
    if record.task.state is not TaskState.PENDING:
        return
    if record.suggestion is not None:
        yield from _told("suggested", record.suggestion.reason, moment, width)
    since = f"since {clock(record.task.stage_since)} ({clock_time(moment.now - record.task.stage_since)})"
    waiting = record.waiting
    if waiting is None:
        yield _labelled("waits", plain(since), moment)
        return
    place = "" if waiting.position is None else f" at place {waiting.position} of {waiting.pending}"
    yield from _told("waits", f"{since}{place}: {waiting.reason}", moment, width)


def _limits(task: Task, left: Countdown | None, moment: Moment, clock: Callable[[float], str], width: int) -> Iterable[Text]:
    """How long a task that goes on may take: the limit that is reached next, when, and of how many seconds."""
    if task.state.is_final:
        return
    if left is None or not task.state.is_owned:
        told = f"{_LIMITS[TimeLimit.ANALYSIS].format(task.timeout_s)}, once it runs"
    elif left.stands:
        why = (
            "for its turn in its batch"
            if task.state is TaskState.RUNNING
            else "for the rest of its batch, or for room on the disk"
        )
        of = f"{clock_time(left.left_s)} left of {_LIMITS[left.limit].format(left.seconds)}"
        told = f"{STANDS} {of}; its clock stands: it waits {why}"
    else:
        at = clock(moment.now + left.left_s)
        told = f"{_LIMITS[left.limit].format(left.seconds)} is reached at {at}, in {clock_time(left.left_s)}"
    yield from _told("limit", told, moment, width)
    if task.enforce_timeout:
        told = f"to the end: its machine goes on for the whole {task.timeout_s:g} s, also when the sample ends before"
        yield from _told("watched", told, moment, width)


def summary_lines(summary: Summary, moment: Moment, width: int) -> Iterable[Text]:
    """What reports name, and why they come to what they do, a sentence each."""
    if counts := count_words(summary):
        yield _labelled("named", plain(counts), moment)
    if summary.techniques:
        yield from _told("techniques", ", ".join(summary.techniques), moment, width)
    for place, reason in enumerate(summary.reasons):
        yield from _told("" if place else "why", reason, moment, width)


def _about(task: Task, moment: Moment, clock: Callable[[float], str], width: int) -> Iterable[Text]:
    if task.reason:
        yield from _told("how" if task.state.is_final else "note", task.reason, moment, width)
    if task.ended_by is not None:
        yield _labelled("ended by", plain(task.ended_by.value.replace("_", " ")), moment)
    yield _labelled("type", shown(f"{task.type}, priority {task.priority}, {_attempts(task)}"), moment)
    if task.profile is not None and task.profile.name:
        yield from _told("profile", str(task.profile), moment, width)
    if task.owner:
        yield _labelled("owner", shown(task.owner), moment)
    if task.wishes.only:
        yield from _told("plugins", f"{', '.join(task.wishes.only)} only, and what they need", moment, width)
    if task.wishes.options:
        yield from _told("options", ", ".join(task.wishes.written_options()), moment, width)
    if task.requires.needs_machine:
        yield _labelled("needs", shown(str(task.requires)), moment)
    if task.machine is not None:
        yield _labelled("machine", shown(task.machine), moment)
    if task.requires.avoid:
        failed = Counter(task.requires.avoid)
        names = ", ".join(name if times == 1 else f"{name} ({times} times)" for name, times in failed.items())
        yield from _told("failed it", f"{names}; others are tried first", moment, width)
    if task.retry_of is not None:
        yield _labelled("retry of", plain(f"task {task.retry_of}"), moment)
    if task.worker is not None:
        yield _labelled("worker", shown(task.worker[:8]), moment)
    times = [("added", task.created_at), ("started", task.started_at), ("ended", task.finished_at)]
    yield _labelled("times", plain("   ".join(f"{name} {clock(at)}" for name, at in times if at is not None)), moment)


def _removal(record: TaskRecord, moment: Moment, clock: Callable[[float], str], width: int) -> Iterable[Text]:
    if record.results_removed_at is not None:
        yield from _told("results", removed_words(clock(record.results_removed_at)), moment, width)


def _attempts(task: Task) -> str:
    attempts = "no attempt yet" if not task.attempts else f"attempt {task.attempts}"
    crashes = f"{task.crashes} crash{'' if task.crashes == 1 else 'es'} in a row"
    return f"{attempts}, {crashes}" if task.crashes else attempts


def _told(label: str, told: str, moment: Moment, width: int) -> list[Text]:
    """A sentence of any length."""
    return labelled(label, sentence(told).plain, (LABEL_CELLS, width), moment.tone("muted"))


def of_sample(sample: Sample, moment: Moment, title: str = "Sample") -> Iterable[Text]:
    """What is known of a content, and the names it came with."""
    yield heading(title, moment)
    yield _labelled("sha256", plain(sample.sha256), moment)
    yield _labelled("size", plain(f"{short_size(sample.size_bytes)} ({sample.size_bytes:,} bytes)"), moment)
    known = sample.identification
    if known is not None:
        words = [known.kind, known.platform, known.arch, *(tag for tag in known.tags if tag != known.arch), known.mime]
        yield _labelled("kind", shown(", ".join(word for word in words if word)), moment)
        if known.description:
            yield _labelled("", shown(known.description, moment.tone("muted")), moment)
    for number, name in enumerate(sample.names[:MAX_NAMES]):
        line = shown_name(name.name)
        if name.origin and name.origin != name.name:
            line.append("  ")
            line.append_text(shown_name(name.origin, moment.tone("muted")))
        yield _labelled("name" if not number else "", line, moment)
    if len(sample.names) > MAX_NAMES:
        yield _labelled("", plain(f"and {len(sample.names) - MAX_NAMES} more", moment.tone("muted")), moment)


def _marks(sample: Sample, moment: Moment, width: int) -> Iterable[Text]:
    if sample.tags:
        yield from labelled("tags", ", ".join(map(visible, sample.tags)), (LABEL_CELLS, width), moment.tone("muted"))
    if sample.notes:
        yield _labelled("notes", plain(f"{len(sample.notes)} (s shows them)"), moment)


def _stages(task: Task, moment: Moment) -> Iterable[Text]:
    yield heading("Stages", moment)
    seconds = dict(task.stages)
    if not task.state.is_final:
        seconds[task.state.value] = seconds.get(task.state.value, 0.0) + max(0.0, moment.now - task.stage_since)
    whole = sum(seconds.values()) or 1.0
    for stage in _STAGES:
        if stage.value not in seconds:
            continue
        look, spent = STATES[stage], seconds[stage.value]
        line = fit(plain(f"{look.glyph} {look.word}", moment.tone(look.tone)), LABEL_CELLS)
        line.append_text(fit(plain(f"{spent:.2f} s"), 11, right=True))
        line.append("  ")
        full = round(STAGE_BAR_CELLS * spent / whole)
        line.append(BAR_FULL * full, moment.tone(look.tone))
        line.append(BAR_EMPTY * (STAGE_BAR_CELLS - full), moment.tone("muted"))
        yield line


def _plugins(task: Task, live: LiveTask | None, moment: Moment) -> Iterable[Text]:
    if not task.plugins and (live is None or not live.plugins):
        return
    yield heading("Plugins", moment)
    if not task.plugins and live is not None:
        yield from (_work_line(work, moment) for work in live.plugins.values())
    subject = ""
    for run in in_order(task.plugins):
        if run.subject != subject:
            subject = run.subject
            yield sentence(f"on {subject}", f"bold {moment.tone('muted')}")
        yield from _run_lines(run, moment)


def _work_line(work: PluginWork, moment: Moment) -> Text:
    if work.waits:
        line = shown(f"○ {work.waits}", moment.tone("muted"))
    elif work.seconds is not None and work.outcome == PluginStatus.SKIPPED:
        line = shown(f"– skipped  {work.message}", moment.tone("muted"))
    elif work.seconds is not None:
        line = plain(f"{work.outcome or ''} in {work.seconds:.2f} s", moment.tone("muted"))
    elif work.fraction is not None:
        full = round(20 * work.fraction)
        line = plain(BAR_FULL * full, moment.tone("running"))
        line.append(BAR_EMPTY * (20 - full), moment.tone("muted"))
        line.append(f" {work.fraction:4.0%} ")
        line.append_text(shown(work.message))
    else:
        line = plain(f"● running {clock_time(moment.now - work.started_at)}", moment.tone("running"))
    return _labelled(work.name, line, moment)


def _run_lines(run: PluginRun, moment: Moment) -> Iterable[Text]:
    glyph, tone = _RUN_TONES[run.status]
    line = plain(f"{glyph} {run.status.value.replace('_', ' ')}", moment.tone(tone))
    if run.status is not PluginStatus.SKIPPED:
        line.append(f" in {run.seconds:.2f} s", moment.tone("muted"))
    if run.verdict is not None:
        line.append("  ")
        line.append_text(verdict_cell(run.verdict, moment))
    if run.reason:
        line.append("  ")
        line.append_text(sentence(run.reason))
    yield _labelled(run.name, line, moment)
    for result in run.results:
        if not result.is_for_people:
            continue
        text = shown(
            f"{result.shown_name} ({result.format}, {short_size(result.size_bytes)})  {result.path}", moment.tone("muted")
        )
        yield _labelled("", text, moment)
        yield _labelled("  SHA-256", plain(result.sha256, moment.tone("muted")), moment)
