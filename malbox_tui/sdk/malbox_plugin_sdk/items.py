"""What blocks of reports are made of: pairs, columns, nodes and events. Each is checked when it is made, and can't be changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .values import JsonObject, checked_json, checked_optional_text, checked_text, present

_Item = TypeVar("_Item")


def all_of(kind: type[_Item], what: str, items: Sequence[_Item]) -> list[_Item]:
    """These, if all of them are of the kind. Raises TypeError."""
    checked = list(items)
    for item in checked:
        if not isinstance(item, kind):
            raise TypeError(f"{what} must hold {kind.__name__} values, not {type(item).__name__}")
    return checked


@dataclass(frozen=True)
class KvPair:
    """One line of a `kv` block; `mono` asks for a fixed-width font."""

    key: str
    value: str
    mono: bool = False

    def __post_init__(self) -> None:
        checked_text("key", self.key)
        checked_text("value", self.value)

    def to_json(self) -> JsonObject:
        """The shape that blocks hold."""
        return {"key": self.key, "value": self.value, **({"mono": True} if self.mono else {})}


@dataclass(frozen=True)
class Column:
    """A column of a table block; `type` is a hint: string, number, bool, datetime, …"""

    key: str
    label: str
    type: str = "string"

    def __post_init__(self) -> None:
        checked_text("key", self.key)
        checked_text("label", self.label)
        checked_text("type", self.type)

    @property
    def col_type(self) -> str:
        """The hint, under the stub's name."""
        return self.type

    def to_json(self) -> JsonObject:
        """The shape that blocks hold."""
        return {"key": self.key, "label": self.label, "type": self.type}


@dataclass(frozen=True)
class TreeNode:
    """A node of a tree block; `meta` is any JSON."""

    label: str
    children: list[TreeNode] | None = None
    meta: Any = None

    def __post_init__(self) -> None:
        checked_text("label", self.label)
        _set(self, children=all_of(TreeNode, "children", self.children or ()), meta=checked_json("meta", self.meta))

    def to_json(self) -> JsonObject:
        """The shape that blocks hold."""
        children = [child.to_json() for child in self.children or ()]
        return present({"label": self.label, "children": children or None, "meta": self.meta})


@dataclass(frozen=True)
class TimelineEvent:
    """An event of a timeline block; `ts` is RFC 3339, or an offset."""

    ts: str
    label: str
    severity: str | None = None
    meta: Any = None

    def __post_init__(self) -> None:
        checked_text("ts", self.ts)
        checked_text("label", self.label)
        checked_optional_text("severity", self.severity)
        _set(self, meta=checked_json("meta", self.meta))

    def to_json(self) -> JsonObject:
        """The shape that blocks hold."""
        return present({"ts": self.ts, "label": self.label, "severity": self.severity, "meta": self.meta})


@dataclass(frozen=True)
class GraphNode:
    """A node of a graph block."""

    id: str
    label: str
    meta: Any = None

    def __post_init__(self) -> None:
        checked_text("id", self.id)
        checked_text("label", self.label)
        _set(self, meta=checked_json("meta", self.meta))

    def to_json(self) -> JsonObject:
        """The shape that blocks hold."""
        return present({"id": self.id, "label": self.label, "meta": self.meta})


@dataclass(frozen=True)
class GraphEdge:
    """An edge of a graph block, between the ids of two nodes."""

    from_node: str
    to_node: str
    label: str | None = None

    def __post_init__(self) -> None:
        checked_text("from_node", self.from_node)
        checked_text("to_node", self.to_node)
        checked_optional_text("label", self.label)

    def to_json(self) -> JsonObject:
        """The shape that blocks hold."""
        return present({"from": self.from_node, "to": self.to_node, "label": self.label})


def _set(value: object, **fields: Any) -> None:
    """What a frozen value is made of, while it is being made."""
    for name, field in fields.items():
        object.__setattr__(value, name, field)
