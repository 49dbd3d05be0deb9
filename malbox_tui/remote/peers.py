"""Who holds the other end of a Unix socket, as the kernel knows it, and who may.

What the kernel says was true when the other side connected (unix(7), SO_PEERCRED and SO_PEERGROUPS).
"""

from __future__ import annotations

import pwd
import socket
import struct
from dataclasses import dataclass, field

_SO_PEERGROUPS = 59
"""Of asm-generic/socket.h; Python doesn't name it."""
_CREDENTIALS = struct.Struct("3i")
_GROUP = struct.Struct("I")
_MOST_GROUPS = 65_536
"""NGROUPS_MAX of Linux."""
ROOT = 0


@dataclass(frozen=True, slots=True)
class Peer:
    """A process at the other end: its user, all its groups, its id (0: of another namespace), and its user's name for the log."""

    uid: int
    groups: frozenset[int]
    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class Admission:
    """Who may ask: root, the owner, and who is in the group `gid` (None: there is none)."""

    owner_uid: int
    gid: int | None = None

    def admits(self, peer: Peer) -> bool:
        """Whether this one may."""
        return peer.uid in (ROOT, self.owner_uid) or (self.gid is not None and self.gid in peer.groups)


@dataclass(slots=True)
class PeerBook:
    """Tells peers apart; looks each user's name up once, since that may ask a directory service."""

    _names: dict[int, str] = field(default_factory=dict)

    def peer_of(self, connection: socket.socket) -> Peer:
        """Who connected. Raises OSError when the kernel can't tell."""
        pid, uid, gid = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        groups = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _GROUP.size * 64)
        if len(groups) == _GROUP.size * 64:
            groups = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _GROUP.size * _MOST_GROUPS)
        more = (group for (group,) in _GROUP.iter_unpack(groups))
        return Peer(uid, frozenset((gid, *more)), pid, self._name(uid))

    def _name(self, uid: int) -> str:
        if uid not in self._names:
            self._names[uid] = _login_name(uid)
        return self._names[uid]


def _login_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
