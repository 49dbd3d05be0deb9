"""What a configuration may hold, read from the `Settings` structs: the keys of a section, and each key's values in words."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from typing import Any

import msgspec
import tomli_w
from msgspec import inspect as types

from malbox_tui.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a section: its default (`NODEFAULT`: it has to be there), its values in words, and its docstring (empty: none)."""

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
    """One table of the file, in the order of the struct; `explanation` is the section's docstring.

    `name` is dotted for a table inside another, which are its `tables`. `repeated`: the file has a list of such tables.
    """

    name: str
    explanation: str
    keys: tuple[Key, ...]
    tables: tuple[Section, ...] = ()
    repeated: bool = False


def sections() -> tuple[Section, ...]:
    """All sections of a configuration, in order."""
    return _section("", Settings).tables


def in_words(type_: types.Type) -> str:
    """What a value of this type is, for a person who knows TOML and not Python."""
    match type_:
        case types.Metadata(extra={"only": value, "why": why}):
            return f"nothing but {in_toml(value)} ({why})"
        case types.Metadata(extra_json_schema={"description": str(description)}):
            return description
        case types.Metadata(type=inner):
            return in_words(inner)
        case types.UnionType():
            return in_words(without_none(type_))
        case types.IntType():
            return f"a whole number{_range(type_)}"
        case types.FloatType():
            return f"a number{_range(type_)}"
        case types.StrType():
            return "a string"
        case types.BoolType():
            return "true or false"
        case types.EnumType(cls=cls):
            return _one_of([repr(member.value) for member in cls])
        case types.VarTupleType(item_type=types.StructType()):
            return "a list of tables"
        case types.VarTupleType(item_type=item):
            return f"a list, each entry {in_words(item)}"
        case types.StructType() | types.DictType(value_type=types.AnyType()):
            return "a table"
        case types.DictType(value_type=value):
            return f"a table, each value {in_words(value)}"
        case _:
            raise TypeError(f"a settings field has a type that has no words yet: {type_}")


def without_none(union: types.UnionType) -> types.Type:
    """The type of a key that may be left out. TOML knows no null, so None is never written."""
    (type_,) = (member for member in union.types if not isinstance(member, types.NoneType))
    return type_


def in_toml(value: Any) -> str:
    """A value that is no table, as it is written in a file, on one line."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(in_toml(item) for item in value)}]"
    return tomli_w.dumps({"key": value}).removeprefix("key = ").strip()


def _one_of(values: list[str]) -> str:
    return f"one of {', '.join(values)}" if len(values) > 1 else f"{values[0]}, there is no other yet"


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


def _section(name: str, struct: type[msgspec.Struct], *, repeated: bool = False) -> Section:
    explanations = _attribute_docstrings(struct)
    keys: list[Key] = []
    tables: list[Section] = []
    for field in msgspec.structs.fields(struct):
        inner = f"{name}.{field.encode_name}".lstrip(".")
        type_ = types.type_info(field.type)
        match type_:
            case types.StructType(cls=cls):
                tables.append(_section(inner, cls))
            case types.VarTupleType(item_type=types.StructType(cls=cls)):
                tables.append(_section(inner, cls, repeated=True))
            case _:
                keys.append(Key(field.encode_name, type_, _default(field), explanations.get(field.name, "")))
    return Section(name, inspect.getdoc(struct) or "", tuple(keys), tuple(tables), repeated)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


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
