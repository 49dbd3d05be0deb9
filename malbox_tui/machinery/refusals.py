"""What libvirt answers instead of what it was asked for, as plain values: libvirt's own error objects keep connections alive."""

from __future__ import annotations

from enum import IntEnum
from shlex import quote
from typing import Any

from malbox_tui.model.errors import MalboxError

MAX_WORDS = 400
"""So many characters of a foreign message are shown; guests and other hosts have a say in it."""


class Code(IntEnum):
    """libvirt's error numbers (virterror.h) that are told apart here."""

    INTERNAL_ERROR = 1
    NO_SUPPORT = 3
    NO_CONNECT = 5
    INVALID_CONNECTION = 6
    INVALID_ARGUMENT = 8
    OPERATION_FAILED = 9
    SYSTEM_ERROR = 38
    RPC = 39
    NO_DOMAIN = 42
    AUTH_FAILED = 45
    NO_STORAGE_POOL = 49
    NO_STORAGE_VOLUME = 50
    OPERATION_INVALID = 55
    CONFIG_UNSUPPORTED = 67
    NO_SNAPSHOT = 72
    ARGUMENT_UNSUPPORTED = 74
    REVERT_RISKY = 77
    OPERATION_UNSUPPORTED = 84
    AGENT_UNRESPONSIVE = 86
    AUTH_UNAVAILABLE = 94
    AGENT_UNSYNCED = 97


CANT = frozenset({Code.NO_SUPPORT, Code.CONFIG_UNSUPPORTED, Code.ARGUMENT_UNSUPPORTED, Code.OPERATION_UNSUPPORTED})
"""The hypervisor has no such thing, or not for this machine."""


class Refusal(Exception):
    """A call that libvirt did not carry out. `lost`: its connection was dead afterwards, so nobody knows what became of the call."""

    def __init__(self, code: int, words: str, *, lost: bool = False) -> None:
        self.code = code
        self.words = words
        self.lost = lost
        super().__init__(words)


class Unreachable(MalboxError):
    """A hypervisor can't be asked; the text says why, and what to do."""


def refusal_of(error: Any, *, lost: bool = False) -> Refusal:
    """A `libvirtError` as a plain value."""
    code = error.get_error_code()
    return Refusal(-1 if code is None else code, cleaned(str(error)), lost=lost)


def cleaned(text: str) -> str:
    """A foreign text on one line, printable and bounded."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * MAX_WORDS]).split())
    return line if len(line) <= MAX_WORDS else f"{line[: MAX_WORDS - 1]}…"


def why_unreachable(uri: str, refusal: Refusal) -> str:
    """Why a hypervisor can't be reached, and what to do, in words."""
    words = refusal.words.lower()
    remedy = next((remedy for marks, remedy in _REMEDIES if any(mark in words for mark in marks)), _UNKNOWN).format(
        address=quote(uri)
    )
    return f"{uri} can't be reached: {refusal.words.rstrip('.')}. {remedy}"


_UNKNOWN = "See `virsh -c {address} list` and the journal of libvirt there."

_REMEDIES: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("could not resolve hostname", "name or service not known", "no route to host", "connection timed out"),
        "Check the host's name in {address}, and that this host reaches it.",
    ),
    (
        ("host key verification failed",),
        "Log in once with `ssh` as the user that malbox-tui runs as, and accept the host's key.",
    ),
    (
        ("permission denied (", "publickey"),
        "Let the user that malbox-tui runs as log in there by key, without a password (`ssh-copy-id`).",
    ),
    (
        ("authentication", "polkit", "permission denied"),
        "Add the user that malbox-tui runs as to the group libvirt (`usermod -aG libvirt USER`) and log in anew.",
    ),
    (
        ("no such file", "connection refused", "cannot recv data", "end of file"),
        "libvirt's daemon does not run there: `systemctl enable --now libvirtd` (or virtqemud.socket).",
    ),
    (
        ("no connection driver", "unsupported"),
        "Use qemu:///system, qemu:///session, qemu+ssh://USER@HOST/system or test:///default, and install libvirt's QEMU driver.",
    ),
)
