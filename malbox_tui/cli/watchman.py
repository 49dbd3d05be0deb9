"""Signals and a lost terminal while the console is up: a thread of its own carries them out, whatever the screen is at.

1. Handlers only write a byte to a pipe: they may interrupt anything. They are set with `signal.signal`, since an event loop's own
   vanish with the loop, and the engine outlives the console's.
2. SIGTERM drains for `DRAIN_LIMIT_S`, then gives back; a second one, SIGINT and SIGHUP give back at once. Once that is asked for, one
   more signal is forgiven and the next ends the process.
3. A terminal that is gone counts as SIGHUP, which only the foreground processes of its session are sent.
4. When the engine has ended and the screen has not followed within `SCREEN_MARGIN_S` (its writer hangs on a stopped terminal, or
   died of a lost one), or the engine doesn't end within `end_limit_s` of being asked to give back, `last_resort` ends the process.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Protocol

from malbox_tui.model.commands import ShutdownMode

log = logging.getLogger(__name__)

DRAIN_LIMIT_S = 60.0
"""How long running tasks may take to finish after SIGTERM."""
SCREEN_MARGIN_S = 5.0
"""How long the screen may take to close after the engine has ended."""
LOST_SCREEN_MARGIN_S = 1.0
"""The same, where nobody can see it any more."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_WAKE, _DISMISS = 0, 255
_TICK_MS = 200


class Stoppable(Protocol):
    """What is stopped: an engine in a thread of its own."""

    def stop(self, mode: ShutdownMode) -> None:
        """Ask it to end; a harder mode hardens an earlier one."""
        ...

    def join(self, timeout_s: float | None = None) -> bool:
        """Whether it has ended within so long."""
        ...


class Watchman:
    """While entered, SIGINT, SIGTERM, SIGHUP and the loss of `terminal` come here; what they meant before comes back at the end.

    An ignored SIGHUP (nohup) stays ignored. `last_resort` gets the exit code and doesn't return.
    """

    def __init__(
        self,
        terminal: int,
        end_limit_s: float,
        last_resort: Callable[[int], None],
        monotonic: Callable[[], float] = time.monotonic,
        drain_limit_s: float = DRAIN_LIMIT_S,
    ) -> None:
        self.signal: signal.Signals | None = None
        """The first one that came."""
        self.terminal_lost = False
        self._terminal = terminal
        self._end_limit_s = end_limit_s
        self._drain_limit_s = drain_limit_s
        self._last_resort = last_resort
        self._monotonic = monotonic
        self._mode: ShutdownMode | None = None
        self._forgives = True
        self._hung_up = False
        self._engine: Stoppable | None = None
        self._on_ask: Callable[[ShutdownMode], None] | None = None
        self._give_up_at: float | None = None
        self._screen_gone_by: float | None = None
        self._former: dict[signal.Signals, Any] = {}
        self._ear, self._mouth = -1, -1
        self._thread = threading.Thread(target=self._watch, name="malbox watchman", daemon=True)

    @property
    def exit_code(self) -> int | None:
        """128 and the number of the first signal, as a shell has it; None when there was none."""
        return None if self.signal is None else 128 + self.signal

    def __enter__(self) -> Watchman:
        self._ear, self._mouth = os.pipe()
        os.set_blocking(self._mouth, False)
        self._thread.start()
        for number in _SIGNALS:
            former = signal.getsignal(number)
            if number is signal.SIGHUP and former == signal.SIG_IGN:
                continue
            self._former[number] = former
            signal.signal(number, self._hand_on)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._say(_DISMISS)
        self._thread.join()
        for number, former in self._former.items():
            signal.signal(number, former)
        os.close(self._ear)
        os.close(self._mouth)

    def guard(self, engine: Stoppable) -> None:
        """From now on signals stop this engine; at once if one came already."""
        self._engine = engine
        if self._mode is not None:
            engine.stop(self._mode)
        self._say(_WAKE)

    def tell(self, on_ask: Callable[[ShutdownMode], None] | None) -> None:
        """Call this, on the watchman's thread, when a signal asks for an end."""
        self._on_ask = on_ask

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        self._say(number)

    def _say(self, word: int) -> None:
        with suppress(BlockingIOError):  # 65,536 unheard words: one more adds nothing
            os.write(self._mouth, bytes((word,)))

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._ear, select.POLLIN)
        poll.register(self._terminal, 0)
        while True:
            for descriptor, _ in poll.poll(None if self._mode is None else _TICK_MS):
                if descriptor == self._terminal:
                    poll.unregister(self._terminal)
                    self._lost_terminal()
                    continue
                words = os.read(self._ear, 4096)
                if _DISMISS in words:
                    return
                for word in words:
                    if word != _WAKE:
                        self._hear(signal.Signals(word))
            if self._mode is not None:
                self._look_at_the_time()

    def _lost_terminal(self) -> None:
        self.terminal_lost = True
        self._hear(signal.SIGHUP)

    def _hear(self, number: signal.Signals) -> None:
        if number is signal.SIGHUP:
            if self._hung_up:
                return
            self._hung_up = True
        log.info("%s came", number.name)
        if self.signal is None:
            self.signal = number
        if self._mode is None and number is signal.SIGTERM:
            self._ask(ShutdownMode.DRAIN)
            self._give_up_at = self._monotonic() + self._drain_limit_s
        elif self._mode is not ShutdownMode.GIVE_BACK:
            self._give_back()
        elif self._forgives:
            self._forgives = False
        else:
            log.warning("ending at once; the next start recovers what was running")
            self._end()

    def _give_back(self) -> None:
        self._ask(ShutdownMode.GIVE_BACK)
        self._give_up_at = self._monotonic() + self._end_limit_s

    def _ask(self, mode: ShutdownMode) -> None:
        self._mode = mode
        if self._engine is not None:
            self._engine.stop(mode)
        if self._on_ask is not None:
            self._on_ask(mode)

    def _look_at_the_time(self) -> None:
        now = self._monotonic()
        if self._engine is not None and self._engine.join(0):
            margin_s = LOST_SCREEN_MARGIN_S if self.terminal_lost else SCREEN_MARGIN_S
            self._screen_gone_by = self._screen_gone_by or now + margin_s
            if now >= self._screen_gone_by:
                log.warning("the screen did not close; ending without it")
                self._end()
        elif self._give_up_at is not None and now >= self._give_up_at:
            if self._mode is ShutdownMode.DRAIN:
                log.info("running tasks did not finish within %g s and are given back", self._drain_limit_s)
                self._give_back()
            else:
                log.warning("the engine did not end within %g s; the next start recovers what it was at", self._end_limit_s)
                self._end()

    def _end(self) -> None:
        code = self.exit_code
        assert code is not None
        self._last_resort(code)
