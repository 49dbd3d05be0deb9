"""What a run in a guest is made of: what is to be run, where and how; how long its parts may take; and what is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from malbox_tui.engine.guest_files import CollectedFile
from malbox_tui.engine.hypervisor import MachineHands
from malbox_tui.model.errors import GuestUnreachable
from malbox_tui.model.events import EventBody
from malbox_tui.model.launch import Launch
from malbox_tui.model.machine import MachineSpec
from malbox_tui.model.report import PluginRun, ResultRef
from malbox_tui.model.task import RunOptions
from malbox_tui.ports import GuestPlugin, GuestSession, GuestView, PluginJob

ASK_S = 30.0
"""How long the machine or its guest may take for a thing that takes a moment."""


@dataclass(frozen=True, slots=True)
class GuestTimes:
    """How long collecting may take, how long that after a shutdown, and how long a guest that starts anew, in seconds."""

    collecting_s: float
    grace_s: float
    back_s: float

    @property
    def longest_s(self) -> float:
        """How long all of it may take at most once a run is to end: the memory, what the guest has, and the traffic."""
        return 2 * self.collecting_s + 3 * ASK_S


@dataclass(frozen=True, slots=True)
class GuestOrder:
    """What is to be run, where, and how. `watches`: the guest is watched for the whole time, also when the sample has ended before.

    `seen` is what was there when the machine was proven clean; None: it is yet to be looked at. `tell` is told news, `on_picture` of
    each picture of the screen that was kept.
    """

    machine: MachineSpec
    session: GuestSession
    hands: MachineHands
    launch: Launch
    options: RunOptions
    watches: bool
    job: PluginJob
    plugins: Sequence[GuestPlugin]
    tell: Callable[[EventBody], None]
    on_picture: Callable[[ResultRef], None]
    seen: GuestView | None = None


@dataclass(frozen=True, slots=True)
class GuestFindings:
    """The runs, that of the sample first; why its guest was lost, None: it wasn't; why the sample could not be run, or empty; what else
    is to be said of its end, or empty; and the files that were collected whole. `has_watched`: its guest was watched on after the
    sample had ended, until the time was over."""

    runs: tuple[PluginRun, ...]
    lost: GuestUnreachable | None = None
    not_run: str = ""
    remark: str = ""
    files: tuple[CollectedFile, ...] = ()
    has_watched: bool = False
