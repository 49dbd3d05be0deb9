"""Short pauses of Python's garbage collector, which stops every thread while it looks at what there is."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def short_pauses() -> Iterator[None]:
    """What is there by now is taken for good meanwhile: to look through all that was loaded takes 30 to 50 ms each time."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
