"""Analysis machines: `[[machines]]`, one table a machine, and `[machinery]`, what holds for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated

import msgspec

from malbox_tui.config.section import MAX_MB, LowerCaseName, PlainName, Seconds, SettingsTable, Text
from malbox_tui.model.machine import MachineSpec


class Provider(StrEnum):
    """What runs machines."""

    LIBVIRT = "libvirt"
    SIMULATED = "simulated"


class Channel(StrEnum):
    """Ways to talk to guests."""

    QGA = "qga"
    SIMULATED = "simulated"


CHANNELS: Mapping[Provider, tuple[Channel, ...]] = MappingProxyType(
    {Provider.LIBVIRT: (Channel.QGA,), Provider.SIMULATED: (Channel.SIMULATED,)}
)
"""The ways to the guests of a provider's machines; the first is taken when none is named."""

LibvirtUri = Annotated[
    str,
    msgspec.Meta(pattern=r"\A[a-z][a-z0-9+.-]*:/[!-~]{1,1000}\Z", description='a libvirt URI, such as "qemu:///system"'),
]


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
    """What runs the machine. "libvirt": a virtual machine of libvirt's, by QEMU. "simulated": nothing does; it is played, for trying
    things out."""
    uri: LibvirtUri | None = None
    """Where its libvirt is: "qemu:///system" on this host, "qemu+ssh://user@host/system" on another one. Every libvirt machine needs
    it; `malbox-tui machines discover URI` proposes a whole section for each machine there."""
    domain: Text | None = None
    """What libvirt calls it (`virsh list --all`). Left out: as name."""
    snapshot: Text | None = None
    """The clean state that it is reverted to before each task, taken while its guest was running and answering. Every libvirt machine
    needs it. For a guest that libvirt takes no snapshot of, as those that boot by UEFI: "save:" and the absolute path of an image that
    `virsh save` wrote."""
    platform: LowerCaseName
    """The system in it, such as "windows" or "linux"."""
    arch: Arch = Arch.X64
    """Its architecture. A task for x86 may use an x64 machine."""
    tags: tuple[PlainName, ...] = ()
    """What else it has that a task may ask for, such as "office"."""
    channel: Channel | None = None
    """How its guest is talked to. "qga": through the QEMU guest agent, which needs no network. Left out: as its provider has it."""
    address: Text | None = None
    """The IP address of its guest in the analysis network; each machine has another one. The guest agent needs none."""
    folder: Text | None = None
    """Where samples are put in the guest: the absolute path of a folder there. Left out: one for temporary files that its platform
    has."""
    disk_folder: Text | None = None
    """A folder on a disk of the guest that the snapshot takes back, where a mark is left to prove the revert. Left out: as its platform
    has it. Set it when folder is in memory and a disk is mounted elsewhere."""
    watch: tuple[Text, ...] = ()
    """Folders of the guest in which files are looked for that a sample dropped or changed. Empty: folder."""
    disk_kib_s: Annotated[int, msgspec.Meta(gt=0, le=2**31)] | None = None
    """How much each of its disks may read and write in a second while a task runs, in KiB. Left out: any amount."""
    network_kbps: Annotated[int, msgspec.Meta(ge=0, le=2**31)] | None = None
    """How much each of its network cards may send, and how much receive, in a second while a task runs, in kilobits; 0: nothing. A
    machine that can't be held to it serves no task. Left out: any amount."""
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
            uri=self.uri or "",
            domain=self.domain or "",
            snapshot=self.snapshot or "",
            channel=(self.channel or CHANNELS[self.provider][0]).value,
            address=self.address or "",
            folder=self.folder or "",
            disk_folder=self.disk_folder or "",
            watch=self.watch,
            disk_kib_s=self.disk_kib_s,
            network_kbps=self.network_kbps,
        )


class MachinerySettings(SettingsTable, frozen=True, kw_only=True):
    """[machinery]: what holds for all machines."""

    max_starting: Annotated[int, msgspec.Meta(ge=1, le=256)] = 2
    """How many machines may start or be reverted at once."""
    start_timeout_s: Seconds = 120.0
    """How long a machine may take to be reverted and its guest to answer, in seconds."""
    silence_timeout_s: Seconds = 90.0
    """How long the guest of a running machine may be silent while a sample runs in it, before it counts as lost: as long as it takes to
    start anew. In seconds."""
    probe_interval_s: Seconds = 300.0
    """After so long a machine that was taken out of service, or is missing, is tried again. In seconds."""
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    """After so many machines failed a task, it is failed."""
    max_dropped_files: Annotated[int, msgspec.Meta(ge=0, le=4096)] = 256
    """How many of the files that a sample dropped or changed are kept of one run."""
    max_dropped_file_mb: Annotated[int, msgspec.Meta(gt=0, le=MAX_MB)] = 64
    """How much of each of them is kept, in MiB. What there is no time for in collecting_timeout_s of [analysis] is left out, too."""
    max_dropped_mb: Annotated[int, msgspec.Meta(gt=0, le=MAX_MB)] = 256
    """How much of all of them together is kept, in MiB."""
    max_traffic_mb: Annotated[int, msgspec.Meta(gt=0, le=1024)] = 256
    """How much of the machine's network traffic is kept of one run, in MiB."""
    max_memory_mb: Annotated[int, msgspec.Meta(gt=0, le=MAX_MB)] = 16 * 1024
    """How much of a dump of its memory is kept, in MiB."""
