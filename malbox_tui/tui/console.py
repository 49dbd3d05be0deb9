"""What the console needs of its surroundings, given to it by whoever starts it. The app knows nothing else."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.submission import Offer, SubmissionOptions
from malbox_tui.ports import Client, Intake


def _local_time(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%H:%M:%S")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The engine's door, what finds samples on this host, and how to end.

    `on_leave` is called once with the way that the operator chose; `paths` are submitted at the start, `notes` told of in the log.
    """

    client: Client
    intake: Intake
    actor: str
    host: str
    on_leave: Callable[[ShutdownMode], None]
    paths: Sequence[bytes] = ()
    wishes: SubmissionOptions = field(default_factory=SubmissionOptions)
    notes: Sequence[str] = ()
    monotonic: Callable[[], float] = time.monotonic
    time_of_day: Callable[[float], str] = _local_time

    def offers(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """What is found under paths."""
        return self.intake.offers(paths)
