"""What a person says of a machine on the command line, as options or as KEY=VALUE, and the machine that comes of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from malbox_tui.cli.options import whole_number
from malbox_tui.config.machine_tables import spec_of, table_faults, table_of
from malbox_tui.config.machines import MachineSettings
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.machine import MachineSpec

Word = Annotated[str | None, Parameter(show_default=False)]
Words = Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)]
Bound = Annotated[int | None, Parameter(metavar="N", converter=whole_number, validator=Number(gte=1), show_default=False)]
BoundOrNone = Annotated[int | None, Parameter(metavar="N", converter=whole_number, validator=Number(gte=0), show_default=False)]

LISTS = frozenset({"tags", "watch"})
NUMBERS = frozenset({"max_failures", "disk_kib_s", "network_kbps"})


@Parameter(name="*", group="The machine")
@dataclass(frozen=True, slots=True)
class MachineWords:
    """The keys of `[[machines]]`, as options."""

    provider: Word = None
    """What runs it: `libvirt` or `simulated`."""
    uri: Word = None
    """Where its libvirt is, such as `qemu:///system`."""
    domain: Word = None
    """What libvirt calls it; without it: as NAME."""
    snapshot: Word = None
    """The clean state that it is reverted to."""
    platform: Word = None
    """The system in it, such as `windows` or `linux`."""
    arch: Word = None
    """Its architecture: `x64`, `x86` or `arm64`."""
    tag: Words = ()
    """Something that tasks may ask for; may be given more than once."""
    channel: Word = None
    """How its guest is talked to."""
    address: Word = None
    """The IP address of its guest."""
    folder: Word = None
    """Where samples are put in its guest."""
    disk_folder: Word = None
    """A folder on a disk of its guest that the snapshot takes back."""
    watch: Words = ()
    """A folder of its guest in which dropped and changed files are looked for; may be given more than once."""
    disk_kib_s: Bound = None
    """How many KiB each of its disks may read and write in a second."""
    network_kbps: BoundOrNone = None
    """How many kilobits each of its network cards may send, and receive, in a second; 0: none."""
    max_failures: Bound = None
    """After so many failed reverts in a row it is taken out of service."""

    def table(self) -> dict[str, Any]:
        """What was said, by the keys of the configuration."""
        said = {name: getattr(self, name) for name in self.__slots__ if name != "tag"} | {"tags": self.tag}
        return {name: list(value) if name in LISTS else value for name, value in said.items() if value not in (None, ())}


def added(name: str, words: MachineWords) -> MachineSpec:
    """The machine that is to be added. Raises `MalboxError` when no machine can be so."""
    return _checked({"name": name, "provider": "libvirt", **words.table()})


def changed(machine: MachineSpec, pairs: Iterable[str], words: MachineWords) -> MachineSpec:
    """The machine as it is to be; `pairs` are KEY=VALUE, of which an empty value takes the key away, and a list has commas.

    Raises `MalboxError` when no machine can be so, or nothing is said.
    """
    said = words.table()
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key = key.replace("-", "_")
        if not equals:
            raise MalboxError(f"{pair!r} is no KEY=VALUE, such as tags=office,word. The keys are {', '.join(_KEYS)}.")
        said[key] = _read(key, value)
    if "name" in said:
        raise MalboxError("A machine keeps its name. Remove it, and add it under another one.")
    if not said:
        raise MalboxError(f"Say what is to be changed: KEY=VALUE or an option. The keys are {', '.join(_KEYS)}.")
    return _checked({name: value for name, value in {**table_of(machine), **said}.items() if value is not None})


def _read(key: str, value: str) -> Any:
    """None: the key is taken away."""
    if not value:
        return None
    if key in LISTS:
        return [word.strip() for word in value.split(",") if word.strip()]
    if key in NUMBERS:
        try:
            return int(value)
        except ValueError:
            raise MalboxError(f"{key}: {value!r} is not a whole number.") from None
    return value


def _checked(table: dict[str, Any]) -> MachineSpec:
    for fault in table_faults(table):
        raise MalboxError(f"{fault.key}: {fault.problem}")
    return spec_of(table)


_KEYS = tuple(field.encode_name for field in msgspec.structs.fields(MachineSettings) if field.name != "name")
