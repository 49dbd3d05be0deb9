"""What the table of one machine must not say although each of its values is of the right kind."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from malbox_tui.config.faults import Fault
from malbox_tui.config.machines import CHANNELS, MachineSettings, Provider
from malbox_tui.model.sample import visible

_ABSOLUTE = {True: re.compile(r"[A-Za-z]:[\\/]"), False: re.compile(r"/")}
"""How an absolute path begins, by whether the guest is a Windows."""

_IMAGE = "save:"
"""Before the path of a saved image, which a machine may be reverted to in place of a snapshot."""


def machine_faults(key: str, machine: MachineSettings) -> Iterator[Fault]:
    """What is wrong with the machine whose table is at `key`."""
    if machine.provider is Provider.LIBVIRT:
        yield from _lacking(key, machine)
    else:
        yield from _useless(key, machine)
    channels = CHANNELS[machine.provider]
    if machine.channel is not None and machine.channel not in channels:
        known = " or ".join(f'"{channel}"' for channel in channels)
        problem = f'a {machine.provider} machine is reached by {known}, not by "{machine.channel}". Leave the key out.'
        yield Fault(f"{key}.channel", problem)
    if machine.address is not None and not _is_address(machine.address):
        problem = f'"{visible(machine.address)}" is no IP address. Write one such as "192.168.122.10", or leave the key out.'
        yield Fault(f"{key}.address", problem)
    yield from _relative_paths(key, machine)


def _lacking(key: str, machine: MachineSettings) -> Iterator[Fault]:
    if machine.uri is None:
        problem = 'missing. A libvirt machine needs it: "qemu:///system" is the libvirt of this host.'
        yield Fault(f"{key}.uri", problem)
    if machine.snapshot is None:
        asked = f"`malbox-tui machines discover {machine.uri or 'URI'}`"
        yield Fault(f"{key}.snapshot", f"missing. A libvirt machine is reverted to it; {asked} lists those there are.")
    elif machine.snapshot.startswith(_IMAGE) and not machine.snapshot.startswith(f"{_IMAGE}/"):
        yield Fault(f"{key}.snapshot", f'"{_IMAGE}" is followed by the absolute path of the image on the host of its libvirt.')


def _useless(key: str, machine: MachineSettings) -> Iterator[Fault]:
    for name in ("uri", "domain", "snapshot"):
        if getattr(machine, name) is not None:
            problem = f'a {machine.provider} machine has no use for it. Leave the key out, or set provider = "libvirt".'
            yield Fault(f"{key}.{name}", problem)


def _relative_paths(key: str, machine: MachineSettings) -> Iterator[Fault]:
    is_windows = machine.platform == "windows"
    paths = [("folder", machine.folder), ("disk_folder", machine.disk_folder)]
    paths += [(f"watch[{index}]", path) for index, path in enumerate(machine.watch)]
    for name, path in paths:
        if path is not None and not _ABSOLUTE[is_windows].match(path):
            example = r"C:\analysis" if is_windows else "/analysis"
            problem = f'"{visible(path)}" is no absolute path of a {machine.platform} guest. Write one such as {example}.'
            yield Fault(f"{key}.{name}", problem)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
