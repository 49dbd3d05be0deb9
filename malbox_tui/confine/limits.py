"""Walls where there is no bubblewrap: resource limits, a session of its own, and an end together with the engine.

Weaker: the process runs as the engine's user and sees its files and network. What it starts is found again by its process group, and
by a mark in its environment if it left that.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from malbox_tui.confine.marks import mark_of
from malbox_tui.confine.work import SDK_FOLDER, Launch, Limits, Places, Work, environment, python_command


@dataclass(frozen=True, slots=True)
class LimitsOnly:
    """Confines by limits alone."""

    @property
    def has_namespace(self) -> bool:
        """It has none."""
        return False

    def launch(self, work: Work, wire_fd: int) -> Launch:
        """The command for `work`."""
        places = Places(
            sdk=str(SDK_FOLDER),
            code=str(work.code),
            inbox=str(work.inbox),
            scratch=str(work.scratch),
            readable={name: str(path) for name, path in work.readable.items()},
        )
        settings = json.dumps({**work.limits.settings(), "parent": os.getpid()})
        variables = {**environment(work, places, wire_fd), **mark_of(work)}
        return Launch(python_command(settings, places, work), variables, places)

    def processes_allowed(self, limits: Limits) -> None:
        """None: RLIMIT_NPROC would count all of the user's processes."""
