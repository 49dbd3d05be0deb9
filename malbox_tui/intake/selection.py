"""Offers of some of what is found: the `Intake` over another one. What is left out is counted, and told once for each given path."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from malbox_tui.model.sample import SampleName
from malbox_tui.model.selection import Selection
from malbox_tui.model.submission import LEFT_OUT, Offer, Refusal
from malbox_tui.model.survey import Survey
from malbox_tui.ports import Dropped, Intake


class SelectiveIntake:
    """Passes on the offers of `inner` that `selection` takes, and every refusal. Folders are the business of whoever walks them."""

    def __init__(self, inner: Intake, selection: Selection) -> None:
        self._inner = inner
        self._selection = selection

    def dropped(self, text: str) -> Dropped:
        """As `Intake.dropped`."""
        return self._inner.dropped(text)

    def completions(self, text: str, limit: int) -> list[str]:
        """As `Intake.completions`."""
        return self._inner.completions(text, limit)

    def survey(self, paths: Sequence[bytes], *, counts_only: bool = False) -> AsyncIterator[Survey]:
        """As `Intake.survey`, of all that is found: what is left out shows when it is added."""
        return self._inner.survey(paths, counts_only=counts_only)

    def files(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """As `Intake.files`."""
        return self._inner.files(paths)

    async def offers(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """As `Intake.offers`, and after those of a path one for what was left out of it, with how many things that is."""
        chosen, taken = self._selection, 0
        for path in paths:
            by_name = by_limit = 0
            async for offer in self._inner.offers((path,)):
                if offer.content is None:
                    yield offer
                elif not chosen.takes(offer.name.name):
                    by_name += 1
                    await _let_go(offer)
                elif chosen.limit is not None and taken >= chosen.limit:
                    by_limit += 1
                    await _let_go(offer)
                else:
                    taken += 1
                    yield offer
            for refusal in self._left_out(by_name, by_limit):
                yield Offer(SampleName(path.rstrip(b"/").rpartition(b"/")[2] or path, path), refusal=refusal)

    def _left_out(self, by_name: int, by_limit: int) -> Iterator[Refusal]:
        if by_name:
            yield Refusal(LEFT_OUT, f"{_files(by_name)} left out by name: not {self._selection.which}.", by_name)
        if by_limit:
            yield Refusal(LEFT_OUT, f"{_files(by_limit)} left out: {self._selection.limit} were to be taken at most.", by_limit)


def _files(count: int) -> str:
    return "1 file was" if count == 1 else f"{count} files were"


async def _let_go(offer: Offer) -> None:
    """Close what nobody reads."""
    if (close := getattr(offer.content, "aclose", None)) is not None:
        await close()
