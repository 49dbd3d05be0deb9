"""Results of a batch, held in memory until the batch's last word: of one that breaks before nothing must reach the result store."""

from __future__ import annotations

from malbox_tui.plugins.replies import BadResult

MAX_HELD_BYTES = 16 * 1024 * 1024
"""All results of one batch. A plugin that finds more gets its samples one by one, and then its results stream to the disk."""


class HoldingRoom:
    """The room for the results of one batch."""

    def __init__(self) -> None:
        self._free_bytes = MAX_HELD_BYTES

    def take(self, size_bytes: int) -> None:
        """Raises `BadResult` when so much is not free."""
        if size_bytes > self._free_bytes:
            raise BadResult(f"the results of a batch are larger than {MAX_HELD_BYTES} bytes together")
        self._free_bytes -= size_bytes


class HeldResult:
    """One result, as far as it has arrived."""

    def __init__(self, room: HoldingRoom, format: str) -> None:
        self.format = format
        self.content = bytearray()
        self._room = room

    def write(self, chunk: bytes) -> None:
        """Append. Raises `BadResult` when the room is full."""
        self._room.take(len(chunk))
        self.content += chunk

    def abort(self) -> None:
        """Nothing is to be undone."""
