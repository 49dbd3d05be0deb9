"""One machine as lines of text: pure, from the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from rich.text import Text

from malbox_tui.model.machine import MachineMoment, MachineView
from malbox_tui.tui.banner import SIMULATED
from malbox_tui.tui.glyphs import MACHINES
from malbox_tui.tui.live import LiveTask
from malbox_tui.tui.machine_line import STATE_CELLS, TASK_CELLS
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.task_page import heading
from malbox_tui.tui.text import clock_time, counted, fit, joined_cells, labelled, plain, sentence, shown, wrapped

SHOWN_MOMENTS = 20
MOST_REASON_LINES = 4
"""So many lines of a reason in the history; at the top it is told whole."""
LABEL_CELLS = 12
SPENT_CELLS = 8


def machine_lines(
    machine: MachineView, task: LiveTask | None, moment: Moment, clock: Callable[[float], str], width: int
) -> list[Text]:
    """All that is known of it, in lines of `width` cells at most. `task` is the one that holds it, as far as it is known."""
    return [
        *_head(machine, task, moment, clock, width),
        plain(""),
        heading("What it is", moment),
        *_what_it_is(machine, moment, width),
        plain(""),
        heading("History, the latest first", moment),
        *_history(machine, moment, clock, width),
    ]


def gone_lines(name: str, moment: Moment) -> list[Text]:
    """What is said of a machine that there was."""
    line = plain("Machine ", "bold").append_text(shown(name, "bold"))
    return [line, plain("It is no longer in the pool.", moment.tone("late"))]


def _head(
    machine: MachineView, task: LiveTask | None, moment: Moment, clock: Callable[[float], str], width: int
) -> Iterable[Text]:
    look = MACHINES[machine.state]
    state = plain(f"{look.glyph} {look.word}", moment.tone(look.tone))
    name = shown(machine.name, "bold")
    room = max(1, width - len("Machine   ") - state.cell_len)
    yield joined_cells([plain("Machine", "bold"), fit(name, room) if name.cell_len > room else name, plain(""), state])
    since = f"since {clock(machine.since)}, for {clock_time(moment.now - machine.since)}"
    yield from _told("", f"{look.meaning}; {since}", moment, width)
    if machine.leaving:
        yield from _told("", "it goes out of service as soon as nothing uses it", moment, width)
    if machine.task_id is not None:
        yield from _told("task", _task_words(machine.task_id, task), moment, width)
    if machine.reason:
        yield from _told("reason", machine.reason, moment, width, moment.tone("late"))
    yield from _told("failures", _failure_words(machine), moment, width, moment.tone("late") if machine.failures else "")


def _task_words(task_id: int, task: LiveTask | None) -> str:
    return f"#{task_id} (Enter opens it)" if task is None else f"#{task_id} {task.name} (Enter opens it)"


def _failure_words(machine: MachineView) -> str:
    since = "since it last served a task well"
    failed = f"{counted(machine.failures, 'failure')} {since}" if machine.failures else f"none {since}"
    return failed if machine.spec is None else f"{failed}; {machine.spec.max_failures} in a row quarantine it"


def _what_it_is(machine: MachineView, moment: Moment, width: int) -> Iterable[Text]:
    spec, facts = machine.spec, machine.facts
    is_played = machine.provider == SIMULATED
    pairs = [
        ("system", f"{machine.platform}/{machine.arch}"),
        ("tags", ", ".join(machine.tags) or "none"),
        ("provider", f"{machine.provider}{': it is played, results are made up' if is_played else ''}"),
    ]
    if spec is not None:
        pairs += [
            ("uri", spec.uri),
            ("domain", spec.domain_name if spec.uri else spec.domain),
            ("snapshot", spec.snapshot),
            ("channel", f"{spec.channel}{f' at {spec.address}' if spec.address else ''}"),
            ("folder", spec.folder),
            ("disk folder", spec.disk_folder),
            ("watched", ", ".join(spec.watch)),
            ("disk limit", "" if spec.disk_kib_s is None else f"{spec.disk_kib_s} KiB/s"),
            ("network", "" if spec.network_kbps is None else f"{spec.network_kbps} kbit/s" if spec.network_kbps else "none"),
        ]
    if facts is not None:
        pairs += [
            ("memory", "" if facts.memory_mb is None else f"{facts.memory_mb} MiB"),
            ("vcpus", "" if facts.vcpus is None else str(facts.vcpus)),
        ]
    for label, words in pairs:
        if words:
            yield from _told(label, words, moment, width)
    for warning in () if facts is None else facts.warnings:
        yield from _told("! warning", warning, moment, width, moment.tone("late"))


def _history(machine: MachineView, moment: Moment, clock: Callable[[float], str], width: int) -> Iterable[Text]:
    if not machine.history:
        yield plain("nothing yet", moment.tone("muted"))
        return
    ends = [*(later.at for _, later in pairwise(machine.history)), moment.now]
    for passed, end in list(zip(machine.history, ends, strict=True))[: -SHOWN_MOMENTS - 1 : -1]:
        yield from _moment_lines(passed, end, moment, clock, width)
    if (more := len(machine.history) - SHOWN_MOMENTS) > 0:
        yield plain(f"and {counted(more, 'earlier change')}", moment.tone("muted"))


def _moment_lines(passed: MachineMoment, end: float, moment: Moment, clock: Callable[[float], str], width: int) -> Iterable[Text]:
    look = MACHINES[passed.state]
    head = joined_cells(
        [
            plain(clock(passed.at), moment.tone("muted")),
            fit(plain(clock_time(end - passed.at)), SPENT_CELLS, right=True),
            fit(plain(f"{look.glyph} {look.word}", moment.tone(look.tone)), STATE_CELLS),
            fit(plain("" if passed.task_id is None else f"#{passed.task_id}", "bold"), TASK_CELLS),
        ]
    )
    if not passed.reason:
        yield head
        return
    room = width - head.cell_len - 1
    reason = sentence(passed.reason).plain
    if room >= LABEL_CELLS:
        first, *others = wrapped(reason, room, MOST_REASON_LINES)
        yield joined_cells([head, plain(first)])
        yield from (joined_cells([plain(" " * head.cell_len), plain(other)]) for other in others)
    else:
        yield head
        yield from (joined_cells([plain(" "), plain(line)]) for line in wrapped(reason, width - 2, MOST_REASON_LINES))


def _told(label: str, told: str, moment: Moment, width: int, style: str = "") -> list[Text]:
    return labelled(label, sentence(told).plain, (LABEL_CELLS, width), moment.tone("muted"), style)
