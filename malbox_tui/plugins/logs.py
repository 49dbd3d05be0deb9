"""What becomes of a plugin's output: the text of the result `log`."""

from __future__ import annotations

from collections.abc import Sequence

from malbox_tui.plugins.replies import shortened


def log_of(warnings: Sequence[str], printed: bytes = b"") -> bytes:
    """The log of one run; empty when there is nothing to say."""
    return "".join(f"WARN  {shortened(warning, 2000)}\n" for warning in warnings).encode() + printed


def of_the_batch(printed: bytes, tasks: int) -> bytes:
    """What was printed while so many tasks were worked at together, marked as that; empty when it is."""
    return (
        b"[printed while %d tasks were analysed together]\n%s\n[end of that]\n" % (tasks, printed.rstrip(b"\n"))
        if printed
        else b""
    )


def of_a_used_process(reason: str, log: bytes) -> bytes:
    """The log of a run after which the task is run once more, in a process of its own."""
    return log + f"WARN  in a process that had served other tasks: {reason}; once more, in a fresh one:\n".encode()


def of_a_broken_batch(reason: str, printed: bytes, tasks: int) -> bytes:
    """The same of a batch after which each task is analysed by itself."""
    return of_the_batch(printed, tasks) + f"WARN  the batch of {tasks} tasks broke ({reason}); this one alone:\n".encode()
