"""The contents of a data folder, looked through without an engine."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.kept_file import kept_beside
from malbox_tui.model.errors import StoreError
from malbox_tui.model.upkeep import StoreFigures
from malbox_tui.runtime.assembly import places_of
from malbox_tui.store.backup import BackedUp, back_up
from malbox_tui.store.checkup import Checkup, Fault, Trouble
from malbox_tui.store.failures import store_error
from malbox_tui.store.stockroom import figures_of

__all__ = ["Checkup", "Fault", "Trouble", "checkup", "copy", "count"]


def count(folders: DataFolders, now: float) -> StoreFigures:
    """What lies in a data folder. Blocking. Raises `StoreError`."""
    try:
        return figures_of(places_of(folders), now)
    except (OSError, sqlite3.Error) as exc:
        raise store_error(exc, str(folders.store)) from exc


def copy(folders: DataFolders, root: Path, now: float) -> tuple[BackedUp, list[Trouble]]:
    """Copy a data folder, with its configuration, to the new folder `root`, which can be worked with: `--data-dir ROOT`. Blocking.
    Raises `StoreError`, `StoreFull`; nothing is left then."""
    target = DataFolders.under(root)
    if folders.root.resolve() in (target.root.resolve(), *target.root.resolve().parents):
        raise StoreError("A copy can't lie in the data folder itself. Choose another folder.")
    kept = [(folders.plugins, target.plugins), (folders.watched, target.watched), (folders.config_file, target.config_file)]
    kept += [(kept_beside(folders.config_file, kind), kept_beside(target.config_file, kind)) for kind in ("limits", "machines")]
    return back_up(places_of(folders), places_of(target), target.root, kept, now)


def checkup(folders: DataFolders, now: float) -> Checkup:
    """A look at all samples and results of a data folder."""
    return Checkup(places_of(folders), now)
