"""Signals while an analysis runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest

from malbox_tui.cli.interruption import Interruption, Stage


@contextmanager
def listening() -> Iterator[tuple[Interruption, list[str]]]:
    """An interruption, and the names of what it was asked to do."""
    asked: list[str] = []
    with Interruption() as interruption:
        interruption.on(Stage.DRAINING, lambda: asked.append("drain"))
        interruption.on(Stage.GIVING_BACK, lambda: asked.append("give back"))
        yield interruption, asked


def test_ctrl_c_acts_once_and_the_next_is_only_answered(capfd: pytest.CaptureFixture[str]) -> None:
    with listening() as (interruption, asked):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.stage is Stage.PATIENT
    assert asked == ["give back"]
    assert "once more ends at once" in capfd.readouterr().err


def test_sigterm_lets_tasks_finish_and_a_second_one_gives_them_back(capfd: pytest.CaptureFixture[str]) -> None:
    with listening() as (_, asked):
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked == ["drain"]
        os.kill(os.getpid(), signal.SIGTERM)
    assert asked == ["drain", "give back"]
    assert "running ones finish" in capfd.readouterr().err


@pytest.mark.parametrize(("first", "signals"), [(signal.SIGINT, 3), (signal.SIGTERM, 4)])
def test_the_last_one_ends_the_process_after_saying_so(
    first: signal.Signals, signals: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with mock.patch("os._exit") as ended, Interruption():
        for _ in range(signals):
            ended.assert_not_called()
            os.kill(os.getpid(), first)
    ended.assert_called_once_with(1)
    assert "Ending at once" in capfd.readouterr().err


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, ["drain"]), (signal.SIGINT, ["give back"])])
def test_one_that_came_before_there_was_anything_to_stop_is_not_forgotten(number: signal.Signals, expected: list[str]) -> None:
    asked: list[str] = []
    with Interruption() as interruption:
        os.kill(os.getpid(), number)
        interruption.on(Stage.DRAINING, lambda: asked.append("drain"))
        interruption.on(Stage.GIVING_BACK, lambda: asked.append("give back"))
    assert asked == expected


def test_afterwards_signals_mean_what_they_meant_before() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with Interruption():
        pass
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_an_ignored_hangup_stays_ignored() -> None:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, former)
