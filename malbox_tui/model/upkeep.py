"""What keeps a store from growing for ever: why content goes, in which forms a sample is given out, and what there is in figures."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Cause(StrEnum):
    """Why a sample, or the results of a task, were removed: somebody asked for it, or they were too old, or there were too many."""

    PURGE = "purge"
    AGE = "age"
    SIZE = "size"


class SampleForm(StrEnum):
    """How a sample is given out: in a zip with the password that all analysts know, as it came, or neutered as it is kept."""

    ZIP = "zip"
    RAW = "raw"
    CART = "cart"

    @property
    def ending(self) -> str:
        """What the name of a file of this form ends with."""
        return {SampleForm.ZIP: "zip", SampleForm.RAW: "bin", SampleForm.CART: "cart"}[self]


ZIP_PASSWORD = "infected"


class Freed(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed since an engine started: whole samples, and tasks whose results alone went, by cause; and their bytes."""

    samples: dict[Cause, int] = {}
    results: dict[Cause, int] = {}
    size_bytes: int = 0


class StoreFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What lies in a data folder, at `at`.

    `sample_bytes` are the contents as they came, `kept_bytes` what they take on disk. `results` are files, of `result_bytes`.
    `oldest_at`: when the oldest sample came, None: there is none. `removing` is what is still to be removed from the disk.
    """

    at: float
    samples: int
    sample_bytes: int
    kept_bytes: int
    results: int
    result_bytes: int
    oldest_at: float | None = None
    removing: int = 0
