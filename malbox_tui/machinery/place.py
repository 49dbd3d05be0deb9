"""What a libvirt URI says of where a hypervisor is, and how it is dialled."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from malbox_tui.machinery.refusals import Unreachable

LOCAL_TRANSPORTS = frozenset({"", "unix", "ext"})


def scheme(uri: str) -> tuple[str, str]:
    """The driver and the transport of a URI; no transport is an empty one."""
    driver, _, transport = urlsplit(uri).scheme.partition("+")
    return driver, transport


def is_test(uri: str) -> bool:
    """libvirt's own mock hypervisor, whose state is private to a connection."""
    return scheme(uri)[0] == "test"


def is_local(uri: str) -> bool:
    """The hypervisor runs on this host, and descriptors can be handed to it."""
    parts = urlsplit(uri)
    return not parts.netloc and scheme(uri)[1] in LOCAL_TRANSPORTS


def dialled(uri: str) -> str:
    """The URI as it is given to libvirt: ssh never asks for anything on the terminal."""
    parts = urlsplit(uri)
    if scheme(uri)[1] != "ssh" or "no_tty" in dict(parse_qsl(parts.query)):
        return uri
    return parts._replace(query=f"{parts.query}&no_tty=1" if parts.query else "no_tty=1").geturl()


def check_uri(uri: str) -> None:
    """Raises `Unreachable` for what can't be a hypervisor; libvirt would take an empty URI for whatever it finds here."""
    parts = urlsplit(uri)
    if not parts.scheme:
        raise Unreachable(f"{uri!r} is no libvirt URI. Write qemu:///system, qemu:///session or qemu+ssh://USER@HOST/system.")
    if is_test(uri) and parts.path != "/default" and not Path(parts.path).is_file():
        raise Unreachable(f"{uri} can't be reached: there is no file {parts.path}.")
