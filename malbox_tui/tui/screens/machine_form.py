"""Asks what a machine is, to add one or to change it."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from malbox_tui.model.machine import MachineSpec
from malbox_tui.tui.screens.form import Answered, Field, Form, Kind

Send = Callable[[MachineSpec, Answered], None]

FIELDS: tuple[Field, ...] = (
    Field("name", "name", "what it is called here"),
    Field("platform", "platform", "windows or linux"),
    Field("arch", "arch", "x64, x86 or arm64"),
    Field("tags", "tags", "what tasks may ask for: office, slow", Kind.LIST),
    Field("provider", "provider", "libvirt"),
    Field("uri", "uri", "where its hypervisor is: qemu:///system"),
    Field("domain", "domain", "what its hypervisor calls it; empty: its name"),
    Field("snapshot", "snapshot", "what it is reverted to"),
    Field("channel", "channel", "the way to its guest: qga"),
    Field("address", "address", "its guest's in the analysis network"),
    Field("folder", "folder", "where samples are put; empty: its platform's own"),
    Field("disk_folder", "disk folder", "one on the disk that is reverted; empty: likewise"),
    Field("watch", "watched", "folders where dropped files are looked for", Kind.LIST),
    Field("max_failures", "failures", "so many reverts in a row may fail", Kind.COUNT),
    Field("disk_kib_s", "disk limit", "KiB a second; empty: none", Kind.COUNT),
    Field("network_kbps", "network", "kbit a second; 0: no network; empty: no limit", Kind.COUNT),
)

NEW = MachineSpec(name="", provider="libvirt", platform="", uri="qemu:///system", channel="qga")
"""What a new machine begins with."""


class MachineForm(Form[MachineSpec]):
    """A machine that exists keeps its name."""

    def __init__(self, title: Text, given: MachineSpec, send: Send, *, is_new: bool, note: str = "") -> None:
        super().__init__(title, FIELDS if is_new else FIELDS[1:], given, NEW, send, note)
