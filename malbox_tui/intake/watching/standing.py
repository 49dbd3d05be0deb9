"""How it is with one watched folder, for whoever looks, and what there is to say of it. Changed in one thread at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

import msgspec

from malbox_tui.config.watching import WatchSettings
from malbox_tui.model.sample import visible
from malbox_tui.model.watching import WatchState, WatchView

log = logging.getLogger(__name__)

NAMED = 8
"""So many refused things are told each, those that come together; of the others it is told how many there are."""

Tell = Callable[[str, bool], None]
"""Is given a sentence for the log of events, and whether it is of something bad."""


class Standing:
    """The state, the counts and the troubles of a watched folder. `view` may be read in any thread."""

    def __init__(self, settings: WatchSettings) -> None:
        self.view = WatchView(
            path=settings.path,
            state=WatchState.STARTING,
            afterwards=settings.afterwards.value,
            recursive=settings.recursive,
        )
        self._problems: dict[str, str] = {}
        self._said: list[tuple[str, bool]] = []

    def count(self, *, added: int = 0, known: int = 0, refused: int = 0) -> None:
        """So many more."""
        view = self.view
        self.view = msgspec.structs.replace(
            view, added=view.added + added, known=view.known + known, refused=view.refused + refused
        )

    def stays(self, waiting: int, left_out: int) -> None:
        """So many things in it wait, and so many are left out by name."""
        self.view = msgspec.structs.replace(self.view, waiting=waiting, left_out=left_out)

    def refused(self, sentences: Sequence[str]) -> None:
        """Things were refused: why, a sentence each."""
        self._said += [(sentence, True) for sentence in sentences[:NAMED]]
        if len(sentences) > NAMED:
            self._said.append((f"{len(sentences) - NAMED} more were refused.", True))

    def trouble(self, kind: str, problem: str) -> None:
        """Something is wrong until `well` is called for its kind; it is told once."""
        if kind not in self._problems:
            log.warning("watched folder %s: %s", visible(self.view.path), problem)
            self._said.append((problem, True))
        self._problems[kind] = problem
        self._show()

    def well(self, kind: str) -> None:
        """What was wrong is so no more."""
        if self._problems.pop(kind, None) is not None:
            self._show()

    def away(self, why: str) -> None:
        """It can't be looked into."""
        if self.view.state is not WatchState.AWAY:
            log.warning("watched folder %s is away: %s", visible(self.view.path), why)
            self._said.append((f"It can't be looked into: {why}.", True))
        self.view = msgspec.structs.replace(
            self.view, state=WatchState.AWAY, problem=f"It can't be looked into: {why}.", waiting=0, left_out=0
        )

    def there(self) -> None:
        """It was looked into."""
        if self.view.state is WatchState.AWAY:
            log.info("watched folder %s is back", visible(self.view.path))
            self._said.append(("It is there again.", False))
        self.view = msgspec.structs.replace(self.view, state=WatchState.WATCHING)
        self._show()

    def tell(self, tell: Tell) -> None:
        """Say what there is to say since this was called last."""
        said, self._said = self._said, []
        for sentence, is_bad in said:
            tell(sentence, is_bad)

    def _show(self) -> None:
        if self.view.state is not WatchState.AWAY:
            self.view = msgspec.structs.replace(self.view, problem=" ".join(self._problems.values()))


def troubles_of(views: Iterable[WatchView]) -> tuple[str, ...]:
    """What an operator has to know of these folders, a sentence each."""
    return tuple(f"Watched folder {visible(view.path)}: {view.problem}" for view in views if view.problem)
