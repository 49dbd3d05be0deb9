"""What the engine has trouble with, told while it lasts: a full disk is waited out, and whoever waits with it must know.

The engine logs it as warnings; each kind is told when it comes up, and then at most every `REPEAT_S` seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from malbox_tui.cli.text import sentence

REPEAT_S = 30.0

_LOGGERS = ("malbox_tui.engine", "malbox_tui.runtime.patient_loop")


@contextmanager
def troubles_told(tell: Callable[[str], None], clock: Callable[[], float]) -> Iterator[None]:
    """While entered, `tell` gets a line, safe to print, for what the engine warns of. It is called in the engine's thread."""
    teller = _Teller(tell, clock)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addHandler(teller)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(teller)


class _Teller(logging.Handler):
    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell
        self._clock = clock
        self._next_at: dict[str, float] = {}
        """A kind (the message before its values are put in) → when it may be told again."""

    def emit(self, record: logging.LogRecord) -> None:
        kind, now = str(record.msg), self._clock()
        if now >= self._next_at.get(kind, now):
            self._next_at[kind] = now + REPEAT_S
            self._tell(sentence(record.getMessage()))
