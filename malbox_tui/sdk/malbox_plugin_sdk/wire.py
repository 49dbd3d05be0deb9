"""The wire between the engine and a confined process: frames over a stream socket, the same on both sides.

A frame is `header length (4 bytes) | payload length (4 bytes) | header | payload`, lengths big-endian. The header is a JSON object in
UTF-8 with a `kind`; the payload is bytes as they are. Neither side believes a length above the bounds: a frame that claims more ends
the conversation before a byte of it is read.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

PROTOCOL = 1
"""Both sides must speak the same; it grows when a frame changes its meaning."""

PREFIX = struct.Struct("!II")
MAX_HEADER_BYTES = 64 * 1024
MAX_PAYLOAD_BYTES = 1024 * 1024
CHUNK_BYTES = 256 * 1024
"""Results travel in payloads of at most this size."""

FD_VARIABLE = "MALBOX_WIRE_FD"
"""Environment variable that tells a confined process the file descriptor of its end."""

Header = dict[str, Any]


class WireError(Exception):
    """The other side broke the rules of the wire; nothing more can be read from it."""


class WireClosed(Exception):
    """The other side is gone."""


def pack(header: Header, payload: bytes | memoryview = b"") -> bytes:
    """A frame, ready to send. Raises `WireError` when it is above the bounds."""
    head = json.dumps(header, separators=(",", ":")).encode("utf-8", "backslashreplace")
    check_lengths(len(head), len(payload))
    return b"".join((PREFIX.pack(len(head), len(payload)), head, payload))


def check_lengths(header_bytes: int, payload_bytes: int) -> None:
    """Raises `WireError` when a frame of these lengths is not allowed."""
    if header_bytes > MAX_HEADER_BYTES:
        raise WireError(f"a frame header of {header_bytes} bytes (at most {MAX_HEADER_BYTES} are allowed)")
    if payload_bytes > MAX_PAYLOAD_BYTES:
        raise WireError(f"a frame payload of {payload_bytes} bytes (at most {MAX_PAYLOAD_BYTES} are allowed)")


def parse_header(raw: bytes) -> Header:
    """The header of a frame. Raises `WireError` when it is not a JSON object with a `kind`."""
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise WireError("a frame header that is not JSON") from exc
    if not isinstance(header, dict) or not isinstance(header.get("kind"), str):
        raise WireError("a frame header without a kind")
    return header


class Wire:
    """The confined process's end: blocking reads by one thread, whole frames written by any."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def send(self, header: Header, payload: bytes | memoryview = b"") -> None:
        """Write one frame. Raises `WireClosed` when nobody reads any more, `WireError` when it is above the bounds."""
        frame = pack(header, payload)
        try:
            with self._sending:
                self._connection.sendall(frame)
        except OSError as exc:
            raise WireClosed from exc

    def receive(self) -> tuple[Header, bytes]:
        """Wait for one frame. Raises `WireClosed` at the end of the stream, `WireError` when the other side breaks the rules."""
        return read_frame(self._read)

    def _read(self, count: int) -> bytes:
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            try:
                got = self._connection.recv_into(view)
            except OSError as exc:
                raise WireClosed from exc
            if not got:
                raise WireClosed
            view = view[got:]
        return bytes(buffer)


def read_frame(read: Callable[[int], bytes]) -> tuple[Header, bytes]:
    """One frame from `read`, which returns exactly as many bytes as it is asked for. Raises what `read` does, and `WireError`."""
    header_bytes, payload_bytes = PREFIX.unpack(read(PREFIX.size))
    check_lengths(header_bytes, payload_bytes)
    return parse_header(read(header_bytes)), read(payload_bytes)
