"""What the reports of a task, and the latest ones on a sample, come to."""

from __future__ import annotations

from typing import Any

import msgspec

from malbox_tui.model.report import (
    Classification,
    Confidence,
    Indicator,
    Named,
    PluginRun,
    PluginStatus,
    Technique,
    Verdict,
)
from malbox_tui.model.task import Task, TaskState
from malbox_tui.model.verdict import (
    MAX_INDICATORS,
    MAX_LABELS,
    MAX_REASONS,
    count_words,
    history,
    named_in,
    summary_of_sample,
    summary_of_task,
)

MALICIOUS = Verdict(Classification.MALICIOUS, 90, Confidence.HIGH, ("EICAR_Test_File",))
SUSPICIOUS = Verdict(Classification.SUSPICIOUS, 95, None, ("packed",))
URL, DOMAIN = Indicator("url", "http://a.example/"), Indicator("domain", "a.example")
INJECTION, FILE = Technique("T1055", "Process Injection"), Technique("T1204.002", "Malicious File")


def run(name: str, verdict: Verdict | None = None, status: PluginStatus = PluginStatus.COMPLETED, **more: Any) -> PluginRun:
    return msgspec.structs.replace(PluginRun(name, "1.0.0", status, 0.1, verdict=verdict), **more)


def ended(task_id: int, *runs: PluginRun, at: float | None = None, verdict: Verdict | None = None) -> Task:
    return Task(
        id=task_id,
        sha256="0" * 64,
        state=TaskState.COMPLETED,
        created_at=0.0,
        stage_since=0.0,
        finished_at=float(task_id) if at is None else at,
        plugins=runs,
        verdict=verdict,
    )


def test_the_worst_classification_and_the_highest_score_count_whoever_they_are_of() -> None:
    verdict = summary_of_task(ended(1, run("a", SUSPICIOUS), run("b", MALICIOUS))).verdict
    assert verdict == Verdict(Classification.MALICIOUS, 95, Confidence.HIGH, ("packed", "EICAR_Test_File"))


def test_what_several_reports_name_is_counted_once() -> None:
    first, second = named_in([URL, URL, DOMAIN], [INJECTION]), named_in([DOMAIN], [INJECTION, FILE])
    summary = summary_of_task(ended(1, run("a", named=first), run("b", named=second)))
    assert (summary.indicators, summary.is_whole) == (2, True)
    assert summary.techniques == ("T1055 Process Injection", "T1204.002 Malicious File")
    assert count_words(summary) == "2 distinct indicators, 2 techniques"


def test_one_value_of_two_kinds_is_two_indicators() -> None:
    assert len(named_in([Indicator("md5", "ab"), Indicator("mutex", "ab")], ()).indicators) == 2


def test_of_too_many_indicators_it_is_said_that_there_are_more() -> None:
    named = named_in([Indicator("url", str(number)) for number in range(MAX_INDICATORS + 1)], ())
    summary = summary_of_task(ended(1, run("a", named=named)))
    assert count_words(summary) == f"at least {MAX_INDICATORS} distinct indicators"


def test_where_nothing_is_named_no_number_is_told() -> None:
    assert count_words(summary_of_task(ended(1, run("a")))) == ""


def test_each_reason_is_a_sentence_the_worst_first() -> None:
    task = ended(
        1,
        run("packers", SUSPICIOUS),
        run("yara-x", MALICIOUS, named=named_in((), [FILE])),
        run("file-type", status=PluginStatus.FAILED, reason="it crashed."),
        run("slow", status=PluginStatus.TIMED_OUT),
        run("kept-out", status=PluginStatus.SKIPPED, reason="not allowed"),
        run("yara-x", SUSPICIOUS, subject="/tmp/dropped"),
    )
    assert summary_of_task(task).reasons == (
        "yara-x says malicious, score 90, with high confidence: EICAR_Test_File.",
        "packers says suspicious, score 95: packed.",
        "yara-x on /tmp/dropped says suspicious, score 95: packed.",
        "yara-x names the technique: T1204.002 Malicious File.",
    )
    assert summary_of_sample([task]).reasons[-2:] == (
        "file-type in task 1 has no say: it failed: it crashed.",
        "slow in task 1 has no say: it ran out of time.",
    )


def test_reasons_are_bounded_and_safe_to_show() -> None:
    labels = tuple(f"\x1b[31m{number}\n" for number in range(MAX_LABELS + 3))
    evil = run("a\x1b", Verdict(Classification.MALICIOUS, labels=labels), subject="\u202edropped")
    reasons = summary_of_task(ended(1, *[evil] * 100)).reasons
    assert len(reasons) == MAX_REASONS
    assert reasons[-1] == f"And {100 - MAX_REASONS + 1} more of the kind."
    assert "and 3 more" in reasons[0]
    assert all(char.isprintable() for reason in reasons for char in reason)


def test_of_a_sample_the_latest_report_of_each_plugin_counts() -> None:
    tasks = [
        ended(1, run("yara-x", MALICIOUS), run("packers", SUSPICIOUS)),
        ended(3, run("yara-x", Verdict(Classification.UNKNOWN))),
        ended(2, run("yara-x", SUSPICIOUS)),
    ]
    summary = summary_of_sample(tasks)
    assert summary.verdict is not None
    assert summary.verdict.classification is Classification.SUSPICIOUS
    assert summary.reasons == (
        "packers in task 1 says suspicious, score 95: packed.",
        "yara-x in task 3 says unknown.",
    )


def test_a_run_that_failed_later_takes_nothing_from_an_earlier_report() -> None:
    tasks = [ended(1, run("yara-x", MALICIOUS)), ended(2, run("yara-x", status=PluginStatus.FAILED, reason="it crashed"))]
    assert summary_of_sample(tasks).verdict == MALICIOUS
    assert summary_of_sample(tasks[1:]).reasons == ("yara-x in task 2 has no say: it failed: it crashed.",)


def test_what_was_found_in_dropped_files_belongs_to_the_task_that_it_was_found_in() -> None:
    dropped = run("yara-x", MALICIOUS, subject="/tmp/dropped")
    tasks = [ended(1, run("yara-x"), dropped), ended(2, run("yara-x", SUSPICIOUS))]
    assert summary_of_sample(tasks).verdict == SUSPICIOUS
    assert summary_of_sample(tasks[:1]).verdict == MALICIOUS


def test_the_history_is_of_tasks_that_ended_the_latest_first() -> None:
    waiting = Task(id=9, sha256="0" * 64, created_at=0.0, stage_since=0.0)
    past = history([ended(1, verdict=SUSPICIOUS), waiting, ended(2, verdict=MALICIOUS)])
    assert [(entry.task_id, entry.verdict) for entry in past] == [(2, MALICIOUS), (1, SUSPICIOUS)]


def test_a_report_without_anything_named_costs_nothing_in_the_store() -> None:
    assert msgspec.json.encode(Named()) == b"{}"
