"""The JSON records and the tables, without an engine."""

from __future__ import annotations

import json
import re
from pathlib import PurePath

import msgspec
import pytest

from malbox_tui.cli import table
from malbox_tui.cli.records import duplicate_record, refused_record, task_record
from malbox_tui.cli.tally import EXIT_NOT_ALL_COMPLETED, Tally
from malbox_tui.cli.task_page import task_lines
from malbox_tui.cli.text import duration, sentence, size, timestamp
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Classification, Indicator, PluginStatus, Technique, Verdict
from malbox_tui.model.sample import SampleName, unescape
from malbox_tui.model.submission import Duplicate, Refusal, Refused
from malbox_tui.model.task import EndedBy, TaskState
from malbox_tui.model.verdict import named_in

from .builders import EVIL, MALICIOUS, record, sha

RESULTS = PurePath("/data/results")


def printable(text: str) -> bool:
    return all(char.isprintable() for char in text)


def test_a_finished_tasks_record_says_everything() -> None:
    assert task_record(record(7, verdict=MALICIOUS), RESULTS) == {
        "record": "task",
        "id": 7,
        "sample": {
            "sha256": sha(7),
            "names": ["a.exe"],
            "origins": ["/in/a.exe"],
            "archives": [],
            "size_bytes": 1536,
            "kind": "pe",
            "mime": "application/x-dosexec",
            "platform": "windows",
            "arch": "x64",
            "kind_tags": [],
            "tags": [],
        },
        "type": "static",
        "state": "completed",
        "ended_by": "finished",
        "reason": "",
        "priority": 1,
        "attempts": 1,
        "crashes": 0,
        "retry_of": None,
        "worker": "w",
        "machine": None,
        "requires": {"platform": None, "arch": None, "tags": [], "machine": None, "avoid": []},
        "created_at": "1970-01-01T00:17:30.250Z",
        "started_at": "1970-01-01T00:17:40.000Z",
        "finished_at": "1970-01-01T00:18:20.000Z",
        "results_removed_at": None,
        "timeout_s": 300.0,
        "enforce_timeout": False,
        "profile": None,
        "owner": None,
        "wishes": {"plugins": [], "options": {}},
        "run": {"arguments": [], "memory_dump": False},
        "stages": {"pending": 9.75, "running": 39.5},
        "verdict": {"classification": "malicious", "score": 100, "confidence": "high", "labels": ["EICAR", r"\x1b[31mred"]},
        "indicators": 0,
        "techniques": [],
        "reasons": [],
        "plugins": [
            {
                "name": "digests",
                "version": "0.1.0",
                "subject": "",
                "status": "completed",
                "seconds": 0.25,
                "reason": "",
                "verdict": None,
                "results": [
                    {
                        "name": "report",
                        "format": "json",
                        "size_bytes": 10,
                        "sha256": sha(9),
                        "path": "/data/results/1/t/digests/report",
                        "title": None,
                        "render": None,
                        "is_for_people": True,
                    }
                ],
            }
        ],
    }


def test_a_waiting_task_has_nulls_where_nothing_is_known() -> None:
    told = task_record(record(1, TaskState.PENDING), RESULTS)
    assert [told[key] for key in ("started_at", "finished_at", "ended_by", "verdict", "worker")] == [None] * 5


def test_names_can_be_turned_back_into_their_bytes() -> None:
    (name,) = task_record(record(1, name=EVIL), RESULTS)["sample"]["names"]
    assert unescape(name) == EVIL


def test_a_duplicate_names_its_task_and_that_tasks_verdict_once_it_is_final() -> None:
    receipt = Duplicate(SampleName(EVIL, b"/in/" + EVIL), sha(1), 1536, 1, TaskState.PENDING)
    pending = duplicate_record(receipt, record(1, TaskState.RUNNING))
    final = duplicate_record(receipt, record(1, verdict=MALICIOUS))
    assert (pending["of"], pending["state"], pending["verdict"]) == (1, "running", None)
    assert (final["state"], final["verdict"]["score"]) == ("completed", 100)
    assert duplicate_record(receipt, None)["state"] == "pending"


def test_nothing_foreign_leaves_a_record_unescaped() -> None:
    evil = EVIL.decode("utf-8", "surrogateescape")
    records = [
        task_record(record(1, TaskState.FAILED, EVIL, Verdict(Classification.CLEAN, labels=(evil,)), reason=evil), RESULTS),
        refused_record(Refused(SampleName(EVIL, EVIL), Refusal("link", f"It is a link to {evil}."))),
    ]
    assert all(printable(json.dumps(told, ensure_ascii=False)) for told in records)


ROWS = [
    table.header(),
    table.task_row(record(1, name="样本".encode() * 60, verdict=MALICIOUS)),
    table.task_row(record(123456789, TaskState.PREPARING_RESOURCES, EVIL * 30)),
    table.task_row(record(2, TaskState.FAILED, reason="样本" * 300)),
    table.duplicate_row(Duplicate(SampleName(EVIL), sha(1), 10**15, 1, TaskState.COMPLETED), None),
    table.refused_row(Refused(SampleName(EVIL), Refusal("link", EVIL.decode("latin-1")))),
]


@pytest.mark.parametrize("width", [20, 60, 80, 100, 140, 300])
def test_a_table_row_is_as_wide_as_the_terminal_and_harmless(width: int) -> None:
    form = table.layout(width, largest_id=123456789)
    shown = [list(table.lines(row, form)) for row in ROWS]
    assert all(printable(line) for lines in shown for line in lines)
    assert max(table.cell_len(line) for lines in shown for line in lines) <= max(width, table.NARROWEST)
    assert all(len(lines) <= table.MAX_LINES for lines in shown)


def test_a_table_row_is_readable_on_eighty_columns() -> None:
    (line,) = table.lines(table.task_row(record(12, name=b"invoice.exe", verdict=MALICIOUS)), table.layout(80))
    assert {"malicious", "100", "pe", "invoice.exe"} <= set(line.split())


def test_a_reason_that_does_not_fit_goes_on_below_itself() -> None:
    row = table.refused_row(Refused(SampleName(b"c++"), Refusal("fifo", "It is a named pipe (FIFO), which has no content.")))
    first, *rest = table.lines(row, table.layout(80))
    column = first.index("It is")
    assert [line[:column].strip() for line in rest] == [""] * len(rest)
    assert " ".join([first[column:], *(line[column:] for line in rest)]) == "It is a named pipe (FIFO), which has no content."


def test_in_a_pipe_a_row_is_one_line_and_its_reason_whole() -> None:
    (line,) = table.lines(table.refused_row(Refused(SampleName(b"x"), Refusal("link", "so " * 100))), table.layout(None))
    assert line.count("so") == 100


def test_a_long_name_keeps_its_beginning_and_its_ending() -> None:
    (line,) = table.lines(table.task_row(record(1, name=b"invoice" + b"_" * 200 + b".pdf.exe")), table.layout(80))
    assert re.search(r" invoice_+…\.pdf\.exe$", line)


def test_ids_are_never_cut() -> None:
    (line,) = table.lines(table.task_row(record(123456789)), table.layout(80, largest_id=123456789))
    assert line.startswith("123456789 ")


def test_colour_adds_to_the_words_and_nothing_else() -> None:
    row = table.task_row(record(1, TaskState.TIMED_OUT, verdict=MALICIOUS))
    (plain,), (coloured,) = (list(table.lines(row, table.layout(140, coloured=yes))) for yes in (False, True))
    assert "\x1b[1;31mmalicious \x1b[0m" in coloured
    assert "\x1b[31mtimed out\x1b[0m" in coloured
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == plain


def test_how_much_the_reports_name_stands_in_the_row() -> None:
    row = record(1, verdict=MALICIOUS)
    named = named_in([Indicator("url", "http://a.example/"), Indicator("ip", "1.2.3.4")], [])
    runs = tuple(msgspec.structs.replace(run, named=named) for run in row.task.plugins)
    row = msgspec.structs.replace(row, task=msgspec.structs.replace(row.task, plugins=runs))
    assert runs
    assert table.task_row(row)[-1].endswith("; 2 indicators")


def test_a_task_that_did_not_complete_says_why_in_its_row() -> None:
    assert table.task_row(record(1, TaskState.FAILED, reason="The plugin pe crashed."))[-1] == "The plugin pe crashed."


@pytest.mark.parametrize("ended_by", [EndedBy.ANALYSIS_TIMEOUT, EndedBy.CRITICAL_TIMEOUT, EndedBy.STAGE_TIMEOUT])
def test_a_task_that_timed_out_says_everywhere_which_limit_it_was_and_the_run_exits_one(ended_by: EndedBy) -> None:
    row = record(1, TaskState.TIMED_OUT, reason="The limit of 5 s ended it.")
    row = TaskRecord(msgspec.structs.replace(row.task, ended_by=ended_by), row.sample)
    assert table.task_row(row)[1] == "timed out"
    assert table.task_row(row)[-1] == "The limit of 5 s ended it."
    told = task_record(row, RESULTS)
    assert (told["state"], told["ended_by"], told["reason"]) == ("timed_out", ended_by.value, "The limit of 5 s ended it.")
    lines = list(task_lines(row, RESULTS))
    assert f"  ended by   {ended_by.value.replace('_', ' ')}" in lines
    assert "  reason     The limit of 5 s ended it." in lines
    tally = Tally()
    tally.ended_as(1, row.task.state)
    assert tally.exit_code() == EXIT_NOT_ALL_COMPLETED


def test_a_tasks_page_says_how_long_it_may_take_and_that_its_machine_is_watched_to_the_end() -> None:
    row = record(1)
    watched = TaskRecord(msgspec.structs.replace(row.task, enforce_timeout=True, timeout_s=12.5), row.sample)
    assert "  time limit 300 s for the analysis" in task_lines(row, RESULTS)
    assert "  time limit 12.5 s for the analysis; its machine is watched for all of it" in task_lines(watched, RESULTS)
    assert task_record(watched, RESULTS)["enforce_timeout"] is True


def test_a_task_that_completed_in_part_or_with_nothing_says_so_in_its_row() -> None:
    whole = record(1, reason="Finished.", verdict=MALICIOUS)
    failed = msgspec.structs.replace(whole.task.plugins[0], name="yara-x", status=PluginStatus.FAILED)
    part = msgspec.structs.replace(whole.task, plugins=(*whole.task.plugins, failed), reason="Finished; 1 of 2 plugins failed.")
    nothing = msgspec.structs.replace(whole.task, plugins=(), verdict=None, reason="Finished with no results.")
    cells = [table.task_row(TaskRecord(task, whole.sample))[-1] for task in (whole.task, part, nothing)]
    labels = r"EICAR, \x1b[31mred"
    assert cells == [labels, f"{labels}; Finished; 1 of 2 plugins failed.", "Finished with no results."]


def test_a_tasks_page_is_harmless_and_has_its_stages_in_numbers() -> None:
    lines = list(task_lines(record(1, name=EVIL, verdict=MALICIOUS), RESULTS))
    assert all(printable(line) for line in lines)
    assert "  running              40 s" in lines
    assert lines[-2:] == [f"  result     report (json, 10 B, SHA-256 {sha(9)})", "    /data/results/1/t/digests/report"]


def test_a_result_that_only_programs_want_is_not_on_the_page_and_is_in_the_record() -> None:
    whole = record(1)
    (run,) = whole.task.plugins
    results = (
        msgspec.structs.replace(run.results[0], title="The \x1breport"),
        msgspec.structs.replace(run.results[0], name="index", is_for_people=False),
    )
    told = msgspec.structs.replace(whole.task, plugins=(msgspec.structs.replace(run, results=results),))
    lines = [line for line in task_lines(TaskRecord(told, whole.sample), RESULTS) if line.startswith("  result")]
    assert [line.partition(" (")[0] for line in lines] == [r"  result     The \x1breport: report"]
    (plugin,) = task_record(TaskRecord(told, whole.sample), RESULTS)["plugins"]
    assert [(found["title"], found["is_for_people"]) for found in plugin["results"]] == [(r"The \x1breport", True), (None, False)]


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1048575, "1.0 MiB"),
        (512 << 20, "512 MiB"),
        (10**15, "909 TiB"),
        (2**60, "1024.0 PiB"),
    ],
)
def test_sizes_fit_their_column(size_bytes: int, shown: str) -> None:
    assert size(size_bytes) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-1, "0.00 s"),
        (0.344, "0.34 s"),
        (9.994, "9.99 s"),
        (9.995, "10 s"),
        (59.6, "1 min 00 s"),
        (245, "4 min 05 s"),
        (7380, "2 h 03 min"),
    ],
)
def test_durations_read_well(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_times_are_utc_with_milliseconds() -> None:
    assert timestamp(0.0015) == "1970-01-01T00:00:00.001Z"
    assert timestamp(None) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain", "plain"), ("a\\b", "a\\b"), ("\\\x1b\\\\", "\\\\x1b\\\\"), ("r\\xe9", "r\\xe9"), ("\x9b\n", "\\xc2\\x9b\\x0a")],
)
def test_a_sentence_keeps_its_backslashes_and_shows_what_cannot_be_seen(text: str, shown: str) -> None:
    assert sentence(text) == shown


def test_what_reports_name_and_why_they_come_to_what_they_do_is_said() -> None:
    technique = Technique("T1055", "Process \x1b[31mInjection")
    named = named_in([Indicator("url", "http://a.example/")], [technique])
    row = record(7, verdict=MALICIOUS)
    judged = msgspec.structs.replace(row.task.plugins[0], verdict=MALICIOUS, named=named)
    row = TaskRecord(msgspec.structs.replace(row.task, plugins=(judged,)), row.sample)
    told = task_record(row, RESULTS)
    assert (told["indicators"], told["techniques"]) == (1, [r"T1055 Process \x1b[31mInjection"])
    assert told["reasons"] == [
        r"digests says malicious, score 100, with high confidence: EICAR, \x1b[31mred.",
        r"digests names the technique: T1055 Process \x1b[31mInjection.",
    ]
    page = "\n".join(task_lines(row, RESULTS))
    assert "1 distinct indicator, 1 technique" in page
    assert "  why        digests says malicious" in page
    assert printable(page.replace("\n", ""))
