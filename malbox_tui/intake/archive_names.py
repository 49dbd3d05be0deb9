"""Names for what archives don't name."""

from __future__ import annotations

_SUFFIXES = (
    (b".tgz", b".tar"),
    (b".tbz2", b".tar"),
    (b".txz", b".tar"),
    (b".gz", b""),
    (b".bz2", b""),
    (b".xz", b""),
    (b".zst", b""),
)


def inner_name(outer: bytes) -> bytes:
    """What is in a compressed file of the name `outer`: that name, without folders and its suffix, or `content`."""
    outer = outer.rpartition(b"/")[2]
    lowered = outer.lower()
    for suffix, instead in _SUFFIXES:
        if lowered.endswith(suffix) and len(outer) > len(suffix):
            return outer[: -len(suffix)] + instead
    return b"content"
