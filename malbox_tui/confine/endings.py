"""How a confined process can disappoint the call that waits for it, and how it ended, in words."""

from __future__ import annotations

import signal

from malbox_tui.model.errors import MalboxError


class ConfinedProcessError(MalboxError):
    """A confined process didn't do what it must. The process is to be killed; its output may tell more."""


class ProcessEnded(ConfinedProcessError):
    """It is gone, or has closed the wire. `how` says how it ended ("was killed by SIGSEGV")."""

    def __init__(self, how: str) -> None:
        self.how = how
        super().__init__(f"the process {how}")


class BrokenWire(ConfinedProcessError):
    """It sent something that it may not send."""


def how_ended(returncode: int) -> str:
    """An exit status in words. Shells, and bubblewrap, give 128 + N for signal N."""
    number = -returncode if returncode < 0 else returncode - 128
    try:
        return f"was killed by {signal.Signals(number).name}"
    except ValueError:
        return f"exited with status {returncode}"


def last_words(output: bytes) -> str:
    """The last line that was printed, to be put after how it ended; empty when nothing was."""
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1].strip()[:300]}" if lines else ""
