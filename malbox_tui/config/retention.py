"""[retention]: how long samples and results are kept, and the room that the disk is to have."""

from __future__ import annotations

from typing import Annotated

import msgspec

from malbox_tui.config.section import SettingsTable

Days = Annotated[float, msgspec.Meta(ge=0, le=36500)]
Mebibytes = Annotated[int, msgspec.Meta(ge=0, le=1024**3)]

DAY_S = 86400.0
MIB = 1024 * 1024


class RetentionSettings(SettingsTable, frozen=True, kw_only=True):
    """[retention]: what is removed by itself, the oldest first and never anything with a task that waits or runs; and how much room the
    disk is to have."""

    sample_days: Days = 0.0
    """A sample is removed, with its tasks and their results, when its latest task ended so many days ago. 0: never."""
    samples_mb: Mebibytes = 0
    """How much samples may take on disk together, in MiB; beyond it the oldest are removed, as with sample_days. 0: any amount."""
    result_days: Days = 0.0
    """The results of a task are removed when it ended so many days ago; what it came to is kept. 0: never."""
    results_mb: Mebibytes = 0
    """How much results may take on disk together, in MiB; beyond it those of the oldest tasks are removed. 0: any amount."""
    min_free_mb: Mebibytes = 1024
    """While the disk under the data has less free than this, in MiB, nothing is taken in and no task begins; what runs goes on. It
    resumes by itself when a tenth more is free. 0: no such floor."""

    @property
    def floor_bytes(self) -> int:
        """The least room."""
        return self.min_free_mb * MIB
