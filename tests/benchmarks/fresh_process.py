"""A measurement in a process of its own, so that neither the garbage of the one before it nor a peer's threads weigh on it.

`python -m tests.benchmarks.fresh_process FD` is that process: it reads a call from its stdin and writes the result to FD. What the
measured code prints goes nowhere; of what it complains about, the last line is kept for the error.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

ROOT = Path(__file__).parents[2]
LIMIT_S = 900.0
"""What takes longer hangs."""


class MeasurementFailed(Exception):
    """The process died, or took too long; in words."""


def in_a_fresh_process(function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    """What `function`, which has to be a module's own, returns when a new interpreter calls it. Raises `MeasurementFailed`."""
    reader, writer = os.pipe()
    command = [sys.executable, "-m", __name__, str(writer)]
    with os.fdopen(reader, "rb") as answer:
        try:
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=(writer,)
            )
        finally:
            os.close(writer)
        try:
            # The answer is small: it fits into the pipe, so the process may end before it is read.
            _, complaints = process.communicate(pickle.dumps((function, arguments, keywords)), timeout=LIMIT_S)
        except subprocess.TimeoutExpired as exc:
            raise MeasurementFailed(f"it took longer than {LIMIT_S:.0f} s") from exc
        finally:
            process.kill()
            process.wait()
        if process.returncode != 0:
            lines = complaints.decode(errors="replace").strip().splitlines()
            raise MeasurementFailed(lines[-1] if lines else f"its process ended with {process.returncode}")
        result: T = pickle.loads(answer.read())
        return result


def _serve(writer: int) -> None:
    function, arguments, keywords = pickle.load(sys.stdin.buffer)
    result = function(*arguments, **keywords)
    with os.fdopen(writer, "wb") as answer:
        pickle.dump(result, answer)
    # Past whatever the measured code left running: threads of a peer's that never end.
    os._exit(0)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
