"""Giving way on a busy loop."""

from __future__ import annotations

from collections.abc import Generator


class NextStep:
    """Awaiting it lets the loop do everything else once: who has much to do that never waits doesn't hold it up."""

    def __await__(self) -> Generator[None, None, None]:
        yield
