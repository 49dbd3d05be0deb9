"""A watched folder: what it is asked to be, and how it is at one moment."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class WatchState(StrEnum):
    """How it is with a watched folder.

    - `starting`: it was not looked at yet.
    - `watching`: what comes is taken.
    - `away`: it can't be looked into; it is tried again.
    """

    STARTING = "starting"
    WATCHING = "watching"
    AWAY = "away"


class WatchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a watched folder is to be, in the words and with the defaults of `[[watch]]`. It may say what makes no sense: whoever takes
    it checks it as the configuration is."""

    path: str
    recursive: bool = False
    patterns: tuple[str, ...] = ()
    settle_s: float = 2.0
    afterwards: str = "leave"
    priority: int = 1
    again: bool = False
    unique: bool = False
    owner: str = ""
    profile: str | None = None
    plugins: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    timeout_s: float | None = None
    type: str | None = None
    platform: str | None = None
    arch: str | None = None
    tags: tuple[str, ...] = ()
    machine: str | None = None
    archive: str = "members"


class WatchView(msgspec.Struct, frozen=True, kw_only=True):
    """One watched folder: `path` and what becomes of taken files (leave, move, delete); counts are of this run of the engine.

    `waiting` are things in it that are still being written, or wait by their names; `left_out` are those whose names are not to be
    taken. `problem` says what an operator has to know while it lasts; empty: nothing.
    """

    path: str
    state: WatchState
    afterwards: str
    recursive: bool
    added: int = 0
    known: int = 0
    refused: int = 0
    waiting: int = 0
    left_out: int = 0
    problem: str = ""
