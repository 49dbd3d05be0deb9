"""What is on a machine's screen. Runs in threads, with an open connection."""

from __future__ import annotations

from typing import Any

from malbox_tui.machinery.domains import find_domain
from malbox_tui.model.errors import MachineError
from malbox_tui.model.machine import MachineSpec, Picture

MAX_BYTES = 16 * 1024**2
PIECE_BYTES = 64 * 1024


def screenshot(connection: Any, machine: MachineSpec) -> Picture:
    """Raises `MachineError` for a picture of more than `MAX_BYTES`."""
    domain = find_domain(connection, machine)
    stream = connection.newStream(0)
    mime = domain.screenshot(stream, 0, 0)
    content = bytearray()
    while piece := stream.recv(PIECE_BYTES):
        content += piece
        if len(content) > MAX_BYTES:
            stream.abort()
            raise MachineError(machine.name, f"the picture of its screen has more than {MAX_BYTES // 1024**2} MiB")
    stream.finish()
    return Picture(mime, bytes(content))
