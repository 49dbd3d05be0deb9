"""A question to the person at the terminal."""

from __future__ import annotations

import signal
import sys

_YES = frozenset({"y", "yes"})


def can_be_asked() -> bool:
    """Whether there is somebody to answer."""
    return sys.stdin.isatty()


def agreed(question: str) -> bool:
    """Ask on stderr, and wait for the line that answers; False for whatever is no yes. Main thread only.

    The event loop would take Ctrl+C for itself and act on it after the answer: here it raises KeyboardInterrupt at once.
    """
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline().strip().lower() in _YES
    finally:
        signal.signal(signal.SIGINT, former)
