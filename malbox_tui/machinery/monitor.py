"""QEMU's monitor (https://www.qemu.org/docs/master/interop/qemu-qmp-ref.html) through libvirt. Runs in threads.

Only what libvirt keeps no account of is done here. `dump-guest-memory`, for one, ends libvirt's daemon (9.0) when the dump is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from malbox_tui.machinery.binding import qemu_module
from malbox_tui.machinery.refusals import cleaned


class MonitorRefused(Exception):
    """QEMU did not do it; the text is QEMU's, cleaned."""


class _Error(msgspec.Struct):
    desc: str = ""


class _Reply(msgspec.Struct):
    result: msgspec.Raw = msgspec.field(name="return", default=msgspec.Raw(b"{}"))
    error: _Error | None = None


class PassedFile(msgspec.Struct, rename="kebab"):
    """A descriptor as QEMU has it: its number there, and the set it is in."""

    fd: int
    fdset_id: int


def run_command(domain: Any, name: str, arguments: dict[str, Any], files: Sequence[int] = ()) -> bytes:
    """What QEMU answers, as JSON. Raises `MonitorRefused`, and libvirt's errors."""
    command = msgspec.json.encode({"execute": name, "arguments": arguments}).decode()
    if files:
        text, _ = qemu_module().qemuMonitorCommandWithFiles(domain, command, list(files), 0)
    else:
        text = qemu_module().qemuMonitorCommand(domain, command, 0)
    try:
        reply = msgspec.json.decode(text, type=_Reply)
    except msgspec.MsgspecError as error:
        raise MonitorRefused(f"QEMU's answer to {name} can't be read: {error}") from error
    if reply.error is not None:
        raise MonitorRefused(cleaned(reply.error.desc))
    return bytes(reply.result)


def pass_file(domain: Any, fd: int) -> PassedFile:
    """Give QEMU a copy of a descriptor. Raises `MonitorRefused`, and libvirt's errors."""
    return msgspec.json.decode(run_command(domain, "add-fd", {"opaque": "malbox-tui"}, [fd]), type=PassedFile)


def take_file_back(domain: Any, file: PassedFile) -> None:
    """Have QEMU close it; what it opened by it stays open. Raises `MonitorRefused`, and libvirt's errors."""
    run_command(domain, "remove-fd", {"fdset-id": file.fdset_id})
