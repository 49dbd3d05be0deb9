"""Some files of a watched folder on their way in: each is offered once, and what came of its offers is kept apart by file.

Receipts come in the order of the offers, and a file may have several: one for each thing in an archive.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from malbox_tui.intake.confined.unpacking.signatures import HEAD_BYTES
from malbox_tui.intake.regular_file import RegularFile
from malbox_tui.intake.threaded import ThreadedSteps
from malbox_tui.intake.watching.looking import Found, OpenFolder, Signature, parent_of
from malbox_tui.model.errors import RefusedContent
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, Opened, Receipt, Refusal, Refused
from malbox_tui.model.survey import Survey
from malbox_tui.ports import Dropped, Intake


@dataclass(slots=True)
class Taking:
    """One file, and the receipts for what it was offered as. `over`: no more offers of it come."""

    found: Found
    origin: bytes
    offers: int = 0
    receipts: list[Receipt] = field(default_factory=list)
    over: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether there is a receipt for each of its offers."""
        return self.over and len(self.receipts) == self.offers

    @property
    def things(self) -> list[Receipt]:
        """Its receipts, but not that of an archive whose members have theirs."""
        return [receipt for receipt in self.receipts if not isinstance(receipt, Opened)]

    @property
    def refusals(self) -> list[Refused]:
        """Those of its receipts that are refusals."""
        return [receipt for receipt in self.receipts if isinstance(receipt, Refused)]

    @property
    def is_stored(self) -> bool:
        """Whether any of it is kept."""
        return len(self.refusals) < len(self.things)

    @property
    def is_stored_whole(self) -> bool:
        """Whether all of its bytes are kept: as it is, or as everything that is in it."""
        itself = any(not isinstance(receipt, Refused) and receipt.name.origin == self.origin for receipt in self.things)
        return itself or (self.is_stored and not self.refusals)


class SingleFiles:
    """The `Intake` of an open watched folder: it offers one file, if that is still what was found."""

    def __init__(self, root: OpenFolder, folder: bytes, max_sample_bytes: int) -> None:
        self._root = root
        self._folder = folder
        self._max_sample_bytes = max_sample_bytes
        self.wanted: Found | None = None
        """What is offered next, whatever paths are named."""

    def dropped(self, text: str) -> Dropped:
        """Nothing is dropped here."""
        return Dropped(())

    def completions(self, text: str, limit: int) -> list[str]:
        """Nothing is typed here."""
        return []

    async def survey(self, paths: Sequence[bytes], *, counts_only: bool = False) -> AsyncIterator[Survey]:
        """Nobody asks what would come in here."""
        yield Survey(done=True)

    def files(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """As `Intake.files`."""
        return self.offers(paths)

    async def offers(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """One offer, or none when the file has gone or changed."""
        assert self.wanted is not None
        offer = await asyncio.to_thread(self._offer, self.wanted)
        if offer is not None:
            yield offer

    def _offer(self, wanted: Found) -> Offer | None:
        name = SampleName(wanted.name, self._folder + b"/" + wanted.path)
        try:
            with parent_of(wanted.path, self._root.descriptor) as (folder, base_name):
                content = RegularFile.open(base_name, folder, self._max_sample_bytes)
        except RefusedContent as exc:
            return None if exc.code == "missing" else Offer(name, refusal=Refusal(exc.code, exc.reason))
        except OSError:
            return None  # A folder on the way has gone, or became a link.
        try:
            if Signature.of(content.found) != wanted.signature:
                content.close()
                return None
            return Offer(name, ThreadedSteps(content), head=content.head(HEAD_BYTES))
        except RefusedContent as exc:
            content.close()
            return Offer(name, refusal=Refusal(exc.code, exc.reason))


class Batch:
    """The files of one submission; `takings` are told apart by the order in which their offers went out."""

    def __init__(self, files: Sequence[Found], folder: bytes) -> None:
        self.takings = [Taking(found, folder + b"/" + found.path) for found in files]
        self._owners: deque[Taking] = deque()

    async def offers(self, source: SingleFiles, opened: Intake) -> AsyncIterator[Offer]:
        """All offers of all files; `opened` is an `Intake` over `source`."""
        for taking in self.takings:
            source.wanted = taking.found
            async for offer in opened.offers((taking.found.path,)):
                taking.offers += 1
                self._owners.append(taking)
                yield offer
            taking.over = True

    def note(self, receipt: Receipt) -> None:
        """The receipt for the first offer that has none yet."""
        self._owners.popleft().receipts.append(receipt)


Opener = Callable[[Intake], Intake]
"""Makes an `Intake` that opens the archives among another one's offers, or leaves them as they are."""
