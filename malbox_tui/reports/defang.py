"""Indicators that nobody opens by accident: `hxxp://a[.]example/`. For people; programs get them as they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

_SCHEME = re.compile(r"(?i)\A(h)tt(ps?)\b|\A(f)t(ps?)\b")


def defanged(kind: str, value: str) -> str:
    """`value`, an indicator of this kind, so that no program takes it for a link. Other kinds stay as they are."""
    change = _CHANGES.get(kind)
    return value if change is None else change(value)


def _url(value: str) -> str:
    scheme, separator, rest = value.partition("://")
    place = re.search(r"[/?#]", rest)
    host, path = (rest, "") if place is None else (rest[: place.start()], rest[place.start() :])
    safe = _SCHEME.sub(lambda m: f"{m[1]}xx{m[2]}" if m[1] else f"{m[3]}x{m[4]}", scheme)
    return f"{safe}{separator}{_dots(host)}{path}" if separator else _dots(value)


def _dots(value: str) -> str:
    return value.replace(".", "[.]")


def _email(value: str) -> str:
    return _dots(value).replace("@", "[@]")


def _colons(value: str) -> str:
    return _dots(value).replace(":", "[:]")


_CHANGES: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"url": _url, "uri": _url, "domain": _dots, "host": _dots, "ipv4": _dots, "ip": _colons, "ipv6": _colons, "email": _email}
)
