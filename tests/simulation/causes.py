"""What broke a run: the first cause of it, in words."""

from __future__ import annotations

import traceback

from malbox_tui.model.errors import IllegalMachineMove, IllegalTransition, MalboxError
from tests.simulation.loop import Stuck
from tests.simulation.violation import Violation


def first_cause(error: BaseException) -> BaseException:
    """The first violation among what a task group raises, else the first error."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [first_cause(cause) for cause in error.exceptions]
    return next((cause for cause in causes if isinstance(cause, Violation)), causes[0])


def in_words(error: BaseException) -> str:
    if isinstance(error, Violation | Stuck):
        return str(error)
    return f"the run broke: {type(error).__name__}: {error}\n{where(error)}"


def was_injected(error: BaseException | None) -> bool:
    """Whether an error is one that a fault brought; what breaks a rule of the model never is."""
    return isinstance(error, MalboxError) and not isinstance(error, IllegalTransition | IllegalMachineMove)


def where(error: BaseException | None) -> str:
    return "" if error is None else "".join(traceback.format_exception(error))[-3000:]
