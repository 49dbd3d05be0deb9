"""One watched folder: what in it has settled is handed in, and what becomes of it afterwards.

1. A file is taken when its size and time have stood still, and nobody has it open for writing.
2. Nothing is taken twice: a file that stays where it is, is remembered with its inode, size and time, for the next start too.
3. What could not be kept, or can't be served as things are, stays where it is and is tried again; it is no refusal of the file.
4. A file is moved or removed only after its receipts, and removed only when all of it is stored.
5. Nothing here blocks the event loop: the disk is worked on in threads, one at a time.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from malbox_tui.config.watching import Afterwards, WatchSettings
from malbox_tui.intake.regular_file import link_reason
from malbox_tui.intake.watching.batch import Batch, Opener, SingleFiles, Taking
from malbox_tui.intake.watching.looking import FOLDER_FLAGS, Found, OpenFolder, Scope, Signature, Tally, parent_of, things_in
from malbox_tui.intake.watching.putting_away import DONE, REFUSED, NotTheFile, move_away, remove
from malbox_tui.intake.watching.standing import Standing, Tell
from malbox_tui.intake.watching.taken import TakenFiles
from malbox_tui.intake.watching.writers import being_written
from malbox_tui.model.sample import SampleName, escape
from malbox_tui.model.submission import NOT_KEPT, Accepted, Duplicate, Offer, Receipt, Refusal, SubmissionOptions

BATCH_FILES = 256
"""How many files are handed in, and put away, together."""
MOST_AT_ONCE = 16 * BATCH_FILES
"""How many files are taken of one look; then it is looked for new ones."""
WRITTEN_AGAIN_S = 0.25
"""After so long it is looked whether a file is still open for writing."""
TRY_AGAIN_S = 30.0
"""After so long what could not be kept or served is tried again."""

_NOT_NOW = NOT_KEPT | frozenset({"nonsense", "unserviceable", "unpacker", "unreadable", "unreadable_folder"})
"""Codes of refusals that are no fault of the file."""
_MOVING = frozenset({"changed_while_read", "missing"})
"""Codes of refusals of a file that had not settled."""
_CLOCK_STEP_S = 0.001


class Submit(Protocol):
    """As `Client.submit`."""

    def __call__(
        self,
        offers: AsyncIterator[Offer],
        options: SubmissionOptions,
        on_receipt: Callable[[Receipt], None] | None = None,
    ) -> Awaitable[object]: ...


@dataclass(slots=True)
class _Waiting:
    """Since when a file stands still, and before when it isn't tried."""

    signature: Signature
    since: float
    not_before: float = 0.0


@dataclass(slots=True)
class _Look:
    """What one look found: files to take, things that are none, and in how many seconds the next thing is due. `left_out`: how many
    files have no name that is taken."""

    now: float
    ready: list[Found] = field(default_factory=list)
    others: list[Found] = field(default_factory=list)
    due_s: float | None = None
    tally: Tally = field(default_factory=Tally)
    left_out: int = 0

    def hurry(self, seconds: float) -> None:
        self.due_s = seconds if self.due_s is None else min(self.due_s, seconds)


class WatchedFolder:
    """Looks into one folder when it is told to."""

    def __init__(
        self,
        settings: WatchSettings,
        *,
        submit: Submit,
        opener: Opener,
        taken: TakenFiles,
        max_sample_bytes: int,
        tell: Tell,
        own_root: Path | None = None,
    ) -> None:
        """`own_root` is the engine's data folder, which is never looked into; `tell` is called on the event loop."""
        self.settings = settings
        self.standing = Standing(settings)
        self.identity: tuple[int, int] | None = None
        """Which folder it was at the last look; None: it was away."""
        self._submit = submit
        self._opener = opener
        self._taken = taken
        self.max_sample_bytes = max_sample_bytes
        self._tell = tell
        self._own_root = own_root
        self._path = os.fsencode(settings.path)
        self._waiting: dict[bytes, _Waiting] = {}

    async def look(self, now: float) -> float | None:
        """Take what has settled at `now`, of a clock that never goes back. Returns in how many seconds to look again though nothing was
        hinted at; None: whenever.

        Raises `EngineStopped`. Then, and cancelled, what has all its receipts is put away, and the rest stays.
        """
        look = _Look(now)
        try:
            root = await asyncio.to_thread(self._look, look)
            if look.others:
                await self._refuse(root, look.others)
            for start in range(0, min(len(look.ready), MOST_AT_ONCE), BATCH_FILES):
                await self._take(root, look, look.ready[start : start + BATCH_FILES])
        except OSError as exc:
            self.identity = None
            self._waiting.clear()
            self.standing.away(exc.strerror or str(exc))
            return None
        else:
            if len(look.ready) > MOST_AT_ONCE:
                look.hurry(0.0)
            self.standing.stays(look.tally.waiting + len(self._waiting), look.left_out)
            return look.due_s
        finally:
            self.standing.tell(self._tell)

    # --- looking -----------------------------------------------------------------------------------------------------------------

    def _look(self, look: _Look) -> OpenFolder:
        root = OpenFolder(os.open(self._path, FOLDER_FLAGS & ~os.O_NOFOLLOW))
        own = self._own_identity(root)
        passed_over = (DONE, REFUSED) if self.settings.afterwards is Afterwards.MOVE else ()
        selection = self.settings.selection()
        seen: set[bytes] = set()
        present: set[bytes] = set()
        for found in things_in(root.descriptor, Scope(selection.recursive, passed_over, own), look.tally):
            mark = found.signature.mark(found.path)
            if mark in self._taken:
                present.add(mark)
                continue
            if found.waits:
                look.tally.waiting += 1
                continue
            if not selection.takes(found.name):
                look.left_out += 1
                continue
            if not found.is_file:
                look.others.append(found)
                continue
            seen.add(found.path)
            if self._has_settled(found, look):
                look.ready.append(found)
        self._waiting = {path: waiting for path, waiting in self._waiting.items() if path in seen}
        if (present or seen) and not look.tally.left_out:
            # An empty folder may be the place where a disk isn't mounted now.
            self._remember(lambda: self._taken.keep_only(present))
        found_root = os.fstat(root.descriptor)
        self.identity = (found_root.st_dev, found_root.st_ino)
        self.standing.there()
        self._leave_out(look.tally.left_out)
        return root

    def _own_identity(self, root: OpenFolder) -> tuple[int, int] | None:
        if self._own_root is None or not self._own_root.is_dir():
            return None
        own = self._own_root.resolve()
        where = Path(os.path.realpath(f"/proc/self/fd/{root.descriptor}"))
        if where == own or own in where.parents:
            raise OSError(0, "it is in the data folder of malbox-tui itself, from which nothing is taken")
        found = own.stat()
        return found.st_dev, found.st_ino

    def _has_settled(self, found: Found, look: _Look) -> bool:
        known = self._waiting.get(found.path)
        if known is None or known.signature != found.signature:
            known = self._waiting[found.path] = _Waiting(found.signature, look.now)
        due_s = max(known.since + self.settings.settle_s, known.not_before) - look.now
        if due_s > _CLOCK_STEP_S:
            look.hurry(due_s)
            return False
        return True

    def _leave_out(self, left_out: Sequence[tuple[bytes, str]]) -> None:
        if not left_out:
            self.standing.well("left out")
            return
        path, why = left_out[0]
        more = f" So it is with {len(left_out) - 1} more." if len(left_out) > 1 else ""
        self.standing.trouble("left out", f"{escape(path)} is left out: {why}{more}")

    async def _refuse(self, root: OpenFolder, others: Collection[Found]) -> None:
        """Links, pipes and the like: each is told once, with a line in the account, and stays."""
        refusals = await asyncio.to_thread(lambda: [(found, _why_no_file(root, found)) for found in others])
        self.standing.count(refused=len(others))
        self.standing.refused([f"{escape(found.path)} was not taken: {why.reason}" for found, why in refusals])
        offers = (Offer(SampleName(found.name, self._path + b"/" + found.path), refusal=why) for found, why in refusals)
        await self._submit(_each(offers), self.settings.submission(), None)
        await asyncio.to_thread(self._remember, lambda: self._taken.add(found.signature.mark(found.path) for found in others))

    # --- taking ------------------------------------------------------------------------------------------------------------------

    async def _take(self, root: OpenFolder, look: _Look, files: Sequence[Found]) -> None:
        written = await asyncio.to_thread(being_written, root, files)
        for path in written:
            self._put_off(path, WRITTEN_AGAIN_S, look)
        batch = Batch([found for found in files if found.path not in written], self._path)
        if not batch.takings:
            return
        source = SingleFiles(root, self._path, self.max_sample_bytes)
        try:
            await self._submit(batch.offers(source, self._opener(source)), self.settings.submission(), batch.note)
        finally:
            # Also when the engine ends under it: what has its receipts would be taken twice otherwise.
            settled = [taking for taking in batch.takings if taking.is_settled]
            await asyncio.to_thread(self._conclude, root, settled, look)

    def _conclude(self, root: OpenFolder, takings: Sequence[Taking], look: _Look) -> None:
        marks: list[bytes] = []
        refused: list[Taking] = []
        held_up: str | None = None
        for taking in takings:
            found = taking.found
            codes = {refusal.refusal.code for refusal in taking.refusals}
            if not taking.receipts or codes & _MOVING:
                self._waiting.pop(found.path, None)
                look.hurry(self.settings.settle_s)
                continue
            self._count(taking)
            if codes & _NOT_NOW:
                self._put_off(found.path, TRY_AGAIN_S, look)
                why = next(refusal.refusal for refusal in taking.refusals if refusal.refusal.code in _NOT_NOW)
                held_up = held_up or f"{escape(found.path)} waits: {why.reason}"
                continue
            self._waiting.pop(found.path, None)
            if taking.refusals:
                refused.append(taking)
            if not self._put_away(root, taking):
                marks.append(found.signature.mark(found.path))
        if held_up is not None:
            self.standing.trouble("held up", held_up)
        elif takings:
            self.standing.well("held up")
        self.standing.refused([_why_refused(taking) for taking in refused])
        self._remember(lambda: self._taken.add(marks))

    def _put_away(self, root: OpenFolder, taking: Taking) -> bool:
        """Whether it is no longer where it was."""
        afterwards, found = self.settings.afterwards, taking.found
        if afterwards is Afterwards.LEAVE or (afterwards is Afterwards.DELETE and not taking.is_stored_whole):
            return False
        try:
            if afterwards is Afterwards.DELETE:
                remove(root.descriptor, found.path, found.signature)
            else:
                move_away(root.descriptor, found.path, found.signature, DONE if taking.is_stored else REFUSED)
        except (NotTheFile, FileNotFoundError):
            return True  # Whatever is there now is taken by itself.
        except OSError as exc:
            verb = "removed" if afterwards is Afterwards.DELETE else "moved"
            self.standing.trouble(
                "staying", f"Files that were taken can't be {verb}, and stay where they are: {exc.strerror or exc}."
            )
            return False
        self.standing.well("staying")
        return True

    def _put_off(self, path: bytes, seconds: float, look: _Look) -> None:
        look.hurry(seconds)
        if (waiting := self._waiting.get(path)) is not None:
            waiting.not_before = look.now + seconds

    def _count(self, taking: Taking) -> None:
        self.standing.count(
            added=sum(isinstance(receipt, Accepted) for receipt in taking.receipts),
            known=sum(isinstance(receipt, Duplicate) for receipt in taking.receipts),
            refused=sum(refusal.refusal.code not in _NOT_NOW for refusal in taking.refusals),
        )

    def _remember(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as exc:
            problem = f"What was taken can't be remembered for the next start: {exc.strerror or exc}."
            self.standing.trouble("memory", problem)
        else:
            self.standing.well("memory")


def _why_refused(taking: Taking) -> str:
    first, *others = taking.refusals
    more = f" {len(others)} more things in it were refused." if others else ""
    return f"{escape(first.name.name)} was refused: {first.refusal.reason}{more}"


async def _each(offers: Iterable[Offer]) -> AsyncIterator[Offer]:
    for offer in offers:
        yield offer


def _why_no_file(root: OpenFolder, found: Found) -> Refusal:
    if not stat.S_ISLNK(found.mode):
        return Refusal("no_file", "It is not a regular file.")
    try:
        with parent_of(found.path, root.descriptor) as (folder, name):
            return Refusal("link", link_reason(name, folder))
    except OSError:
        return Refusal("link", "It is a link; links are not followed.")
