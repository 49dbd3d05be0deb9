"""Recordings of network packets as files (pcap, https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html), taken from streams."""

from __future__ import annotations

import os
import struct
import threading
import time

from malbox_tui.machinery.drain import write_all

SNAP_BYTES = 65536
"""QEMU's filter-dump records so much of a packet by itself."""
HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAP_BYTES, 1)
"""Little-endian, microseconds, Ethernet."""
RECORD = struct.Struct("<IIII")


class PcapFile:
    """A file that several streams are merged into, packet by packet as they come: whole at any time, and of at most `max_bytes`."""

    def __init__(self, fd: int, max_bytes: int) -> None:
        self._fd = fd
        # By the clock of the file system, which is this host's; from there on by one that nobody sets.
        self._begun_ns = os.fstat(fd).st_mtime_ns - time.monotonic_ns()
        self._left = max_bytes - len(HEADER)
        self._writing = threading.Lock()
        self._closed = False
        write_all(fd, HEADER)

    def add(self, records: bytes | bytearray) -> bool:
        """Append whole records; False when there is no room for them, or the file is closed. Raises `OSError`."""
        with self._writing:
            if self._closed or len(records) > self._left:
                return False
            self._left -= len(records)
            write_all(self._fd, records)
            return True

    def now_us(self) -> int:
        """This host's time, in microseconds since the epoch."""
        return (self._begun_ns + time.monotonic_ns()) // 1000

    def close(self) -> None:
        """Let go of the file; a second call does nothing."""
        with self._writing:
            if not self._closed:
                self._closed = True
                os.close(self._fd)


class PcapStream:
    """One stream of those that make a file; what comes in pieces is handed on in whole records.

    QEMU stamps packets by the guest's clock, which is that of its snapshot: the first packet is given the time when it came, the
    others are as long after it as they were.
    """

    def __init__(self, file: PcapFile) -> None:
        self._file = file
        self._late_us: int | None = None
        self._held = bytearray()
        self._begun = False

    def take(self, piece: bytes) -> bool:
        """False when nothing more is wanted: the file is full, or this is no recording. Raises `OSError`."""
        self._held += piece
        if not self._begun:
            if len(self._held) < len(HEADER):
                return True
            if self._held[:4] != HEADER[:4]:
                return False
            del self._held[: len(HEADER)]
            self._begun = True
        whole = self._whole_bytes()
        if whole is None:
            return False
        if not whole:
            return True
        records = self._held[:whole]
        del self._held[:whole]
        self._stamp(records)
        return self._file.add(records)

    def _stamp(self, records: bytearray) -> None:
        at = 0
        while at < len(records):
            seconds, micros, size, full_size = RECORD.unpack_from(records, at)
            stamped_us = seconds * 1_000_000 + micros
            if self._late_us is None:
                self._late_us = self._file.now_us() - stamped_us
            seconds, micros = divmod(max(0, stamped_us + self._late_us), 1_000_000)
            RECORD.pack_into(records, at, seconds & 0xFFFFFFFF, micros, size, full_size)
            at += RECORD.size + size

    def _whole_bytes(self) -> int | None:
        """How much of what is held is whole records; None: what comes can't be a record."""
        at = 0
        while len(self._held) - at >= RECORD.size:
            size = RECORD.unpack_from(self._held, at)[2]
            if size > SNAP_BYTES:
                return None
            if len(self._held) - at < RECORD.size + size:
                break
            at += RECORD.size + size
        return at
