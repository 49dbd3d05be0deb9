"""Each kind of store, new and open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.ports import Store
from tests.contracts.store.places import Place
from tests.store.builders import Told


@pytest.fixture(params=["memory", "sqlite", "faulty"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
async def store(place: Place, told: Told) -> AsyncIterator[Store]:
    store = place.store()
    await store.open(told)
    yield store
    await store.close()
