r"""Drops and pastes read as paths, and paths completed while they are typed.

No terminal says how it spells what is dropped on it, and what one of them quotes another leaves bare. So every known spelling is tried,
and the first is believed whose *every* path exists. That order decides what a text means that could be read in two ways: a name as it
is before any quoting, quoting as a shell reads it before looser ones.

1. Nothing is opened: a path is looked at (`lstat`), a folder's names are listed for completions.
2. A text is UTF-8 with `surrogateescape`, so a name that is no UTF-8 comes out as the bytes that it was.
"""

from __future__ import annotations

import heapq
import os
import re
import socket
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import unquote_to_bytes

from malbox_tui.model.sample import visible
from malbox_tui.ports import Dropped

MAX_PATHS = 20_000
MAX_BYTES = 4 * 1024**2
SHOWN_CHARACTERS = 72
LISTED_NAMES = 50_000
"""Names of one folder that completions look at, at most: a folder of millions must not stop the typing."""

Candidate = list[bytes]

_URL = re.compile(r"file:(?://([^/]*))?(/.*)", re.DOTALL | re.IGNORECASE)
_WORD_PART = re.compile(
    r"""(?P<space>[ \t\r\n]+)|\$'(?P<ansi>(?:\\.|[^'\\])*)'|'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)"|\\(?P<escaped>.)"""
    r"""|(?P<plain>[^ \t\r\n'"\\$]+|\$)""",
    re.DOTALL,
)
_DOUBLE_ESCAPE = re.compile(r'\\([$`"\\\n])')
_ANSI_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_LETTERS = {"a": 7, "b": 8, "e": 27, "E": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ANY_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BARE_SPACE = re.compile(r"(?<!\\)[ \t\r\n]+")
_QUOTED_OR_BARE = re.compile(r"""(["'])(.+?)\1(?=\s|$)|(\S+)""", re.DOTALL)
_SUM = re.compile(r"(?:sha-?256[:=])?([0-9a-f]{64})", re.IGNORECASE)
_BETWEEN_SUMS = re.compile(r"[\s,;]+")
_BEFORE_ROOT = re.compile(r"""\s+(?=["']?/)""")


def dropped_paths(text: str, host: str | None = None) -> Dropped:
    """The paths that `text` names, each once, in its order. `host` is how the sentence calls this host, if it has to.

    Relative paths begin at the current folder, `~` at a home. A text of more than `MAX_BYTES`, and one that names more than `MAX_PATHS`
    paths, is refused as a whole. Where no reading has all its paths here, that one counts which has the most of them, if all that it
    names begin at the root or a home; of words that may be anything, none is believed.
    """
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        return Dropped((), f"More than {MAX_BYTES // 1024**2} MiB were dropped at once; drop the folder instead of its files.")
    if not text.strip():
        return Dropped((), "What was dropped is empty.")
    if _bytes(text) is None:  # a surrogate that no byte is
        text = _text(text.encode("utf-8", "surrogatepass"))
    missing, found_before_missing = _first_named(text), 0
    some = _Some()
    for candidate in _candidates(text):
        if len(candidate) > MAX_PATHS and _existing(candidate[0]) is not None:
            return Dropped((), f"More than {MAX_PATHS:,} paths were dropped at once; drop the folder instead of its files.")
        paths: dict[bytes, None] = {}
        for path in candidate[:MAX_PATHS]:
            existing = _existing(path)
            if existing is None:
                if len(paths) > found_before_missing:
                    missing, found_before_missing = path, len(paths)
                some.weigh(candidate)
                break
            paths[existing] = None
        else:
            return Dropped(tuple(paths))
    where = host or socket.gethostname()
    if some.paths:
        return Dropped(some.paths, _nothing_there(some.missing[0], where, len(some.missing)), missing=some.missing)
    if sums := _sums(text):
        return Dropped((), sums=sums)
    return Dropped((), _nothing_there(missing, where))


class _Some:
    """The reading that has the most of its paths here, of those that name nothing but paths from the root or a home."""

    def __init__(self) -> None:
        self.paths: tuple[bytes, ...] = ()
        self.missing: tuple[bytes, ...] = ()

    def weigh(self, candidate: Candidate) -> None:
        """Whether it is better than those before."""
        if len(candidate) > MAX_PATHS or not all(path.startswith((b"/", b"~")) for path in candidate):
            return
        existing = {path: _existing(path) for path in candidate}
        paths = tuple(dict.fromkeys(path for path in existing.values() if path is not None))
        if len(paths) > len(self.paths):
            self.paths = paths
            self.missing = tuple(_expanded(path) for path, found in existing.items() if found is None)


def _sums(text: str) -> tuple[str, ...]:
    """SHA-256 sums, when the text names nothing else: one after the other, or a line each with what it is the sum of behind it."""
    words = _BETWEEN_SUMS.split(text.strip())
    if not all(map(_SUM.fullmatch, words)):
        words = [line.strip().split(maxsplit=1)[0] for line in _lines(text)]
    found = [match[1].lower() for match in map(_SUM.fullmatch, words) if match is not None]
    return tuple(dict.fromkeys(found)) if len(found) == len(words) <= MAX_PATHS else ()


def completions(text: str, limit: int) -> list[str]:
    """Paths that begin with `text`, in byte order, folders with a slash at the end; hidden ones only when the text asks for them.

    A folder that can't be listed gives none; of one with more than `LISTED_NAMES` names some are left out.
    """
    given = _bytes(text)
    if given is None or b"\0" in given or limit < 1:
        return []
    if given.startswith(b"~") and b"/" not in given:
        home = _expanded(given)
        return [_text(given + b"/")] if home != given and Path(os.fsdecode(home)).is_dir() else []
    head, slash, begun = given.rpartition(b"/")
    folder = _expanded(head + slash) or b"."
    try:
        with os.scandir(folder) as entries:
            matching = (entry for entry in islice(entries, LISTED_NAMES) if _continues(entry.name, begun))
            first = heapq.nsmallest(limit, matching, key=lambda entry: entry.name)
            return [_text(head + slash + entry.name + (b"/" if _is_folder(entry) else b"")) for entry in first]
    except OSError:
        return []


def _candidates(text: str) -> Iterator[Candidate]:
    """What the text may mean, the most literal reading first. None of them is empty."""
    for reading in _READINGS:
        for words in reading(text):
            candidate = [_bytes(word) if isinstance(word, str) else word for word in words]
            if candidate and all(candidate):
                yield [path for path in candidate if path is not None]


Word = str | bytes | None
Readings = Iterator[list[Word]]


def _as_one_path(text: str) -> Readings:
    for one in dict.fromkeys((text, text.removesuffix("\n").removesuffix("\r"), text.removesuffix(" "), text.strip())):
        yield [one]


def _as_lines(text: str) -> Readings:
    lines = _lines(text)
    yield [*lines]
    yield [line.strip(" ") for line in lines]


def _as_urls(text: str) -> Readings:
    lines = [line.strip() for line in _lines(text) if not line.startswith("#")]
    yield [_path_of_url(line) for line in lines]
    yield [_path_of_url(word) for line in lines for word in line.split()]


def _as_shell_words(text: str) -> Readings:
    words = _shell_words(text)
    if words is not None:
        yield [*words]
        yield [_path_of_url(_text(word)) or word for word in words]


def _as_escaped(text: str) -> Readings:
    """Backslashes before anything, or only before spaces, and quotes that mean nothing."""
    stripped = text.strip()
    yield [_ANY_ESCAPE.sub(r"\1", stripped)]
    yield [stripped.replace("\\ ", " ")]
    words = _BARE_SPACE.split(stripped)
    yield [_ANY_ESCAPE.sub(r"\1", word) for word in words]
    yield [word.replace("\\ ", " ") for word in words]
    yield [*words]


def _as_quoted(text: str) -> Readings:
    """Quotes around a name that may hold the same quote, unescaped."""
    stripped = text.strip()
    if len(stripped) > 2 and stripped[0] in "\"'" and stripped[-1] == stripped[0]:
        yield [stripped[1:-1]]
    yield [match[2] or match[3] for match in _QUOTED_OR_BARE.finditer(stripped)]


def _as_absolute_paths(text: str) -> Readings:
    parts = _BEFORE_ROOT.split(text.strip())
    yield [*parts]
    yield [part.strip("\"'") for part in parts]
    yield [_ANY_ESCAPE.sub(r"\1", part) for part in parts]


_READINGS: tuple[Callable[[str], Readings], ...] = (
    _as_one_path,
    _as_lines,
    _as_urls,
    _as_shell_words,
    _as_escaped,
    _as_quoted,
    _as_absolute_paths,
)


def _lines(text: str) -> list[str]:
    return [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line.strip()]


def _path_of_url(text: str) -> bytes | None:
    """The path of a `file:` URL of this host (RFC 8089); None for anything else."""
    match = _URL.fullmatch(text)
    if match is None or (match[1] or "").lower() not in ("", "localhost", socket.gethostname().lower()):
        return None
    return unquote_to_bytes(_bytes(match[2]) or b"")


def _shell_words(text: str) -> list[bytes] | None:
    """Words as a POSIX shell reads them (and `$'…'`), without any expansion; None where a quote is left open."""
    words: list[bytes] = []
    parts: list[bytes] | None = None
    place = 0
    while place < len(text):
        match = _WORD_PART.match(text, place)
        if match is None:
            return None
        place = match.end()
        if match.lastgroup == "space":
            if parts is not None:
                words.append(b"".join(parts))
            parts = None
            continue
        parts = [] if parts is None else parts
        parts.append(_word_part(match.lastgroup or "", match[match.lastgroup or ""]))
    if parts is not None:
        words.append(b"".join(parts))
    return words


def _word_part(kind: str, text: str) -> bytes:
    if kind == "double":
        text = _DOUBLE_ESCAPE.sub(lambda match: "" if match[1] == "\n" else match[1], text)
    raw = text.encode("utf-8", "surrogateescape")
    if kind != "ansi":
        return raw
    pieces, place = [], 0
    for match in _ANSI_ESCAPE.finditer(text):
        pieces.append(text[place : match.start()].encode("utf-8", "surrogateescape"))
        place = match.end()
        if match[3] is not None:
            letter = _ANSI_LETTERS.get(match[3])
            pieces.append(match[3].encode("utf-8", "surrogateescape") if letter is None else bytes([letter]))
        else:
            pieces.append(bytes([(int(match[1], 16) if match[1] else int(match[2], 8)) & 0xFF]))
    return b"".join([*pieces, text[place:].encode("utf-8", "surrogateescape")])


def _existing(path: bytes) -> bytes | None:
    """The path as it can be used, if there is something; a name that is really `~` goes before a home."""
    for meant in dict.fromkeys((path, _expanded(path))):
        try:
            os.lstat(meant)
        except (OSError, ValueError):
            continue
        return meant
    return None


def _expanded(path: bytes) -> bytes:
    return os.path.expanduser(path) if path.startswith(b"~") else path  # noqa: PTH111 - a path of bytes


def _continues(name: bytes, begun: bytes) -> bool:
    return name.startswith(begun) and (begun.startswith(b".") or not name.startswith(b"."))


def _is_folder(entry: os.DirEntry[bytes]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _bytes(text: str) -> bytes | None:
    """None for what can't have come from bytes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _first_named(text: str) -> bytes:
    """What a person would say that the text names first."""
    first = next(iter(_lines(text)), text).strip()
    if first[:1] in ("'", '"') or "\\" in first:
        words = _shell_words(first)
        first = _text(words[0]) if words else first
    return _path_of_url(first) or first.encode("utf-8", "surrogateescape")


def _nothing_there(missing: bytes, host: str, count: int = 1) -> str:
    looked_for = visible(_text(missing))
    if len(looked_for) > SHOWN_CHARACTERS:
        half = SHOWN_CHARACTERS // 2
        looked_for = f"{looked_for[:half]}…{looked_for[-half:]}"
    where = visible(host)
    more = f", nor {count - 1:,} more of what was named" if count > 1 else ""
    return f"There is no {looked_for} on {where}{more}. If it is on your own machine, copy it here first: scp FILE {where}:"
