"""What an unpacker makes of an archive: in this process, format by format, and as engines use it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from malbox_tui.confine.limits import LimitsOnly
from malbox_tui.confine.work import Walls
from malbox_tui.intake.confined.unpacking.orders import serve
from malbox_tui.intake.unpacker import ConfinedUnpacker
from malbox_tui.model.archive import COMMON_PASSWORDS, DEFAULT_LIMITS, ArchiveAccount, ArchiveEnd, UnpackLimits
from malbox_tui.ports import ArchiveMember


class _NoMoreOrders(Exception):
    pass


@dataclass
class Told:
    """What an unpacker said of one archive: contents by name (the last one of a name), reasons by name, and the end."""

    taken: list[tuple[bytes, bytes]] = field(default_factory=list)
    refused: list[tuple[bytes, str, str]] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)

    @property
    def codes(self) -> dict[bytes, str]:
        """Why members were refused, by name."""
        return {name: code for name, code, _reason in self.refused}


class _Recorder:
    """A wire that gives one order, and hears the answer."""

    def __init__(self, order: dict[str, Any], passwords: Sequence[str]) -> None:
        self._order: tuple[dict[str, Any], bytes] | None = (order, json.dumps(list(passwords)).encode())
        self._name = b""
        self._content = bytearray()
        self.told = Told()

    def receive(self) -> tuple[dict[str, Any], bytes]:
        order, self._order = self._order, None
        if order is None:
            raise _NoMoreOrders
        return order

    def send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        assert len(payload) <= 1024 * 1024
        match header["kind"]:
            case "member":
                self._name = payload
                self._content.clear()
            case "content":
                self._content += payload
            case "end":
                self.told.taken.append((self._name, bytes(self._content)))
            case "refused":
                self.told.refused.append((self._name, header["code"], header["reason"]))
            case _:
                self.told.end = header


def told_of(
    content: bytes,
    passwords: Sequence[str] = COMMON_PASSWORDS,
    entries: int = 10_000,
    total_bytes: int = 1 << 26,
    member_bytes: int = 1 << 25,
) -> Told:
    """What the code that runs confined says of an archive, without its process."""
    with tempfile.NamedTemporaryFile(prefix="archive-") as file:
        file.write(content)
        file.flush()
        order = {"path": file.name, "entries": entries, "total_bytes": total_bytes, "member_bytes": member_bytes}
        recorder = _Recorder(order, passwords)
        with suppress(_NoMoreOrders):
            serve(recorder)
        return recorder.told


@dataclass
class Unpacked:
    """What came of an archive."""

    members: list[tuple[tuple[bytes, ...], bytes]] = field(default_factory=list)
    refused: dict[tuple[bytes, ...], tuple[str, str]] = field(default_factory=dict)
    accounts: list[ArchiveAccount] = field(default_factory=list)

    @property
    def end(self) -> ArchiveEnd:
        """Of the outermost archive."""
        assert self.accounts[-1].path == ()
        return self.accounts[-1].end

    @property
    def why(self) -> str:
        """The code of why the outermost archive isn't opened to its end; empty: it is."""
        refusal = self.accounts[-1].refusal
        return "" if refusal is None else refusal.code


async def chunks_of(content: bytes) -> AsyncIterator[bytes]:
    """As an offer gives it."""
    for start in range(0, len(content), 1 << 20):
        yield content[start : start + (1 << 20)]


async def unpacked(
    content: bytes,
    folder: Path,
    *,
    name: bytes = b"archive",
    passwords: Sequence[str] = (),
    limits: UnpackLimits = DEFAULT_LIMITS,
    walls: Walls | None = None,
) -> Unpacked:
    """What an unpacker gives, every content read as it comes. Nothing is left in `folder`."""
    unpacker = ConfinedUnpacker(walls or LimitsOnly(), folder, limits)
    outcome = Unpacked()
    async for item in unpacker.unpack(chunks_of(content), name, passwords):
        if isinstance(item, ArchiveMember):
            await _note(item, outcome)
        else:
            outcome.accounts.append(item)
    assert list(folder.iterdir()) == []
    return outcome


async def _note(member: ArchiveMember, outcome: Unpacked) -> None:
    if member.content is None:
        assert member.refusal is not None
        outcome.refused[member.path] = (member.refusal.code, member.refusal.reason)
        return
    content = b"".join([chunk async for chunk in member.content])
    assert len(content) == member.size_bytes
    outcome.members.append((member.path, content))
