"""What the tests of clients share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.remote.client import RemoteClient, SocketWay
from malbox_tui.remote.contact import BackOff
from tests.remote.clients import Make, StandingClock


@pytest.fixture
def client() -> Iterator[Make]:
    """Makes clients of the engine at a path, which wait for nothing before they try again."""
    made: list[RemoteClient] = []

    def make(path: Path, *, stays: bool = True, wait_s: float = 0.0, **given: Any) -> RemoteClient:
        made.append(
            RemoteClient(
                SocketWay(str(path), "sbx-01"),
                StandingClock(),
                stays=stays,
                back_off=BackOff(wait_s, wait_s),
                time_of_day=lambda at: f"time {at:.0f}",
                **given,
            )
        )
        return made[-1]

    yield make
    for remote in made:
        remote.close()
