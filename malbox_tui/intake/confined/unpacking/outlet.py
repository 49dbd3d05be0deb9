"""Where entries of an archive go: over the wire, each with its account, and within limits.

An entry is announced, then comes its content, then either its end or why it is refused. Nothing is sent of what a limit forbids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from .problems import LimitReached, as_problem
from .signatures import HEAD_BYTES, could_be_archive

PIECE_BYTES = 256 * 1024
MAX_NAME_BYTES = 64 * 1024
OVERHEAD_BYTES = 16 * 1024 * 1024
"""How much more than its members' content an archive may hold in headers and padding."""


class Sender(Protocol):
    """The end of a wire."""

    def send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        """Write one frame; waits while nobody reads."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What one archive may still give: entries of all kinds, bytes of all members and of each."""

    entries: int
    total_bytes: int
    member_bytes: int


class Outlet:
    """Of one archive."""

    def __init__(self, sender: Sender, limits: Limits) -> None:
        self._sender = sender
        self._limits = limits
        self._entries = 0
        self._bytes = 0
        self._read_bytes = 0

    @property
    def max_member_bytes(self) -> int:
        """How large a member may be."""
        return self._limits.member_bytes

    def skip(self) -> None:
        """An entry that has no content and is nobody's loss: a folder."""
        self._count_entry()

    def refuse(self, name: bytes, code: str, reason: str) -> None:
        """An entry that can't be a sample."""
        self._count_entry()
        self._announce(name)
        self._refused(code, reason)

    def member(self, name: bytes, chunks: Iterable[bytes], size_bytes: int | None = None) -> bool:
        """An entry with content, `size_bytes` of it as far as the archive says; whether it could all be had.

        What `chunks` raises on damaged bytes refuses this entry alone. Raises `LimitReached`, with the entry refused.
        """
        self._count_entry()
        self._announce(name)
        if size_bytes is not None and size_bytes > self._limits.member_bytes:
            self._refused(*self._too_large())
            return False
        head = bytearray()
        got = 0
        pieces = _pieces(chunks)
        while True:
            try:
                piece = next(pieces, None)
            except LimitReached as exc:
                self._refused(exc.code, exc.reason)
                raise
            except Exception as exc:  # noqa: BLE001 - libraries raise anything on hostile bytes, and one member must not cost the others
                self._refused(*as_problem(exc))
                return False
            if piece is None:
                break
            got += len(piece)
            if got > self._limits.member_bytes:
                self._refused(*self._too_large())
                return False
            try:
                self.spend(len(piece))
            except LimitReached as exc:
                self._refused(exc.code, exc.reason)
                raise
            if len(head) < HEAD_BYTES:
                head += piece[: HEAD_BYTES - len(head)]
            self._sender.send({"kind": "content"}, piece)
        if not got:
            self._refused("empty", "It is empty.")
            return True
        self._sender.send({"kind": "end", "could_be_archive": could_be_archive(bytes(head))})
        return True

    def spend(self, count: int) -> None:
        """So many bytes more came out of the archive. Raises `LimitReached`."""
        self._bytes += count
        if self._bytes > self._limits.total_bytes:
            raise self._too_much()

    def read_past(self, count: int) -> None:
        """So many bytes more were decompressed, to whatever end. Raises `LimitReached`."""
        self._read_bytes += count
        if self._read_bytes > self._limits.total_bytes + OVERHEAD_BYTES:
            raise self._too_much()

    def _too_much(self) -> LimitReached:
        return LimitReached(
            "total_size", f"More than {self._limits.total_bytes} bytes come out of it, which is more than is allowed."
        )

    def _announce(self, name: bytes) -> None:
        self._sender.send({"kind": "member"}, name[:MAX_NAME_BYTES])

    def _refused(self, code: str, reason: str) -> None:
        self._sender.send({"kind": "refused", "code": code, "reason": reason})

    def _count_entry(self) -> None:
        self._entries += 1
        if self._entries > self._limits.entries:
            raise LimitReached("members", f"There are more than {self._limits.entries} entries, which is more than is allowed.")

    def _too_large(self) -> tuple[str, str]:
        return "too_large", f"It has more than {self._limits.member_bytes} bytes, which is more than is allowed."


def refuse_special(outlet: Outlet, name: bytes, kind: str, target: bytes | None = None) -> None:
    """Account for an entry that is a link, a device or the like; `target` is what a link points to."""
    reason = _SPECIAL[kind]
    if target is not None:
        reason = f"It is a link to {target[:200].decode('utf-8', 'backslashreplace')}, which has no content."
    outlet.refuse(name, kind, reason)


_SPECIAL = {
    "link": "It is a link, which has no content.",
    "device": "It is a device, not a file.",
    "fifo": "It is a named pipe (FIFO), not a file.",
    "socket": "It is a socket, not a file.",
    "special": "It is not a regular file.",
}


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), PIECE_BYTES):
            yield bytes(chunk[start : start + PIECE_BYTES])
