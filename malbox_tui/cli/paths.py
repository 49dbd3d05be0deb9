"""Paths of the command line, before anything is done with them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from malbox_tui.model.sample import escape


def is_missing(path: str) -> bool:
    """Whether there is surely nothing of that name; a folder that may not be looked into leaves that open."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def nothing_there(paths: Sequence[str]) -> str:
    """A sentence for paths that are all missing."""
    first = escape(os.fsencode(paths[0])) or "''"
    if len(paths) == 1:
        return f"There is no file or folder {first}."
    return f"None of the {len(paths)} paths is there; the first is {first}."
