"""What all tables of a configuration are made of: their base, and the kinds of values that their keys take."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec


class SettingsTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every table; its fields are the keys."""


def only(value: Any, why: str) -> msgspec.Meta:
    """Says of a key that it takes nothing but `value`: it is there for the sake of files written for Malbox."""
    return msgspec.Meta(extra={"only": value, "why": why})


MAX_MB = 1024 * 1024
"""The highest number of MiB that a key takes: a tebibyte."""

Count = Annotated[int, msgspec.Meta(ge=0, le=1024)]
Positive = Annotated[int, msgspec.Meta(gt=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=7 * 86400)]
Milliseconds = Annotated[int, msgspec.Meta(ge=1, le=86_400_000)]

PlainName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z",
        description="a name of letters, digits, - _ . that begins with a letter or digit (at most 64)",
    ),
]
LowerCaseName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"\A[a-z0-9][a-z0-9._-]{0,63}\Z",
        description="a lower-case name of letters, digits, - _ . that begins with a letter or digit (at most 64)",
    ),
]
Text = Annotated[
    str,
    msgspec.Meta(
        pattern=r"\A(?=[^\s])[^\x00-\x1f\x7f-\x9f]{1,1024}\Z",
        description="a string on one line that doesn't begin with a space (at most 1024 characters)",
    ),
]
"""What other systems call their things, as they spell it."""
