"""A watched folder that is driven by hand: its clock is turned, and what it hands in goes to a desk that keeps it in memory."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from malbox_tui.config.watching import WatchSettings
from malbox_tui.intake.archive_intake import ArchiveIntake
from malbox_tui.intake.watching.taken import TakenFiles
from malbox_tui.intake.watching.watched_folder import WatchedFolder
from malbox_tui.model.archive import ArchiveChoice
from malbox_tui.model.errors import EngineStopped, RefusedContent
from malbox_tui.model.submission import Accepted, Account, Duplicate, Offer, Opened, Receipt, Refusal, Refused, SubmissionOptions
from malbox_tui.model.task import TaskState
from malbox_tui.ports import Intake, Unpacker

SETTLE_S = 2.0


class Desk:
    """Takes offers as an engine does.

    `refuses`: why everything is refused; `on_offer` is called before each content is read; `ends_after` so many receipts of one
    submission the engine ends.
    """

    def __init__(self) -> None:
        self.contents: dict[bytes, bytes] = {}
        """What was read of each thing, by where it was."""
        self.options: list[SubmissionOptions] = []
        self.refuses: Refusal | None = None
        self.on_offer: Callable[[], None] = lambda: None
        self.ends_after: int | None = None
        self.receipts: list[Receipt] = []
        self._known: dict[str, int] = {}

    async def submit(
        self, offers: AsyncIterator[Offer], options: SubmissionOptions, on_receipt: Callable[[Receipt], None] | None = None
    ) -> Account:
        self.options.append(options)
        receipts = []
        async for offer in offers:
            if len(receipts) == self.ends_after:
                raise EngineStopped
            receipts.append(await self._receipt(offer, options))
            if on_receipt is not None:
                on_receipt(receipts[-1])
        self.receipts += receipts
        return Account(tuple(receipts))

    async def _receipt(self, offer: Offer, options: SubmissionOptions) -> Receipt:
        if offer.opened is not None:
            return Opened(offer.name, offer.opened)
        if offer.content is None or self.refuses is not None:
            refusal = offer.refusal or self.refuses
            assert refusal is not None
            return Refused(offer.name, refusal)
        self.on_offer()
        try:
            content = b"".join([chunk async for chunk in offer.content])
        except RefusedContent as refused:
            return Refused(offer.name, Refusal(refused.code, refused.reason))
        self.contents[offer.name.origin] = content
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 in self._known and not options.again:
            return Duplicate(offer.name, sha256, len(content), self._known[sha256], TaskState.COMPLETED)
        task_id = self._known[sha256] = len(self._known) + 1
        return Accepted(offer.name, sha256, len(content), task_id)


@dataclass
class Scene:
    """One watched folder with its desk. `folder` is what is watched."""

    folder: Path
    data: Path
    desk: Desk = field(default_factory=Desk)
    told: list[tuple[str, bool]] = field(default_factory=list)
    unpacker: Unpacker | None = None
    now: float = 1000.0

    def watch(self, **settings: Any) -> WatchedFolder:
        """Begin to watch, as a start of the engine does."""
        chosen = WatchSettings(path=str(self.folder), settle_s=SETTLE_S, **settings)

        async def make() -> Unpacker:
            assert self.unpacker is not None, "an archive came"
            return self.unpacker

        def opener(inner: Intake) -> Intake:
            return ArchiveIntake(inner, make, ArchiveChoice(opens=self.unpacker is not None))

        self.watched = WatchedFolder(
            chosen,
            submit=self.desk.submit,
            opener=opener,
            taken=TakenFiles(self.data / "watched", chosen.path),
            max_sample_bytes=1 << 20,
            tell=lambda sentence, is_bad: self.told.append((sentence, is_bad)),
            own_root=self.data,
        )
        return self.watched

    async def after(self, seconds: float) -> float | None:
        """Turn the clock, and look."""
        self.now += seconds
        return await self.watched.look(self.now)

    async def settle(self) -> None:
        """Look at what is there, and once more when it has settled."""
        await self.after(1.0)
        await self.after(SETTLE_S)

    @property
    def taken(self) -> dict[bytes, bytes]:
        """What was read, by where it was in the folder."""
        return {path.removeprefix(bytes(self.folder) + b"/"): content for path, content in self.desk.contents.items()}

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """How many were added, known, refused, and wait."""
        view = self.watched.standing.view
        return view.added, view.known, view.refused, view.waiting


def scene(tmp_path: Path) -> Scene:
    """A folder that is there and empty, and a data folder."""
    for name in ("in", "data"):
        (tmp_path / name).mkdir()
    return Scene(tmp_path / "in", tmp_path / "data")


def names(folder: Path) -> list[str]:
    """What is in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())
