"""Pictures of a machine's screen while a sample runs: often while it shows what it did not show before, ever more seldom else."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from malbox_tui.engine import clock
from malbox_tui.engine.guest_shelf import Shelf, in_pieces
from malbox_tui.engine.guest_steps import Steps
from malbox_tui.engine.hypervisor import MachineHands
from malbox_tui.model.errors import GuestUnreachable, MachineUnable
from malbox_tui.model.machine import Picture
from malbox_tui.model.report import ResultRef

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 32.0
MOST_PICTURES = 60
MOST_PICTURE_BYTES = 16 * 1024 * 1024
PICTURE_S = 10.0
"""How long one may take."""
MOST_FAILURES = 3
"""After so many in a row no more are tried."""

_EXTENSIONS = {"image/png": "png", "image/x-portable-pixmap": "ppm", "image/jpeg": "jpg"}


class Screen:
    """The screen of one machine during one run; `on_picture` is told of each picture that was kept."""

    def __init__(self, hands: MachineHands, shelf: Shelf, steps: Steps, on_picture: Callable[[ResultRef], None]) -> None:
        self._hands = hands
        self._shelf = shelf
        self._steps = steps
        self._on_picture = on_picture
        self._seen: set[bytes] = set()
        self._count = 0
        self._failures = 0

    @property
    def count(self) -> int:
        """How many pictures were kept."""
        return self._count

    async def watch(self) -> None:
        """Take pictures until this is cancelled, or there is no use in more; the first after a while, when there may be something."""
        wait_s = FIRST_WAIT_S
        while self._is_worth_it():
            await clock.sleep(wait_s)
            wait_s = FIRST_WAIT_S if await self.look() else min(2 * wait_s, LONGEST_WAIT_S)

    async def look(self) -> bool:
        """Take one picture; whether it was one that the run had not seen yet, and was kept.

        A known one is no change: a cursor that blinks shows the same two pictures for ever.
        """
        if not self._is_worth_it():
            return False
        try:
            picture, problem = await self._steps.attempt("take a picture of its screen", self._picture(), PICTURE_S)
        except GuestUnreachable as error:
            picture, problem = None, f"could not take a picture of its screen: {error.problem}"
        if picture is None:
            self._failures += 1
            if self._failures >= MOST_FAILURES:
                self._steps.note(problem)
            return False
        self._failures = 0
        if len(picture.content) > MOST_PICTURE_BYTES:
            return False
        sum_of_it = hashlib.sha256()
        await in_pieces(picture.content, sum_of_it.update)
        digest = sum_of_it.digest()
        if digest in self._seen:
            return False
        self._seen.add(digest)
        return await self._steps.try_to("keep a picture of its screen", self._keep(picture), PICTURE_S) or False

    def _is_worth_it(self) -> bool:
        return self._count < MOST_PICTURES and self._failures < MOST_FAILURES

    async def _picture(self) -> Picture:
        try:
            return await self._hands.screenshot()
        except MachineUnable:
            self._failures = MOST_FAILURES
            raise

    async def _keep(self, picture: Picture) -> bool:
        self._count += 1
        name = f"screenshot-{self._count:03}.{_EXTENSIONS.get(picture.mime, 'bin')}"
        self._on_picture(await self._shelf.keep(name, picture.content, "file"))
        return True
