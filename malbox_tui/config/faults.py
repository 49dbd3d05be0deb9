"""What a table holds that its struct doesn't take: unknown and missing keys, and values of the wrong kind, each with a remedy."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import inspect as types

from malbox_tui.config.shape import in_words, without_none
from malbox_tui.model.sample import visible

ENTRY_NOUNS: Mapping[str, str] = {"workers": "group", "machines": "machine", "watch": "folder", "profiles": "profile"}
"""What an entry of a list of tables is, by the list's key."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`key` is the path to the place in the file, such as `workers[1].max_workers`; `problem` is a sentence."""

    key: str
    problem: str


def value_faults(value: Any, type_: types.Type, key: str = "") -> Iterator[Fault]:
    """Everything in `value`, which stands at `key`, that a field of this type doesn't take."""
    match type_:
        case types.UnionType():
            yield from value_faults(value, without_none(type_), key)
        case types.StructType() if isinstance(value, Mapping):
            yield from _table_faults(value, type_, key)
        case types.DictType(value_type=member_type) if isinstance(value, Mapping):
            for name, member in value.items():
                yield from value_faults(member, member_type, joined(key, name))
        case types.VarTupleType(item_type=types.StructType() as entry_type) if isinstance(value, list):
            for index, entry in enumerate(value):
                for fault in value_faults(entry, entry_type, f"{key}[{index}]"):
                    yield Fault(fault.key, f"{entry_prefix(key, entry)}{fault.problem}")
        case types.VarTupleType(item_type=item_type) if isinstance(value, list):
            for index, item in enumerate(value):
                yield from value_faults(item, item_type, f"{key}[{index}]")
        case _ if not _fits(value, type_):
            yield Fault(key, f"expected {in_words(type_)}, got {_shown(value)}.{_brackets(value, type_, key)}")


def entry_prefix(list_key: str, entry: Any) -> str:
    """Which group, machine or folder is meant, to be put before a problem; empty when the entry has no name."""
    name = entry.get("path" if list_key == "watch" else "name") if isinstance(entry, Mapping) else None
    return f"{ENTRY_NOUNS[list_key]} {_cut(visible(name))}: " if isinstance(name, str) and name else ""


def joined(key: str, name: str) -> str:
    """The path of `name` in the table at `key`."""
    return f"{key}.{visible(name)}" if key else visible(name)


def _table_faults(table: Mapping[str, Any], type_: types.StructType, key: str) -> Iterator[Fault]:
    known = {field.encode_name: field.type for field in type_.fields}
    for name, member in table.items():
        if name in known:
            yield from value_faults(member, known[name], joined(key, name))
        else:
            yield Fault(joined(key, name), _unknown(name, known, key))
    for field in type_.fields:
        if field.required and field.encode_name not in table:
            yield Fault(joined(key, field.encode_name), f"missing. Expected {in_words(field.type)}.")


def _fits(value: Any, type_: types.Type) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return False
    match type_:
        case types.Metadata(type=inner, extra={"only": expected}):
            return _fits(value, inner) and bool(value == expected)
        case types.Metadata(type=inner):
            return _fits(value, inner)
        case types.IntType() | types.FloatType() if isinstance(value, bool):
            return False
        case types.IntType():
            return isinstance(value, int) and _in_range(value, type_)
        case types.FloatType():
            return isinstance(value, (int, float)) and _in_range(value, type_)
        case types.StrType(pattern=pattern):
            return isinstance(value, str) and (pattern is None or re.search(pattern, value) is not None)
        case types.BoolType():
            return isinstance(value, bool)
        case types.EnumType(cls=cls):
            return isinstance(value, str) and value in {member.value for member in cls}
        case types.AnyType():
            return True
        case _:
            return False


def _in_range(value: float, type_: types.IntType | types.FloatType) -> bool:
    return (
        (type_.ge is None or value >= type_.ge)
        and (type_.gt is None or value > type_.gt)
        and (type_.le is None or value <= type_.le)
        and (type_.lt is None or value < type_.lt)
        and abs(value) < 2**63
    )


def _unknown(name: str, known: Iterable[str], section: str) -> str:
    what = "key" if section else "section"
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"Did you mean {joined(section, near[0])}?" if near else f"Known here: {', '.join(known)}."
    return f"unknown {what}. {hint}"


def _brackets(value: Any, type_: types.Type, key: str) -> str:
    """How to write a table, or a list of tables, that was written as the other one."""
    match type_, value:
        case types.VarTupleType(item_type=types.StructType()), Mapping():
            return f" Write [[{key}]], with double brackets, once for each {ENTRY_NOUNS[key]}."
        case types.StructType(), list() if "[" not in key:
            return f" Write [{key}], with single brackets."
        case _:
            return ""


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the string "{_cut(visible(value))}"'
    return visible(str(value))[:60]


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
