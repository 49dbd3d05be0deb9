"""A first look at what lies under paths, by the same walk as that of an intake: what would be refused is refused with the same words.

1. Contents are read for their sums only while that is quick: small files, and not too many bytes in all.
2. Memory grows with the number of sums, which is bounded, and not with the number of files.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator

from malbox_tui.intake.confined.unpacking.signatures import could_be_archive
from malbox_tui.intake.found import Found
from malbox_tui.model.errors import RefusedContent
from malbox_tui.model.submission import Refusal, Refused
from malbox_tui.model.survey import NAMED_REFUSALS, Survey

EVERY_S = 0.1
"""So often it is told how far the look has come."""
SUMMED_FILE_BYTES = 64 * 1024**2
SUMMED_BYTES = 1024**3
SUMMED_FILES = 10_000
"""Larger files, and those after so many, are not read."""


class Surveying:
    """One look. `kind` says in a word what a beginning is of; with `sums` false nothing is opened, and things are counted alone."""

    def __init__(self, found: Iterator[Found], kind: Callable[[bytes], str], *, sums: bool = True) -> None:
        self._found = found
        self._kind = kind
        self._is_summing = sums
        self._files = self._size_bytes = self._archives = self._twins = self._refused = self._summed_bytes = 0
        self._kinds: Counter[str] = Counter()
        self._sums: dict[str, None] = {}
        self._refusals: list[Refused] = []

    def steps(self) -> Generator[Survey, None, None]:
        """How far it has come, again and again; the last one is done."""
        told = time.monotonic()
        for found in self._found:
            self._look_at(found)
            if time.monotonic() - told >= EVERY_S:
                yield self._survey(done=False)
                told = time.monotonic()
        yield self._survey(done=True)

    def _look_at(self, found: Found) -> None:
        if found.refusal is not None:
            self._refuse(found, found.refusal)
            return
        if found.content is None:
            self._files += 1
            return
        try:
            size_bytes = found.content.found.st_size
            if could_be_archive(found.head):
                self._archives += 1
            elif self._is_summing and self._may_read(size_bytes):
                self._sum(found, size_bytes)
        except RefusedContent as exc:
            self._refuse(found, Refusal(exc.code, exc.reason))
            return
        finally:
            found.content.close()
        self._files += 1
        self._size_bytes += size_bytes
        self._kinds[self._kind(found.head)] += 1

    def _may_read(self, size_bytes: int) -> bool:
        is_small = size_bytes <= SUMMED_FILE_BYTES and self._summed_bytes + size_bytes <= SUMMED_BYTES
        return is_small and len(self._sums) < SUMMED_FILES

    def _sum(self, found: Found, size_bytes: int) -> None:
        assert found.content is not None
        content = hashlib.sha256()
        while (chunk := next(found.content, None)) is not None:
            content.update(chunk)
        self._summed_bytes += size_bytes
        self._twins += content.hexdigest() in self._sums
        self._sums[content.hexdigest()] = None

    def _refuse(self, found: Found, refusal: Refusal) -> None:
        self._refused += 1
        if len(self._refusals) < NAMED_REFUSALS:
            self._refusals.append(Refused(found.name, refusal))

    def _survey(self, *, done: bool) -> Survey:
        return Survey(
            files=self._files,
            size_bytes=self._size_bytes,
            kinds=dict(self._kinds),
            archives=self._archives,
            sums=tuple(self._sums),
            twins=self._twins,
            refused=self._refused,
            refusals=tuple(self._refusals),
            done=done,
        )
