"""The contents of a data folder, looked through without an engine."""

from __future__ import annotations

from malbox_tui.config.folders import DataFolders
from malbox_tui.runtime.assembly import places_of
from malbox_tui.store.checkup import Checkup, Fault, Trouble

__all__ = ["Checkup", "Fault", "Trouble", "checkup"]


def checkup(folders: DataFolders, now: float) -> Checkup:
    """A look at all samples and results of a data folder."""
    return Checkup(places_of(folders), now)
