"""One thing that `doctor` found out about this host."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How bad a finding is: fine, weaker than it could be, or in the way of work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """`remedy` is what a person can do about it, empty when nothing needs to be done."""

    what: str
    health: Health
    detail: str
    remedy: str = ""
