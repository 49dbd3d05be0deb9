"""What becomes of a plugin's output: the text of the result `log`."""

from __future__ import annotations

from collections.abc import Sequence

from malbox_tui.plugins.replies import shortened


def log_of(warnings: Sequence[str], printed: bytes = b"") -> bytes:
    """The log of one run; empty when there is nothing to say."""
    return "".join(f"WARN  {shortened(warning, 2000)}\n" for warning in warnings).encode() + printed


def cut(printed: bytes, most: int) -> bytes:
    """So many bytes of it, marked where the rest was cut."""
    return printed if len(printed) <= most else printed[:most] + b"\n[the rest was cut here]\n"


def of_before(printed: bytes) -> bytes:
    """What a process printed while it had no task, marked as that; empty when it is."""
    return _marked(b"printed before this task", printed)


def of_the_batch(printed: bytes, tasks: int) -> bytes:
    """What was printed while so many tasks were worked at together, marked as that; empty when it is."""
    return _marked(b"printed while %d tasks were analysed together" % tasks, printed)


def _marked(as_what: bytes, printed: bytes) -> bytes:
    return b"[%s]\n%s\n[end of that]\n" % (as_what, printed.rstrip(b"\n")) if printed.strip() else b""


def of_a_used_process(reason: str, log: bytes) -> bytes:
    """The log of a run after which the task is run once more, in a process of its own."""
    return log + f"WARN  in a process that had served other tasks: {reason}; once more, in a fresh one:\n".encode()


def of_a_broken_batch(reason: str, printed: bytes, tasks: int) -> bytes:
    """The same of a batch after which each task is analysed by itself."""
    return of_the_batch(printed, tasks) + f"WARN  the batch of {tasks} tasks broke ({reason}); this one alone:\n".encode()
