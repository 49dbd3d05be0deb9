"""What a configuration may hold, read from the `Settings` structs: the keys of a section, and each key's values in words."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import inspect as types

from malbox_tui.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a section: its default, its values in words, and its docstring (empty: it has none)."""

    name: str
    type: types.Type
    default: Any
    explanation: str

    @property
    def expected(self) -> str:
        """What a value has to be, to be put after "expected"."""
        return in_words(self.type)


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the file, in the order of the struct; `explanation` is the section's docstring."""

    name: str
    explanation: str
    keys: tuple[Key, ...]


def sections() -> tuple[Section, ...]:
    """All sections of a configuration, in order."""
    return tuple(_section(field.name, field.type) for field in msgspec.structs.fields(Settings))


def in_words(type_: types.Type) -> str:
    """What a value of this type is, for a person who knows TOML and not Python."""
    match type_:
        case types.IntType():
            return f"a whole number{_range(type_)}"
        case types.FloatType():
            return f"a number{_range(type_)}"
        case types.StrType():
            return "a string"
        case types.BoolType():
            return "true or false"
        case types.EnumType(cls=cls):
            return f"one of {', '.join(repr(member.value) for member in cls)}"
        case types.VarTupleType(item_type=item):
            return f"a list, each entry {in_words(item)}"
        case types.DictType(value_type=value):
            return f"a table, each value {in_words(value)}"
        case types.StructType():
            return "a table"
        case _:
            raise TypeError(f"a settings field has a type that has no words yet: {type_}")


def _range(number: types.IntType | types.FloatType) -> str:
    low = (
        f"at least {number.ge:g}"
        if number.ge is not None and number.ge < 1e6
        else f"above {number.gt:g}"
        if number.gt is not None
        else ""
    )
    high = f"at most {number.le:.0f}" if number.le is not None else ""
    words = " and ".join(word for word in (low, high) if word)
    return f", {words}" if words else ""


def _section(name: str, struct: Any) -> Section:
    explanations = _attribute_docstrings(struct)
    keys = tuple(
        Key(
            name=field.encode_name,
            type=types.type_info(field.type),
            default=field.default_factory() if field.default is msgspec.NODEFAULT else field.default,
            explanation=explanations.get(field.name, ""),
        )
        for field in msgspec.structs.fields(struct)
    )
    return Section(name=name, explanation=inspect.getdoc(struct) or "", keys=keys)


def _attribute_docstrings(struct: type) -> dict[str, str]:
    """The string that follows each annotated field in the source; Python keeps none of them at run time."""
    (definition,) = ast.parse(inspect.getsource(struct)).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for statement, follower in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(follower, ast.Expr)
            and isinstance(follower.value, ast.Constant)
            and isinstance(follower.value.value, str)
        ):
            found[statement.target.id] = inspect.cleandoc(follower.value.value)
    return found
