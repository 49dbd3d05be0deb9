"""Values that were asked of the engine and aren't confirmed yet: keys that count go on from them, not from what is still shown."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

V = TypeVar("V")


class Asked:
    """What was asked for last of each thing, until the answer to that is there. Earlier answers change nothing: a later wish waits."""

    def __init__(self) -> None:
        self._values: dict[Hashable, tuple[object, str]] = {}

    def latest(self, thing: Hashable, shown: V) -> V:
        """The value that a thing is to get; `shown`, what it has, when nothing is asked of it."""
        asked = self._values.get(thing)
        return shown if asked is None else asked[0]  # type: ignore[return-value]

    def ask(self, values: Iterable[tuple[Hashable, object]], key: str) -> None:
        """The command with this key asks for these values."""
        self._values.update({thing: (value, key) for thing, value in values})

    def answered(self, key: str) -> None:
        """The command with this key was confirmed and is shown, or was refused."""
        self._values = {thing: asked for thing, asked in self._values.items() if asked[1] != key}
