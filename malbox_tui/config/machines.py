"""Analysis machines: `[[machines]]`, one table a machine, and `[machinery]`, what holds for all of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from malbox_tui.config.section import LowerCaseName, PlainName, Seconds, SettingsTable
from malbox_tui.model.machine import MachineSpec


class Provider(StrEnum):
    """What runs machines."""

    SIMULATED = "simulated"


class Arch(StrEnum):
    """Processor architectures."""

    X64 = "x64"
    X86 = "x86"
    ARM64 = "arm64"


class MachineSettings(SettingsTable, frozen=True, kw_only=True):
    """[[machines]]: one machine that tasks run on. Write the table once for each machine."""

    name: PlainName
    """What the machine is called; each has another name."""
    provider: Provider
    """What runs the machine. "simulated": nothing does; it is played, for trying things out."""
    platform: LowerCaseName
    """The system in it, such as "windows" or "linux"."""
    arch: Arch = Arch.X64
    """Its architecture. A task for x86 may use an x64 machine."""
    tags: tuple[PlainName, ...] = ()
    """What else it has that a task may ask for, such as "office"."""
    max_failures: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    """After so many failed reverts in a row it is taken out of service."""

    def spec(self) -> MachineSpec:
        """The machine as the engine and its provider know it."""
        return MachineSpec(
            name=self.name,
            provider=self.provider.value,
            platform=self.platform,
            arch=self.arch.value,
            tags=self.tags,
            max_failures=self.max_failures,
        )


class MachinerySettings(SettingsTable, frozen=True, kw_only=True):
    """[machinery]: what holds for all machines."""

    max_starting: Annotated[int, msgspec.Meta(ge=1, le=256)] = 2
    """How many machines may start or be reverted at once."""
    start_timeout_s: Seconds = 120.0
    """How long a machine may take to be reverted and its guest to answer, in seconds."""
    probe_interval_s: Seconds = 300.0
    """After so long a machine that was taken out of service, or is missing, is tried again. In seconds."""
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    """After so many machines failed a task, it is failed."""
