"""What a signal, a lost terminal and the clock make of a running engine."""

from __future__ import annotations

import os
import pty
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from malbox_tui.cli.watchman import Watchman
from malbox_tui.model.commands import ShutdownMode

PATIENCE_S = 30.0


class ScriptedEngine:
    """Remembers how it was asked to stop; ends when the test says so."""

    def __init__(self) -> None:
        self.asked: list[ShutdownMode] = []
        self.ended = False

    def stop(self, mode: ShutdownMode) -> None:
        self.asked.append(mode)

    def join(self, timeout_s: float | None = None) -> bool:
        return self.ended


class Rig:
    """A watchman on a PTY, with a clock that the test turns."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.now = 0.0
        self.codes: list[int] = []
        self.engine = ScriptedEngine()
        self.watchman = Watchman(self.slave, 30.0, self.codes.append, lambda: self.now, drain_limit_s=60.0)


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    for descriptor in (made.master, made.slave):
        if descriptor >= 0:
            os.close(descriptor)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def until(condition: Callable[[], bool]) -> None:
    """Let the watchman's thread and the handlers run until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)


def test_sigterm_drains_and_gives_back_when_that_takes_too_long(rig: Rig) -> None:
    with rig.watchman as watchman:
        watchman.guard(rig.engine)
        send(signal.SIGTERM)
        until(lambda: rig.engine.asked == [ShutdownMode.DRAIN])
        rig.now = 60.0
        until(lambda: rig.engine.asked == [ShutdownMode.DRAIN, ShutdownMode.GIVE_BACK])
        assert rig.codes == []
    assert watchman.exit_code == 143


def test_an_engine_that_does_not_end_is_left_behind(rig: Rig) -> None:
    with rig.watchman as watchman:
        watchman.guard(rig.engine)
        send(signal.SIGINT)
        until(lambda: rig.engine.asked == [ShutdownMode.GIVE_BACK])
        rig.now = 30.0
        until(lambda: 130 in rig.codes)


def test_a_screen_that_does_not_follow_its_engine_is_left_behind(rig: Rig) -> None:
    with rig.watchman as watchman:
        watchman.guard(rig.engine)
        send(signal.SIGHUP)
        rig.engine.ended = True
        until(lambda: watchman._screen_gone_by is not None)
        rig.now = 5.0
        until(lambda: 129 in rig.codes)


def test_one_signal_too_many_is_forgiven_and_the_next_ends_at_once(rig: Rig) -> None:
    with rig.watchman as watchman:
        watchman.guard(rig.engine)
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGTERM):
            send(number)
        until(lambda: not watchman._forgives)
        assert rig.codes == []
        send(signal.SIGTERM)
        until(lambda: 143 in rig.codes)
    assert rig.engine.asked == [ShutdownMode.DRAIN, ShutdownMode.GIVE_BACK]


def test_the_screen_is_told_too(rig: Rig) -> None:
    told: list[ShutdownMode] = []
    with rig.watchman as watchman:
        watchman.tell(told.append)
        send(signal.SIGINT)
        until(lambda: told == [ShutdownMode.GIVE_BACK])


def test_one_that_came_before_the_engine_was_there_is_not_forgotten(rig: Rig) -> None:
    with rig.watchman as watchman:
        send(signal.SIGTERM)
        until(lambda: watchman.signal is not None)
        watchman.guard(rig.engine)
        assert rig.engine.asked == [ShutdownMode.DRAIN]


def test_a_lost_terminal_and_its_hangup_are_one(rig: Rig) -> None:
    with rig.watchman as watchman:
        watchman.guard(rig.engine)
        os.close(rig.master)
        rig.master = -1
        until(lambda: rig.engine.asked == [ShutdownMode.GIVE_BACK])
        send(signal.SIGHUP)
        until(lambda: watchman.terminal_lost)
    assert watchman._forgives
    assert watchman.exit_code == 129


def test_afterwards_signals_mean_what_they_meant_before(rig: Rig) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with rig.watchman:
        pass
    assert [signal.getsignal(number) for number in numbers] == before


def test_an_ignored_hangup_stays_ignored(rig: Rig) -> None:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with rig.watchman as watchman:
            send(signal.SIGHUP)
        assert watchman.signal is None
    finally:
        signal.signal(signal.SIGHUP, former)
