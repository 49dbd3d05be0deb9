"""What makes two runs of a seed the same: ids that are the seed's, and nothing that happens at a moment of its own."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random


@contextmanager
def seeded_ids(seed: int) -> Iterator[None]:
    """Ids that are made by chance are made by the seed's."""
    chance = Random(seed)
    real = os.urandom
    os.urandom = chance.randbytes  # type: ignore[assignment]
    try:
        yield
    finally:
        os.urandom = real  # type: ignore[assignment]


@contextmanager
def quiet() -> Iterator[None]:
    """No log, and no garbage collection at a moment that isn't the seed's."""
    logging.disable(logging.CRITICAL)
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
        logging.disable(logging.NOTSET)
