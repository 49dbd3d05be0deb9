"""A machine whose clean state is a saved image and not a snapshot: for guests that libvirt takes no snapshot of, such as those booted
by UEFI (Windows 11). Runs in threads, with an open connection.

`snapshot = "save:/var/lib/libvirt/images/win11.save"` names the image, as `virsh save win11 /var/lib/libvirt/images/win11.save` writes
it of the running guest. From then on its disks must not change: each run has overlays of its own over them, which lie beside them,
are made anew by each revert, and are the only files that are ever removed. libvirt makes them (its storage pools), so it works on
other hosts too, and whoever libvirt and QEMU run as.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from shlex import quote
from typing import Any
from xml.etree import ElementTree

from malbox_tui.machinery.binding import libvirt_module
from malbox_tui.machinery.domain_xml import Disk, domain_name, parse_domain, with_sources
from malbox_tui.machinery.domains import virsh
from malbox_tui.machinery.line import is_alive
from malbox_tui.machinery.power import switch_off
from malbox_tui.machinery.refusals import Code, refusal_of
from malbox_tui.model.errors import MachineError, MachineMisconfigured, MachineMissing
from malbox_tui.model.machine import MachineSpec

PREFIX = "save:"
OVERLAY_SUFFIX = ".malbox-overlay.qcow2"


def is_saved_image(machine: MachineSpec) -> bool:
    """Its clean state is a saved image."""
    return machine.snapshot.startswith(PREFIX)


def image_xml(connection: Any, machine: MachineSpec) -> str:
    """The domain as it was saved. Raises `MachineMissing`; `MachineMisconfigured` when the image is another machine's."""
    libvirt = libvirt_module()
    image = _image(machine)
    try:
        xml: str = connection.saveImageGetXMLDesc(image, 0)
    except libvirt.libvirtError as error:
        if not is_alive(connection):
            raise
        raise MachineMissing(
            machine.name,
            f"its saved image {image} can't be read ({refusal_of(error).words}): start the guest, "
            f"then `{virsh(machine)} save {quote(machine.domain_name)} {quote(image)}`",
        ) from None
    if domain_name(xml) != machine.domain_name:
        raise MachineMisconfigured(
            machine.name,
            f"{image} is the saved image of {domain_name(xml)!r}, not of {machine.domain_name!r}: name the right one",
        )
    for disk in parse_domain(xml).disks:
        if not disk.source:
            raise MachineMisconfigured(
                machine.name, f"its disk {disk.target} is no file, so it can't have an overlay: make it one"
            )
    return xml


def revert_to_image(connection: Any, machine: MachineSpec) -> None:
    """Raises `MachineMissing`, `MachineMisconfigured`, `MachineError`; the domain is off then."""
    libvirt = libvirt_module()
    xml = image_xml(connection, machine)
    switch_off(connection, machine)
    try:
        overlays = {disk.target: _new_overlay(connection, disk, machine) for disk in parse_domain(xml).disks}
        connection.restoreFlags(_image(machine), with_sources(xml, overlays), libvirt.VIR_DOMAIN_SAVE_RUNNING)
    except libvirt.libvirtError as error:
        if not is_alive(connection):
            raise
        raise MachineError(machine.name, f"its saved image could not be restored: {refusal_of(error).words}") from None


def _image(machine: MachineSpec) -> str:
    image = machine.snapshot.removeprefix(PREFIX)
    if not image.startswith("/"):
        raise MachineMisconfigured(machine.name, f'{image!r} is no absolute path: write snapshot = "{PREFIX}/path/of/the/image"')
    return image


def _new_overlay(connection: Any, disk: Disk, machine: MachineSpec) -> str:
    """The path of an empty overlay over a disk."""
    libvirt = libvirt_module()
    base = PurePosixPath(disk.source)
    name = f"{base.name}.{machine.domain_name}{OVERLAY_SUFFIX}"
    with _pool_of(connection, base) as pool:
        pool.refresh(0)
        try:
            pool.storageVolLookupByName(name).delete(0)
        except libvirt.libvirtError as error:
            if error.get_error_code() != Code.NO_STORAGE_VOLUME:
                raise
        size_bytes = pool.storageVolLookupByName(base.name).info()[1]
        overlay = pool.createXML(_volume_xml(name, size_bytes, disk), 0)
        path: str = overlay.path()
        return path


@contextmanager
def _pool_of(connection: Any, base: PurePosixPath) -> Iterator[Any]:
    """The storage pool that a disk lies in; where there is none, one that is forgotten afterwards."""
    libvirt = libvirt_module()
    folder = str(base.parent)
    try:
        pool = connection.storagePoolLookupByTargetPath(folder)
    except libvirt.libvirtError as error:
        if error.get_error_code() != Code.NO_STORAGE_POOL:
            raise
    else:
        if not pool.isActive():
            pool.create(0)
        yield pool
        return
    pool = connection.storagePoolCreateXML(_pool_xml(folder), 0)
    try:
        yield pool
    finally:
        # What a pool of this kind holds stays where it is.
        pool.destroy()


def _pool_xml(folder: str) -> str:
    pool = ElementTree.Element("pool", type="dir")
    ElementTree.SubElement(pool, "name").text = f"malbox-tui-{folder.strip('/').replace('/', '-')}"
    ElementTree.SubElement(ElementTree.SubElement(pool, "target"), "path").text = folder
    return ElementTree.tostring(pool, encoding="unicode")


def _volume_xml(name: str, size_bytes: int, disk: Disk) -> str:
    volume = ElementTree.Element("volume")
    ElementTree.SubElement(volume, "name").text = name
    ElementTree.SubElement(volume, "capacity", unit="bytes").text = str(size_bytes)
    ElementTree.SubElement(ElementTree.SubElement(volume, "target"), "format", type="qcow2")
    beneath = ElementTree.SubElement(volume, "backingStore")
    ElementTree.SubElement(beneath, "path").text = disk.source
    ElementTree.SubElement(beneath, "format", type=disk.format)
    return ElementTree.tostring(volume, encoding="unicode")
