"""Offers of what is in archives, in the place of the archives: the `Intake` over another one.

A member's origin is that of its archive, `!/` and its path there, for each archive around it, and its name has the sum of the
outermost one. After the members comes the archive itself, as one that was opened. One that can't be opened is offered itself, and
beside that it is said why it wasn't opened; one that needs a password, or is empty, is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from malbox_tui.intake.confined.unpacking.signatures import could_be_archive
from malbox_tui.model.archive import ArchiveAccount, ArchiveChoice, ArchiveEnd
from malbox_tui.model.errors import ConfinementUnavailable, RefusedContent
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, OpenedArchive, Refusal
from malbox_tui.model.survey import Survey
from malbox_tui.ports import ArchiveMember, Dropped, Intake, Unpacker

INSIDE = b"!/"
"""Between an archive and what is in it, as in the addresses of Java archives."""


class ArchiveIntake:
    """Opens the archives among the offers of `inner`, if `choice` says so; the unpacker is made when the first one comes."""

    def __init__(self, inner: Intake, make_unpacker: Callable[[], Awaitable[Unpacker]], choice: ArchiveChoice) -> None:
        self._inner = inner
        self._make_unpacker = make_unpacker
        self._choice = choice
        self._unpacker: Unpacker | None = None

    def dropped(self, text: str) -> Dropped:
        """As `Intake.dropped`."""
        return self._inner.dropped(text)

    def completions(self, text: str, limit: int) -> list[str]:
        """As `Intake.completions`."""
        return self._inner.completions(text, limit)

    async def survey(self, paths: Sequence[bytes], *, counts_only: bool = False) -> AsyncIterator[Survey]:
        """As `Intake.survey`. Whether an archive can be opened shows when it comes in."""
        async for survey in self._inner.survey(paths, counts_only=counts_only):
            yield replace(survey, opens_archives=self._choice.opens)

    def files(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """As `Intake.files`."""
        return self._inner.files(paths)

    async def offers(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """As `Intake.offers`, and one for each thing in an archive."""
        async for offer in self._inner.offers(paths):
            if offer.content is None or not self._choice.opens or not could_be_archive(offer.head):
                yield offer
                continue
            async with aclosing(self._opened(offer.name, offer.content)) as inside:
                async for found in inside:
                    yield found

    async def _opened(self, name: SampleName, content: AsyncIterator[bytes]) -> AsyncGenerator[Offer, None]:
        try:
            if self._unpacker is None:
                self._unpacker = await self._make_unpacker()
            summed = _Summed(content)
            async with aclosing(self._unpacker.unpack(summed, name.name, self._choice.passwords)) as items:
                async for item in items:
                    named = _named(name, item.path, summed.sha256)
                    if isinstance(item, ArchiveMember):
                        yield Offer(named, item.content, item.refusal)
                    elif (said := _said_of(item)) is not None:
                        yield Offer(named, refusal=said)
                    elif item.end is ArchiveEnd.OPENED:
                        yield Offer(named, opened=summed.opened(item))
        except RefusedContent as exc:
            yield Offer(name, refusal=Refusal(exc.code, exc.reason))
        except ConfinementUnavailable as exc:
            yield Offer(name, refusal=Refusal("unpacker", f"Archives can't be opened here: {exc}"))


class _Summed:
    """The content of an archive on its way to the unpacker, which reads all of it before it says anything."""

    def __init__(self, content: AsyncIterator[bytes]) -> None:
        self._content = content
        self._sum = hashlib.sha256()
        self._size_bytes = 0

    @property
    def sha256(self) -> str:
        return self._sum.hexdigest()

    def opened(self, account: ArchiveAccount) -> OpenedArchive:
        words = f"{account.title or 'archive'}: {account.taken} taken" + (
            f", {account.refused} refused" if account.refused else ""
        )
        if account.path:
            return OpenedArchive(sha256="", size_bytes=0, words=words)
        return OpenedArchive(sha256=self.sha256, size_bytes=self._size_bytes, words=words)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._content)
        self._sum.update(chunk)
        self._size_bytes += len(chunk)
        return chunk


def _named(archive: SampleName, path: tuple[bytes, ...], sha256: str) -> SampleName:
    if not path:
        return archive
    last = path[-1].rstrip(b"/")
    name = last.rpartition(b"/")[2] or path[-1]
    return SampleName(name, INSIDE.join((archive.origin or archive.name, *path)), sha256)


def _said_of(account: ArchiveAccount) -> Refusal | None:
    """What has to be said of an archive beside its members, and beside itself where it is offered as one file."""
    why = account.refusal
    if why is None or account.end is ArchiveEnd.SAMPLE:
        return None
    if account.end in (ArchiveEnd.WHOLE, ArchiveEnd.CUT):
        opened = "to its end" if account.end is ArchiveEnd.CUT else "as an archive"
        return Refusal(why.code, f"It was not opened {opened}, and is taken as one file: {why.reason}")
    return why
