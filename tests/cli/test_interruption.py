"""Signals while an analysis runs."""

from __future__ import annotations

import os
import signal
from unittest import mock

import pytest

from malbox_tui.cli.interruption import Interruption


def test_the_first_signal_acts_once_and_later_ones_are_only_answered(capfd: pytest.CaptureFixture[str]) -> None:
    asked: list[str] = []
    with Interruption() as interruption:
        interruption.on_first(lambda: asked.append("stop"))
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.signals == 2
    assert asked == ["stop"]
    assert "once more ends at once" in capfd.readouterr().err


def test_a_third_one_ends_the_process_after_saying_so(capfd: pytest.CaptureFixture[str]) -> None:
    with mock.patch("os._exit") as ended, Interruption():
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
    ended.assert_called_once_with(1)
    assert "Ending at once" in capfd.readouterr().err


def test_one_that_came_before_there_was_anything_to_stop_is_not_forgotten(capfd: pytest.CaptureFixture[str]) -> None:
    asked: list[str] = []
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
        interruption.on_first(lambda: asked.append("stop"))
    assert asked == ["stop"]


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
