"""What the console needs of its surroundings, given to it by whoever starts it. The app knows nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.ports import Attachment, Client, Identifier, Intake
from malbox_tui.tui.banner import Notice, away_notice


def _nothing() -> None: ...


def _local_time(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%H:%M:%S")


class OptionsLine(Protocol):
    """Reads what is asked of samples as one line, in the words of the command line."""

    @property
    def text(self) -> str:
        """What the console was started with."""
        ...

    def read(self, text: str) -> tuple[SubmissionOptions, Intake]:
        """What it asks of a submission, and what finds samples as it says. Raises ValueError, with a sentence."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The engine's door, what finds samples on this host, and how to end.

    `on_leave` is called once with the way that the operator chose; `on_background` (None: that can't be done) when the pool is to go on
    without the console; `on_shown` once, when the screen is first drawn. `attachment` is the way to an engine elsewhere, None when it
    is inside: then leaving ends it. `paths` are submitted at the start, `notes` told of in the log. `line` reads options that are
    typed; None: none are. `open_identifier` makes what says what files of this host are; None: nobody does. It raises `MalboxError`
    where that can't be done.
    """

    client: Client
    intake: Intake
    actor: str
    host: str
    on_leave: Callable[[ShutdownMode], None]
    on_background: Callable[[], None] | None = None
    on_shown: Callable[[], None] = _nothing
    attachment: Attachment | None = None
    paths: Sequence[bytes] = ()
    wishes: SubmissionOptions = field(default_factory=SubmissionOptions)
    line: OptionsLine | None = None
    notes: Sequence[str] = ()
    open_identifier: Callable[[], AbstractAsyncContextManager[Identifier]] | None = None
    monotonic: Callable[[], float] = time.monotonic
    time_of_day: Callable[[float], str] = _local_time

    @property
    def engine_host(self) -> str:
        """Where the engine runs."""
        return self.host if self.attachment is None else self.attachment.place.rpartition("@")[2]

    def away_notice(self) -> Notice | None:
        """What there is to say while an engine elsewhere can't be reached; None while it can."""
        away = None if self.attachment is None else self.attachment.away
        return None if away is None else away_notice(away, self.time_of_day)
