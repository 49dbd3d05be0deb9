"""What opens the archives that come in."""

from __future__ import annotations

import logging
import tempfile
from functools import partial
from pathlib import Path

from malbox_tui.config.settings import Settings
from malbox_tui.confine.probe import choose
from malbox_tui.intake.archive_intake import ArchiveIntake
from malbox_tui.intake.leftovers import remove_leftovers
from malbox_tui.intake.unpacker import ConfinedUnpacker
from malbox_tui.model.archive import ArchiveChoice, UnpackLimits
from malbox_tui.ports import Intake, Unpacker

log = logging.getLogger(__name__)


def with_archives(settings: Settings, inner: Intake, choice: ArchiveChoice) -> Intake:
    """The `Intake` that opens the archives among the offers of `inner`, as `choice` says."""
    return ArchiveIntake(inner, partial(_open_unpacker, settings), choice)


def clear_leftovers(now: float) -> None:
    """Remove what a process that was killed while it unpacked left behind. Blocking."""
    if count := remove_leftovers(Path(tempfile.gettempdir()), now):
        log.info("removed %d folders of unpacking that was interrupted", count)


async def _open_unpacker(settings: Settings) -> Unpacker:
    """Raises `ConfinementUnavailable`."""
    intake = settings.intake
    limits = UnpackLimits(
        depth=intake.max_archive_depth,
        entries=intake.max_archive_members,
        total_bytes=intake.max_archive_bytes,
        member_bytes=min(intake.max_sample_bytes, intake.max_archive_bytes),
        ratio=intake.max_archive_ratio,
        time_s=intake.archive_timeout_s,
    )
    confinement = await choose(settings.confinement.isolation)
    return ConfinedUnpacker(confinement.walls, Path(tempfile.gettempdir()), limits, intake.archive_passwords)
