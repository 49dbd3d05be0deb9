"""What the figures of `make bench` look like."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks.__main__ import GROUPS, main
from tests.benchmarks.figures import Comparison, Figure, median, percentile
from tests.benchmarks.markdown import table


def test_a_figure_is_one_object_a_line_with_nothing_that_does_not_apply() -> None:
    assert json.loads(median("rate", [3.0, 1.0, 2.0], "1/s").as_json()) == {
        "name": "rate",
        "value": 2.0,
        "unit": "1/s",
        "runs": 3,
    }


def test_a_comparison_names_the_peer_the_ratio_and_whether_it_is_embedded() -> None:
    figure = median("rate", [2.0], "1/s", compared=Comparison(peer="other", embedded=True, ratio=1.5), tasks=100)
    assert json.loads(figure.as_json()) == {
        "name": "rate",
        "value": 2.0,
        "unit": "1/s",
        "runs": 1,
        "peer": "other",
        "ratio": 1.5,
        "embedded": True,
        "tasks": 100,
    }
    assert "rate, other" in figure.as_line()
    assert "ours to it 1.50" in figure.as_line()


def test_what_could_not_be_measured_says_why() -> None:
    figure = Figure("rate", None, "1/s", 0, compared=Comparison(peer="other", embedded=False), missing="there is no server")
    row = json.loads(figure.as_json())
    assert (row["value"], row["ratio"], row["missing"]) == (None, None, "there is no server")
    assert "there is no server" in figure.as_line()


def test_the_median_of_few_and_of_many_pending_are_told_apart() -> None:
    rows = [json.loads(median("cost", [1.0], "µs", pending=pending).as_json()) for pending in (10, 1000)]
    assert [row["pending"] for row in rows] == [10, 1000]


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 51.0), (0.99, 100.0), (1.0, 100.0)])
def test_a_percentile_is_one_of_the_measured_values(share: float, value: float) -> None:
    assert percentile([float(number) for number in range(100, 0, -1)], share) == value


def test_a_benchmark_that_is_not_there_is_wrong_usage_and_says_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "nonsense"]) == 2
    captured = capsys.readouterr()
    assert "nonsense" in captured.err
    assert all(name in captured.err for name in GROUPS)
    assert captured.out == ""


def test_the_table_of_the_readme_has_ours_beside_each_peer() -> None:
    compared = Comparison(peer="other", embedded=True, ratio=2.0)
    absent = Comparison(peer="absent", embedded=False)
    figures = [
        median("durable_noop_tasks_per_s", [1000.0], "1/s"),
        median("durable_noop_tasks_per_s", [500.0], "1/s", compared=compared),
        Figure("durable_noop_tasks_per_s", None, "1/s", 0, compared=absent, missing="no server"),
        median("task_cost_us", [12.34], "µs", pending=10_000),
        median("machine: something else", [1.0], ""),
    ]
    assert list(table(json.loads(figure.as_json()) for figure in figures))[2:] == [
        "| tasks a second | 1,000 | other, embedded | 500 | 2.00 |",
        "| | | absent, server | no server | |",
        "| one task, others pending: 10,000 | 12.3 µs | | | |",
    ]
