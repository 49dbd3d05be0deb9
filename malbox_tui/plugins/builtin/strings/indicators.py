"""Indicators in one string. Each pattern is tried only where its marks are, begins at few places and takes bounded steps from there:
no text takes longer than its length accounts for."""

import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path

from noise import is_noise_host
from wallets import wallets_in

Indicator = tuple[str, str]
"""A kind and a value."""

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"(?:{_LABEL}\.){{1,8}}[A-Za-z][A-Za-z0-9-]{{1,23}}"

_URL = re.compile(r"(?i)(?<![a-z0-9+])(?:https?|ftps?|wss?|tcp|udp|socks[45]|stratum\+(?:tcp|ssl))://[^\s\"'<>\\^`{|}]{3,2000}")
_URL_HOST = re.compile(r"://(?:[^/@?#]{0,200}@)?(\[[0-9A-Fa-f:.]{2,45}\]|[^/:?#\[\]]{1,253})")
_EMAIL = re.compile(rf"(?<![\w.%+-])[A-Za-z0-9][\w.%+-]{{0,63}}@{_HOST}(?![\w-])", re.ASCII)
_DOMAIN = re.compile(rf"(?<![\w.@%/\\$:-]){_HOST}(?![\w(@-]|\.\w)", re.ASCII)
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)", re.ASCII)
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{1,4}:[0-9A-Fa-f:]{4,34}(?![\w:])", re.ASCII)
_WINDOWS_PATH = re.compile(
    r"(?<![A-Za-z0-9\\])(?:[A-Za-z]:|%[A-Za-z()0-9]{3,30}%|\\\\[\w.$-]{1,63})(?:\\[^\\/:*?\"<>|\t]{1,128}){1,16}", re.ASCII
)
_UNIX_PATH = re.compile(
    r"(?<![\w.:/~-])(?:~|/(?:bin|boot|data|dev|etc|home|lib|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var|Users|Library|Applications))"
    r"(?:/[\w.@+~-]{1,128}){1,16}",
    re.ASCII,
)
_REGISTRY = re.compile(
    r"(?i)(?<![\w\\])(?:HKEY_[A-Z_]{5,24}|HK(?:LM|CU|CR|CC|U)|Software|SYSTEM\\(?:CurrentControlSet|ControlSet001))"
    r"(?:\\[\w .{}()*+,;=@#$&'-]{1,128}){1,16}",
    re.ASCII,
)
_VERSION = re.compile(r"(?i)version|\bv\d|culture=|assembly|[<>=]=")

_GENERIC, _COUNTRIES, _WORDS = (
    frozenset(line.split()) for line in Path(__file__).with_name("endings.txt").read_text(encoding="ascii").splitlines()
)
"""The last labels of domains: generic ones, those of countries, and those of both that mostly are endings of files or words of a
program; a domain by itself needs two labels before one of these."""


def indicators_in(text: str) -> Iterator[Indicator]:
    """Those of one string, as they stand there; one may come several times."""
    if "://" in text:
        yield from _urls(text)
    if "@" in text:
        yield from (("email", match[0]) for match in _EMAIL.finditer(text) if _is_domain(match[0].rpartition("@")[2], 1))
    if "." in text:
        yield from (("domain", match[0].lower()) for match in _DOMAIN.finditer(text) if _is_bare_domain(match[0]))
        yield from _ipv4(text)
    if text.count(":") > 2:
        yield from _ipv6(text)
    if "\\" in text:
        yield from (("registry", match[0].rstrip()) for match in _REGISTRY.finditer(text))
        yield from (("path", match[0].rstrip()) for match in _WINDOWS_PATH.finditer(text))
    if "/" in text:
        yield from (("path", match[0]) for match in _UNIX_PATH.finditer(text))
    if len(text) >= 26:
        yield from (("wallet", f"{address} ({coin})") for coin, address in wallets_in(text))


def _urls(text: str) -> Iterator[Indicator]:
    for match in _URL.finditer(text):
        url = match[0].rstrip(".,;:!?)]'\"")
        found = _URL_HOST.search(url)
        if found is None or is_noise_host(found[1]) or not any(char.isalnum() for char in found[1]):
            continue
        yield "url", url
        host = found[1].strip("[]")
        kind = _address_kind(host)
        if kind is not None:
            yield kind, host
        elif _is_domain(host, 1):
            yield "domain", host.lower()


def _ipv4(text: str) -> Iterator[Indicator]:
    if _VERSION.search(text):
        return
    for match in _IPV4.finditer(text):
        if _address_kind(match[0]) == "ipv4" and not match[0].endswith(".0.0"):
            yield "ipv4", match[0]


def _ipv6(text: str) -> Iterator[Indicator]:
    for match in _IPV6.finditer(text):
        groups = [group for group in match[0].split(":") if group]
        if len(groups) >= 3 and _address_kind(match[0]) == "ipv6":
            yield "ipv6", match[0].lower()


def _address_kind(text: str) -> str | None:
    """ "ipv4" or "ipv6" for an address that is somebody's; None for a word, and for what every host has."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if address.is_unspecified or address.is_loopback or address.is_multicast or str(address).startswith(("0.", "255.")):
        return None
    return f"ipv{address.version}"


def _is_bare_domain(name: str) -> bool:
    """Of a name that stands by itself more is asked: one that is written as those of programs are is none."""
    if name not in (name.lower(), name.upper()):
        return False
    ending = name.rpartition(".")[2].lower()
    return _is_domain(name, 2 if ending in _WORDS else 1)


def _is_domain(name: str, labels: int) -> bool:
    *before, ending = name.lower().rstrip(".").split(".")
    if len(before) < labels or ending not in _GENERIC | _COUNTRIES or is_noise_host(name):
        return False
    return any(char.isalpha() for char in before[-1]) and len("".join(before)) > 2
