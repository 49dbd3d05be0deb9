"""`ssh://[user@]host[:port][/data-folder]`, read strictly: nothing in it can be an option of ssh's, or a word of any shell."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from urllib.parse import unquote

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.sample import visible

SCHEME = "ssh://"

_TARGET = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})@)?"
    r"(?P<host>[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,253})|\[[0-9A-Fa-f:.]{2,45}(?:%25[A-Za-z0-9_.-]{1,15})?\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/.*)?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class SshTarget:
    """Where to go. `host` may be a name of ~/.ssh/config; `folder` is a data folder there, None the user's own."""

    host: str
    user: str | None = None
    port: int | None = None
    folder: str | None = None

    @classmethod
    def parse(cls, text: str) -> SshTarget:
        """Raises `MalboxError` with what is wrong."""
        match = _TARGET.fullmatch(text.removeprefix(SCHEME)) if text.startswith(SCHEME) else None
        if match is None or (match["port"] and not 0 < int(match["port"]) < 65536):
            raise MalboxError(
                f"{visible(text[:200])} is no place to attach to: it has to look like ssh://[user@]host[:port][/data/folder]."
            )
        path = unquote(match["path"] or "/", errors="surrogateescape")
        if "\0" in path:
            raise MalboxError("The path of a data folder holds no NUL byte.")
        host = match["host"].strip("[]").replace("%25", "%")
        return cls(host, match["user"], int(match["port"]) if match["port"] else None, None if path == "/" else path)

    @property
    def shown(self) -> str:
        """For a person, short."""
        return f"{self.user}@{self.host}" if self.user else self.host

    def arguments(self) -> list[str]:
        """The destination as ssh takes it, behind all options."""
        port = [] if self.port is None else ["-p", str(self.port)]
        user = [] if self.user is None else ["-l", self.user]
        return [*port, *user, "--", self.host]

    def command(self, program: str) -> str:
        """What the remote shell is to run: say where the socket is, then stay as long as this side does."""
        words = [quoted(program), *(["--data-dir", quoted(self.folder)] if self.folder is not None else []), "where", "--json"]
        return f"{' '.join(words)} && cat"


def quoted(path: str) -> str:
    """A path for a POSIX shell, in which a leading `~/` (or `/~/`, as in URLs) is the user's home."""
    for home in ("/~/", "~/"):
        if path.startswith(home):
            return f"~/{shlex.quote(path.removeprefix(home))}"
    return shlex.quote(path)
