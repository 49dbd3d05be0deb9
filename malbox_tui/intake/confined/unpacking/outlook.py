"""Outlook messages ([MS-OXMSG]) with attachments, by olefile. Other compound files are samples."""

from __future__ import annotations

import re
from collections.abc import Iterator

import olefile

from .codecs import STEP_BYTES
from .mail import BODY_CODE, BODY_REASON
from .outlet import Outlet
from .problems import BrokenArchive, IsSample, as_problem
from .source import Source

_PROPERTIES = "__properties_version1.0"
_ATTACHMENT = re.compile(r"__attach_version1\.0_#[0-9A-Fa-f]{8}")
_CONTENT = "__substg1.0_37010102"
_EMBEDDED = "__substg1.0_3701000D"
_NAMES = ("3707", "3704", "3001")
"""Long file name, short file name, display name ([MS-OXPROPS])."""
_BODIES = ("__substg1.0_1000001F", "__substg1.0_1000001E", "__substg1.0_10130102", "__substg1.0_10090102")
_MAX_DEPTH = 16
_LONGEST_NAME = 4096

Place = tuple[str, ...]


def unpack(source: Source, outlet: Outlet) -> None:
    """Raises `IsSample`, `BrokenArchive`, `LimitReached`."""
    try:
        file = olefile.OleFileIO(str(source.path))
        streams = {tuple(path) for path in file.listdir(streams=True, storages=False)}
    except Exception as exc:
        raise BrokenArchive(*as_problem(exc)) from exc
    with file:
        if (_PROPERTIES,) not in streams:
            raise IsSample(
                "sample", "It is an OLE compound file (a document, an installer or the like), which is a sample itself."
            )
        attached = list(_attachments(streams))
        if not attached:
            raise IsSample("sample", "It is an Outlook message without attachments, which is a sample itself.")
        if any((body,) in streams for body in _BODIES):
            outlet.refuse(b"body", BODY_CODE, BODY_REASON)
        for place in attached:
            name = _name(file, streams, place)
            if (*place, _CONTENT) in streams:
                outlet.member(name, _content(file, (*place, _CONTENT)))
            else:
                outlet.refuse(name, "embedded", "It is an object that is only linked or embedded, which is not unpacked here.")


def _attachments(streams: set[Place]) -> Iterator[Place]:
    """Storages of attachments, also of messages that are attached to the message."""
    places: dict[Place, None] = {}
    for path in sorted(streams):
        for depth, part in enumerate(path[:-1][: 2 * _MAX_DEPTH]):
            if _ATTACHMENT.fullmatch(part) and all(
                (other == _EMBEDDED) if number % 2 else bool(_ATTACHMENT.fullmatch(other))
                for number, other in enumerate(path[:depth])
            ):
                places[path[: depth + 1]] = None
    for place in places:
        if not any(path[: len(place) + 1] == (*place, _EMBEDDED) for path in streams):
            yield place


def _name(file: olefile.OleFileIO, streams: set[Place], place: Place) -> bytes:
    for number in _NAMES:
        if (wide := (*place, f"__substg1.0_{number}001F")) in streams:
            raw = b"".join(_content(file, wide))[:_LONGEST_NAME]
            return (
                raw.decode("utf-16-le", "surrogatepass" if len(raw) % 2 == 0 else "replace")
                .rstrip("\0")
                .encode("utf-8", "surrogatepass")
            )
        if (narrow := (*place, f"__substg1.0_{number}001E")) in streams:
            return b"".join(_content(file, narrow))[:_LONGEST_NAME].rstrip(b"\0")
    return place[-1].encode("utf-8", "surrogatepass")


def _content(file: olefile.OleFileIO, path: Place) -> Iterator[bytes]:
    with file.openstream(list(path)) as stream:
        while chunk := stream.read(STEP_BYTES):
            yield chunk
