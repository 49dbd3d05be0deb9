"""What broke down, in words for the person at the terminal."""

from __future__ import annotations

from malbox_tui.cli.text import sentence
from malbox_tui.config.folders import DataFolders
from malbox_tui.model.errors import MalboxError


def first_cause(error: BaseException) -> BaseException:
    """The error itself, or of a group (a task group's, say) the first one in it that is none."""
    return first_cause(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def engine_breakdown(error: BaseException, folders: DataFolders, log_name: str = "malbox-tui.log") -> str:
    """Why the engine ended: in the words of what it knows of, and where the details are of what it doesn't."""
    cause = first_cause(error)
    if isinstance(cause, MalboxError):
        return sentence(str(cause))
    log_file = sentence(str(folders.logs / log_name))
    return f"The engine ended with an unexpected {type(cause).__name__}; {log_file} has the details."
