"""Who follows a served engine: the consoles with an open stream, each known by the name that it gave itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from malbox_tui.model.overview import ConsoleView, Overview


class Presence:
    """The consoles that are here now."""

    def __init__(self) -> None:
        self._here: dict[str, tuple[object, ConsoleView]] = {}

    @contextmanager
    def following(self, console: str, view: ConsoleView) -> Iterator[None]:
        """`console` is here. Coming back before its loss was noticed it takes its own place, and keeps since when it is here."""
        token = object()
        if console in self._here:
            view = msgspec.structs.replace(view, since=self._here[console][1].since)
        self._here[console] = (token, view)
        try:
            yield
        finally:
            if self._here.get(console, (None,))[0] is token:
                del self._here[console]

    def in_overview(self, overview: Overview) -> Overview:
        """The same, with those who follow."""
        return msgspec.structs.replace(overview, consoles=tuple(view for _, view in self._here.values()))
