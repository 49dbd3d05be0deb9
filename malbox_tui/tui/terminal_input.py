r"""What a terminal sends, taken apart before anything is a key: pastes, drops that arrive as if they were typed, and the rest.

Pure: bytes and the time go in, pieces come out. What holds:

1. Between the marks of a bracketed paste everything is text, ESC included; nothing of it becomes a key, and none is lost.
2. Bytes that are no UTF-8 become surrogates (`surrogateescape`), so a path can be made the same bytes again. None raises.
3. Pieces have the order of their bytes, and what was not a drop after all goes on as the keys it was, byte for byte.
4. Only what may be the beginning of something longer is held back, and never longer than the times below: text that may be a drop for
   `BURST_S`, an unfinished escape sequence for the time that Textual gives the Escape key, an unfinished paste for `PASTE_S`.

A drop is told from typing by its pace and its look. A person's keys, and a key that repeats (30 a second), come one by one; a terminal
that types a path (Konsole, Ghostty on macOS, tmux's paste-buffer without -p) sends all of it at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BURST_S = 0.012
"""Text that comes within this of other text belongs to it. (At 60 words a minute keys are 200 ms apart, at 30 Hz repetition 33 ms.)"""

PASTE_S = 2.0
"""A paste whose end hasn't come this long after its last byte has lost it."""

MAX_PASTE_BYTES = (4 << 20) + 1
"""More of one paste is thrown away: no terminal may fill the memory. Of a text that is so long, nothing is taken for paths."""

SHORTEST_BURST = 3
LONG_BURST, LONG_BURST_VARIETY = 12, 6
"""So many characters at once, so many of them different, are a paste whatever they say."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Characters and whole escape sequences, for the parser of keys and mouse."""

    text: str


@dataclass(frozen=True, slots=True)
class EscapeKey:
    """The Escape key alone."""


@dataclass(frozen=True, slots=True)
class Pasted:
    """A text that came at once."""

    text: str


@dataclass(frozen=True, slots=True)
class StaleMouse:
    """A mouse report in the form of the first xterm, which can't say more than 223 columns: the terminal forgot what it was asked."""


Piece = Keys | EscapeKey | Pasted | StaleMouse

_PASTE_ENDS = b"\x1b[201~"

_TOKEN = re.compile(
    rb"""(?P<paste>\x1b\[200~)
    | (?P<stale_mouse>\x1b\[M[\x00-\xff]{3})
    | (?P<unfinished>\x1b (?: \[ (?: [0-?]*[\x20-/]* | M[\x00-\xff]{0,2} ) | O | [\]PX^_][^\x07\x1b]{0,256}\x1b? )? \Z)
    | (?P<sequence>\x1b (?: \[[0-?]*[\x20-/]*[@-~] | O[\x20-~] | [\]PX^_][^\x07\x1b]{0,256}(?:\x07|\x1b\\) | [^\x1b] ))
    | (?P<escape>\x1b)
    | (?P<half>(?: [\xc2-\xdf] | [\xe0-\xef][\x80-\xbf]? | [\xf0-\xf4][\x80-\xbf]{0,2} )\Z)
    | (?P<control>[\x00-\x1f\x7f])
    | (?P<run>[^\x00-\x1f\x7f]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_HALF_AT_THE_END = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
_FROM_A_PERSON = re.compile(rb"\x1b(?:\[<[-\d;]*[Mm]|\[[-\d;:]*[A-IMO-SZtu~]|\[\?[\d;]*\$y|O.)", re.DOTALL)
"""Sequences that keys, the mouse and the terminal itself send; others in the middle of a text are part of it."""

_BEGINS_A_PATH = re.compile(rb"[/'\"~\\]")
_IS_A_PATH = re.compile(r"""\s*(?:\$?['"])?(?:file:/|~[^/\s]*/.|[^/]*/[^/]+/.)""", re.DOTALL)


class TerminalInput:
    """Give it what was read and when, and ask it again when `wait_s` is over. Times are seconds of a clock that never goes back."""

    def __init__(self, escape_s: float = 0.1) -> None:
        """`escape_s` is how long the rest of an escape sequence may take."""
        self._escape_s = escape_s
        self._held = b""
        """The beginning of an escape sequence or of a character."""
        self._held_until = 0.0
        self._burst = bytearray()
        self._burst_until = 0.0
        self._burst_follows_paste = False
        self._paste: bytearray | None = None
        self._paste_until = 0.0
        self._after_paste_until = 0.0
        """Text that comes with a paste's end may be the rest of it: a name can hold the mark of the end."""

    def feed(self, read: bytes, now: float) -> list[Piece]:
        """What is certain after these bytes. (What is held is not given up for being late: here the rest of it may have come.)"""
        pieces: list[Piece] = []
        self._end_burst_in_time(now, pieces)
        waiting, self._held = self._held + read, b""
        while waiting:
            if self._paste is not None:
                waiting = self._go_on_pasting(self._paste, waiting, now, pieces)
            else:
                waiting = self._next(waiting, now, pieces)
        return _joined(pieces)

    def due(self, now: float) -> list[Piece]:
        """What is certain because nothing more came."""
        pieces: list[Piece] = []
        self._end_burst_in_time(now, pieces)
        if self._paste is not None and now >= self._paste_until:
            self._paste += self._held
            self._held = b""
            self._end_paste(now, pieces)
        elif self._paste is None and self._held and now >= self._held_until:
            pieces.append(EscapeKey() if self._held == b"\x1b" else Keys(_text(self._held)))
            self._held = b""
        return _joined(pieces)

    def wait_s(self, now: float, longest: float) -> float:
        """How long nothing can become certain without new bytes, `longest` at most."""
        until = now + longest
        if self._paste is not None:
            until = min(until, self._paste_until)
        elif self._held:
            until = min(until, self._held_until)
        if self._burst:
            until = min(until, self._burst_until)
        return max(0.0, until - now)

    def _next(self, waiting: bytes, now: float, pieces: list[Piece]) -> bytes:
        match = _TOKEN.match(waiting)
        assert match is not None, "every byte begins a token"
        kind, token = match.lastgroup, match[0]
        if kind == "run" and len(token) == len(waiting) and (half := _HALF_AT_THE_END.search(token)):
            token = token[: half.start()]
        if kind in ("unfinished", "half"):
            self._held, self._held_until = token, now + self._escape_s
        elif kind in ("run", "control") or (kind == "sequence" and self._belongs_to_burst(token)):
            self._take_text(token, kind == "run", now, pieces)
        else:
            self._end_burst(pieces)
            if kind == "paste":
                self._paste, self._paste_until = bytearray(), now + PASTE_S
            else:
                pieces.append(EscapeKey() if kind == "escape" else StaleMouse() if kind == "stale_mouse" else Keys(_text(token)))
        return waiting[len(token) :]

    def _take_text(self, token: bytes, printable: bool, now: float, pieces: list[Piece]) -> None:
        follows_paste = now < self._after_paste_until
        begins = printable and (len(token) >= SHORTEST_BURST or _BEGINS_A_PATH.match(token) is not None)
        if not (self._burst or begins or follows_paste):
            pieces.append(Keys(_text(token)))
            return
        self._burst_follows_paste |= follows_paste and not self._burst
        self._burst += token
        self._burst_until = now + BURST_S
        if len(self._burst) > MAX_PASTE_BYTES:
            self._end_burst(pieces)

    def _belongs_to_burst(self, sequence: bytes) -> bool:
        return len(self._burst) >= SHORTEST_BURST and _FROM_A_PERSON.fullmatch(sequence) is None

    def _end_burst_in_time(self, now: float, pieces: list[Piece]) -> None:
        if self._burst and now >= self._burst_until:
            if not self._held.startswith(b"\x1b"):
                self._burst += self._held
                self._held = b""
            self._end_burst(pieces)

    def _end_burst(self, pieces: list[Piece]) -> None:
        if self._burst:
            text = _text(bytes(self._burst))
            is_rest_of_paste = self._burst_follows_paste and len(text) > 1
            pieces.append(Pasted(text) if is_rest_of_paste or _is_drop(text) else Keys(text))
            self._burst.clear()
        self._burst_follows_paste = False

    def _go_on_pasting(self, paste: bytearray, waiting: bytes, now: float, pieces: list[Piece]) -> bytes:
        self._paste_until = now + PASTE_S
        text, end, rest = waiting.partition(_PASTE_ENDS)
        if not end:
            begun = next((size for size in range(len(_PASTE_ENDS) - 1, 0, -1) if text.endswith(_PASTE_ENDS[:size])), 0)
            self._held = text[len(text) - begun :]
            text = text[: len(text) - begun]
        paste += text[: MAX_PASTE_BYTES - len(paste)]
        if end:
            self._end_paste(now, pieces)
        return rest

    def _end_paste(self, now: float, pieces: list[Piece]) -> None:
        if self._paste is not None:
            pieces.append(Pasted(_text(bytes(self._paste))))
        self._paste = None
        self._after_paste_until = now + BURST_S


def _is_drop(text: str) -> bool:
    said = text.strip()
    variety = len(set(said))
    if len(said) >= LONG_BURST and variety >= LONG_BURST_VARIETY:
        return True
    return variety >= SHORTEST_BURST and _IS_A_PATH.match(said) is not None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Neighbouring keys as one piece."""
    joined: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, Keys) and joined and isinstance(joined[-1], Keys):
            joined[-1] = Keys(joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined
