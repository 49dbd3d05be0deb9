"""Cells: what they say, that they fit, and that nothing foreign in them can act on a terminal."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from malbox_tui.model.due import Due, TimeLimit
from malbox_tui.model.events import Position
from malbox_tui.model.overview import GroupView, Overview
from malbox_tui.model.queries import TaskRecord, Waiting
from malbox_tui.model.report import Classification, Indicator, Technique, Verdict
from malbox_tui.model.sample import Sample, SampleName
from malbox_tui.model.task import EndedBy, Task, TaskState
from malbox_tui.model.verdict import named_in
from malbox_tui.model.worker import WorkerKind, WorkerState, WorkerView
from malbox_tui.tui.columns import (
    MAX_SAMPLE_WIDTH,
    TASK_COLUMNS,
    columns_for,
    task_header,
    task_line,
    waits_cell,
)
from malbox_tui.tui.glyphs import STATES, VERDICTS
from malbox_tui.tui.header import header_line, sparkline
from malbox_tui.tui.live import LiveTask, Span
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.past import timeline_axis, timeline_bar
from malbox_tui.tui.task_page import AtWork, task_lines
from malbox_tui.tui.text import clock_time, fit, plain, short_size
from malbox_tui.tui.worker_line import worker_line
from tests.tui.scripted import plugin_run, reference, sha256_of

GROUP = GroupView(name="default", min_workers=1, max_workers=4, active=3, busy=2, idle_timeout_s=60.0)
OVERVIEW = Overview(
    clock=1000.0,
    position=Position("e", 1, 1),
    counts=dict.fromkeys(TaskState, 3),
    groups=(GROUP,),
    workers=(),
    isolation="bubblewrap",
    ended_per_minute=(0, 2, 4),
    free_bytes=118 * 1024**3,
)
MOMENT = Moment(now=1000.0)


def record(name: bytes = b"invoice.doc", **fields: object) -> TaskRecord:
    task = Task(id=7, sha256="ab" * 32, created_at=900.0, stage_since=950.0, **fields)  # type: ignore[arg-type]
    return TaskRecord(task, Sample(sha256="ab" * 32, size_bytes=1234, first_seen_at=0.0, names=(SampleName(name),)))


@given(st.text(max_size=60), st.integers(0, 50), st.booleans())
def test_a_fitted_text_has_exactly_the_cells_it_should(text: str, cells: int, right: bool) -> None:
    assert fit(plain("".join(filter(str.isprintable, text))), cells, right=right).cell_len == cells


def test_wide_characters_are_never_cut_in_half() -> None:
    assert fit(plain("样本样本"), 4).plain == "样… "
    assert fit(plain("样本"), 4).plain == "样本"


@given(st.integers(20, 300), st.binary(max_size=80))
def test_a_row_is_as_wide_as_its_columns_and_prints_nothing_harmful(width: int, name: bytes) -> None:
    row, header = task_line(record(name), width, MOMENT), task_header(width, MOMENT)
    assert row.cell_len == header.cell_len
    assert row.cell_len <= max(width, 60)
    assert row.plain.isprintable()


def test_narrow_screens_lose_columns_in_order_and_never_the_essential_ones() -> None:
    titles = {width: [column.title for column, _ in columns_for(width)] for width in (40, 60, 80, 100, 200)}
    assert titles[200] == [column.title for column in TASK_COLUMNS]
    assert titles[40] == ["id", "sample", "state"]
    for narrow, wide in [(40, 60), (60, 80), (80, 100), (100, 200)]:
        assert set(titles[narrow]) <= set(titles[wide])
    assert "verdict" in titles[60]


def test_a_wide_screen_is_for_notes_when_names_have_room_enough() -> None:
    widths = {column.title: cells for column, cells in columns_for(250)}
    assert widths["sample"] == MAX_SAMPLE_WIDTH
    assert widths["note"] > 100
    assert sum(widths.values()) + len(widths) - 1 == 250


def test_markup_in_a_name_is_text() -> None:
    row = task_line(record(b"[bold]x[/] [@click=app.quit]y[/]"), 140, MOMENT)
    assert "[bold]x[/] [@click=app.quit]y[/]" in row.plain
    assert not any("click" in str(span.style) for span in row.spans)


def test_every_state_and_verdict_differs_by_glyph_and_word_and_all_are_one_cell_wide() -> None:
    for looks in (list(STATES.values()), list(VERDICTS.values())):
        assert len({look.word for look in looks}) == len(looks)
        assert all(cell_len(look.glyph) == cell_len(look.letter) == 1 for look in looks)
    assert len({look.glyph for look in STATES.values()}) == len(STATES)
    assert len({look.letter for look in STATES.values()}) == len(STATES)


WAITING = Waiting("waiting for a machine: linux/x64 (2 busy)", 3, 128, 950.0)


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (140, "3rd · waits: linux/x64 (2 busy)"),
        (100, "3rd linux/x64"),
        (60, "3rd linux/x64"),
    ],
)
def test_a_waiting_task_says_at_which_place_and_why_as_far_as_there_is_room(width: int, words: str) -> None:
    row = task_line(msgspec.structs.replace(record(), waiting=WAITING), width, MOMENT)
    assert words in row.plain
    assert row.cell_len == task_header(width, MOMENT).cell_len


@pytest.mark.parametrize(
    ("reason", "position", "words"),
    [
        ("all workers of default are busy (4 of 4)", 1, "1st · waits: all workers of default are busy (4 of 4)"),
        ("waiting for machine win10-1: it is disabled", 22, "22nd · waits: machine win10-1: it is disabled"),
        ("a worker is taking it", None, "a worker is taking it"),
        (
            "bulk collects a batch: 3 of 8, for 0.5 s at most",
            3,
            "3rd · waits: bulk collects a batch: 3 of 8, for 0.5 s at most",
        ),
        ("held: No machine could serve it.", 11, "11th · waits: held: No machine could serve it."),
    ],
)
def test_each_reason_reads_well_behind_the_place(reason: str, position: int | None, words: str) -> None:
    waiting = Waiting(reason, position, 128, 950.0)
    assert waits_cell(msgspec.structs.replace(record(), waiting=waiting), MOMENT, 80).plain == words


@pytest.mark.parametrize(
    ("room", "words"),
    [
        (60, "3rd · bulk collects a batch: 3 of 8, for 0.5 s at most"),
        (45, "3rd bulk collects a batch: 3 of 8"),
        (28, "3rd collects a batch: 3 of 8"),
        (16, "3rd batch 3/8"),
    ],
)
def test_how_full_a_batch_is_that_is_collected_is_said_in_little_room_too(room: int, words: str) -> None:
    waiting = Waiting("bulk collects a batch: 3 of 8, for 0.5 s at most", 3, 128, 950.0)
    assert waits_cell(msgspec.structs.replace(record(), waiting=waiting), MOMENT, room).plain == words


def test_a_line_is_made_anew_when_a_task_waits_at_another_place_or_for_another_reason() -> None:
    before = msgspec.structs.replace(record(), waiting=WAITING)
    after = msgspec.structs.replace(record(), waiting=msgspec.structs.replace(WAITING, position=2))
    assert before != after, "the table compares records"


def test_what_was_found_and_how_it_ended_stand_in_the_note() -> None:
    found = record(
        state=TaskState.COMPLETED, verdict=Verdict(Classification.MALICIOUS, 100, labels=("EICAR",)), reason="Finished."
    )
    assert "! malicious 100" in task_line(found, 140, MOMENT).plain
    assert task_line(found, 140, MOMENT).plain.rstrip().endswith("EICAR")
    failed = record(state=TaskState.FAILED, ended_by=EndedBy.PLUGIN_ERROR, reason="Every plugin failed.", finished_at=990.0)
    assert task_line(failed, 140, MOMENT).plain.rstrip().endswith("Every plugin failed.")


def test_how_much_the_reports_name_stands_in_the_note_of_an_ended_task() -> None:
    named = named_in([Indicator("url", f"http://{host}.example/") for host in "abc"], [Technique("T1055", "Process Injection")])
    runs = tuple(plugin_run(1, name, named=named) for name in ("strings", "other"))
    verdict = Verdict(Classification.MALICIOUS, 100, labels=("EICAR",))
    found = record(state=TaskState.COMPLETED, verdict=verdict, plugins=runs)
    assert task_line(found, 200, MOMENT).plain.rstrip().endswith("EICAR · 3 indicators, 1 technique")
    clean = record(state=TaskState.COMPLETED, reason="Finished.", plugins=runs[:1])
    assert task_line(clean, 140, MOMENT).plain.rstrip().endswith("3 indicators, 1 technique")
    running = record(state=TaskState.RUNNING, plugins=runs)
    assert "indicator" not in task_line(running, 200, MOMENT).plain


def test_a_result_is_listed_with_format_size_and_sum() -> None:
    run = plugin_run(1, results=[reference(1, "file-type", "found", "bytes", 2048)])
    row = record(state=TaskState.COMPLETED, plugins=(run,))
    lines = [line.plain.strip() for line in task_lines(row, AtWork(), MOMENT, str, 120)]
    place = next(index for index, line in enumerate(lines) if line.startswith("found (bytes, "))
    assert lines[place + 1].split() == ["SHA-256", sha256_of(1)]


@pytest.mark.parametrize("width", [20, 60, 80, 120, 300])
def test_the_header_never_overflows_and_says_the_most_important_first(width: int) -> None:
    line = header_line(OVERVIEW, GROUP, MOMENT, width, "sbx-01")
    assert line.cell_len <= width
    if width >= 60:
        assert "default 2/3 of 1–4" in line.plain
        assert "queue 3" in line.plain
    if width == 300:
        assert "118 G free" in line.plain
        assert "sbx-01" in line.plain


def _worker(**fields: object) -> WorkerView:
    base = {"id": "a1b2c3d4-0000", "group": "default", "kind": WorkerKind.DEMAND, "state": WorkerState.IDLE, "since": 959.0}
    return WorkerView(started_at=900.0, **{**base, **fields})  # type: ignore[arg-type]


def test_an_idle_worker_says_when_it_leaves_and_a_baseline_one_does_not() -> None:
    assert (
        worker_line(_worker(), None, GROUP, OVERVIEW, MOMENT, 80).plain.rstrip() == "a1b2c3d4 demand ○ idle 0:41, leaves in 0:19"
    )
    base = worker_line(_worker(kind=WorkerKind.BASELINE), None, GROUP, OVERVIEW, MOMENT, 80)
    assert base.plain.rstrip() == "a1b2c3d4 base   ○ idle 0:41"


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (44, "demand ○ idle 0:41, leaves in 0:19"),
        (36, "○ idle 0:41, leaves in 0:19"),
        (31, "○ idle, leaves in 0:19"),
        (26, "○ leaves in 0:19"),
        (20, "○ 0:19 left"),
    ],
)
def test_on_a_narrow_screen_an_idle_worker_says_less_but_always_when_it_leaves(width: int, words: str) -> None:
    line = worker_line(_worker(), None, GROUP, OVERVIEW, MOMENT, width)
    assert line.plain.rstrip() == f"a1b2c3d4 {words}"
    assert line.cell_len == width


@pytest.mark.parametrize("width", [30, 36, 50, 80, 120])
def test_a_busy_worker_shows_its_task_its_stage_and_how_long_it_may_take(width: int) -> None:
    task = LiveTask(431, "invoice_2211.doc", TaskState.RUNNING, [Span(TaskState.RUNNING, 958.0)])
    busy = _worker(state=WorkerState.BUSY, task_ids=(431,), dues=(Due(TimeLimit.ANALYSIS, 1258.0, 300.0),))
    line = worker_line(busy, task, GROUP, OVERVIEW, MOMENT, width)
    assert line.cell_len == width
    assert "● running" in line.plain
    if width >= 36:
        assert "#431" in line.plain
        assert "4:18" in line.plain
        assert "…" not in line.plain
    if width >= 80:
        assert "invoice_2211.doc" in line.plain
        assert "0:42" in line.plain
        assert line.plain.rstrip().endswith("4:18")


def test_a_timeline_shows_each_stage_by_its_letter_and_the_end_by_its_mark() -> None:
    spans = [
        Span(TaskState.PENDING, 940.0, 960.0),
        Span(TaskState.INITIALIZING, 960.0, 970.0),
        Span(TaskState.RUNNING, 970.0, 990.0),
        Span(TaskState.COMPLETED, 990.0, 990.0),
    ]
    bar = timeline_bar(LiveTask(1, "x", TaskState.COMPLETED, spans), 60.0, 12, MOMENT)
    assert bar.plain == "wwwwiirrrr✓ "
    running = LiveTask(1, "x", TaskState.RUNNING, [Span(TaskState.RUNNING, 990.0)])
    assert timeline_bar(running, 60.0, 12, MOMENT).plain == "          rr"
    long_ago = LiveTask(1, "x", TaskState.COMPLETED, [Span(TaskState.RUNNING, 10.0, 20.0), Span(TaskState.COMPLETED, 20.0, 20.0)])
    assert timeline_bar(long_ago, 60.0, 12, MOMENT).plain == " " * 12


@given(st.integers(10, 200))
def test_the_axis_ends_with_now(width: int) -> None:
    axis = timeline_axis(60.0, width, MOMENT)
    assert axis.cell_len == width
    assert axis.plain.endswith("now")


def test_a_sparkline_is_scaled_to_the_highest() -> None:
    assert sparkline([0, 1, 7, 14]) == "▁▂▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


@pytest.mark.parametrize(
    ("seconds", "words"), [(-3, "0:00"), (0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3661, "1:01:01"), (90000, "1d 1h")]
)
def test_durations(seconds: float, words: str) -> None:
    assert clock_time(seconds) == words


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 K"), (151552, "148 K"), (2**29, "512 M"), (2**41, "2.0 T")]
)
def test_sizes_have_six_characters_at_most(size: int, words: str) -> None:
    assert short_size(size) == words


def test_text_of_ours_is_never_read_as_markup() -> None:
    assert isinstance(plain("[red]x"), Text)
    assert plain("[red]x").plain == "[red]x"
