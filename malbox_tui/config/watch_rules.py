"""What watched folders must not say although each of their values is of the right kind: no file may belong to two of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from malbox_tui.config.faults import Fault
from malbox_tui.config.watching import WatchSettings
from malbox_tui.model.sample import visible


def watch_faults(watches: Sequence[tuple[str, WatchSettings]]) -> Iterator[Fault]:
    """What is wrong with watched folders, each given by its key path, beside each other. Links on the way are seen through."""
    earlier: list[tuple[str, str]] = []
    for key, watch in watches:
        if watch.unique and watch.again:
            yield Fault(
                f"{key}.unique", "what is known can't be both left out and analysed again (again). Take one of them away."
            )
        real = os.path.realpath(watch.path)
        for first, other in earlier:
            relation = _relation(real, other)
            if relation:
                problem = f'"{visible(watch.path)}" {relation} {first}. A file would be taken twice: keep one of the two.'
                yield Fault(f"{key}.path", problem)
        earlier.append((key, real))


def profile_fault(key: str, profile: str) -> Fault:
    """What stands at `key` names a profile that isn't there."""
    return Fault(key, f"there is no profile {visible(profile)}. Add it to [[profiles]], or name another.")


def _relation(path: str, other: str) -> str:
    if path == other:
        return "is the same folder as that of"
    if path.startswith(other.rstrip("/") + "/"):
        return "lies in the folder of"
    return "holds the folder of" if other.startswith(path.rstrip("/") + "/") else ""
