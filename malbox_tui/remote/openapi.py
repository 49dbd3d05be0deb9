"""The OpenAPI document, made from the table of operations and the types that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from malbox_tui.model.queries import MAX_ROWS
from malbox_tui.remote.answers import BYTES, JSON
from malbox_tui.remote.asking import HIGHEST
from malbox_tui.remote.operations import Operation
from malbox_tui.remote.protocol import MAX_READ_BYTES, PROTOCOL, Problem
from malbox_tui.remote.sample_query import MAX_NAME_BYTES

OPENAPI = "3.1.0"
_REFERENCE = "#/components/schemas/{name}"
_EVERYWHERE = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
_SAMPLE_PARAMETERS = (
    ("name", "What the sample is called, as bytes, percent-encoded.", True),
    ("origin", "Where it comes from, as bytes, percent-encoded.", False),
)
_BOUNDS = {
    ("TaskQuery", "limit"): (0, MAX_ROWS),
    ("TaskQuery", "offset"): (0, HIGHEST),
    ("Reading", "max_bytes"): (0, MAX_READ_BYTES),
}
"""What is refused beyond what the types say."""


def document(operations: Sequence[Operation], version: str) -> dict[str, Any]:
    """The whole document, ready to be encoded."""
    types = [kind for operation in operations for kind in (operation.answer, operation.body) if kind is not None]
    kinds = [operation.parameters.kind for operation in operations]
    schemas, components = msgspec.json.schema_components([Problem, *types, *kinds], ref_template=_REFERENCE)
    problem, schema_of = schemas[0], dict(zip(types, schemas[1:], strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = {
            "operationId": operation.name,
            "summary": operation.summary,
            "parameters": [*_path_parameters(operation), *_query_parameters(operation, components)],
            "responses": {
                "200": _answer(operation, schema_of),
                **{str(status.value): _problem(status, problem) for status in sorted({*_EVERYWHERE, *operation.problems})},
            },
        }
        if operation.streams or operation.body is not None:
            media_type, schema = (BYTES, {}) if operation.streams else (JSON, schema_of[operation.body])
            described["requestBody"] = {"required": True, "content": {media_type: {"schema": schema}}}
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    for kind in kinds:
        components.pop(kind.__name__, None)
    for (name, field), (least, most) in _BOUNDS.items():
        components[name]["properties"][field] |= {"minimum": least, "maximum": most}
    _bound_integers(components)
    for name in _reached([schema_of[operation.body] for operation in operations if operation.body is not None], components):
        if "properties" in components[name]:
            components[name]["additionalProperties"] = False
    return {
        "openapi": OPENAPI,
        "info": {"title": "malbox-tui", "version": version, "description": f"A served engine; protocol {PROTOCOL}."},
        "paths": paths,
        "components": {"schemas": components},
    }


def _bound_integers(schema: Any) -> None:
    """A whole number that has no bounds has those of all."""
    if isinstance(schema, list):
        for inner in schema:
            _bound_integers(inner)
    elif isinstance(schema, dict):
        if schema.get("type") == "integer":
            schema.setdefault("minimum", -HIGHEST)
            schema.setdefault("maximum", HIGHEST)
        for inner in schema.values():
            _bound_integers(inner)


def _reached(schema: Any, components: dict[str, Any]) -> set[str]:
    """The names of all components that `schema` is made of."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        match waiting.pop():
            case {"$ref": str(reference)} if (name := reference.rpartition("/")[2]) not in found:
                found.add(name)
                waiting.append(components[name])
            case dict(inner):
                waiting += inner.values()
            case list(inner):
                waiting += inner
    return found


def _answer(operation: Operation, schema_of: dict[Any, Any]) -> dict[str, Any]:
    schema = {} if operation.answer is None else schema_of[operation.answer]
    return {"description": "The answer.", "content": {operation.media_type.partition(";")[0]: {"schema": schema}}}


def _problem(status: HTTPStatus, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": status.phrase, "content": {JSON: {"schema": schema}}}


def _path_parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", operation.path):
        schema = {"type": "integer", "minimum": 1, "maximum": 2**53 - 1} if name == "id" else {"type": "string"}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(operation: Operation, components: dict[str, Any]) -> Iterator[dict[str, Any]]:
    parameters = operation.parameters
    fields: dict[str, Any] = components[parameters.kind.__name__]["properties"]
    for name, schema in fields.items():
        if name in parameters.raw:
            schema = {"type": "string"}
        elif "anyOf" in schema:  # it may be left out; a query has no null
            (schema,) = (kind for kind in schema["anyOf"] if kind != {"type": "null"})
        yield {"name": name, "in": "query", "required": False, "schema": schema}
    if parameters.raw - fields.keys():
        for name, description, required in _SAMPLE_PARAMETERS:
            schema = {"type": "string", "minLength": int(required), "maxLength": MAX_NAME_BYTES}
            yield {"name": name, "in": "query", "required": required, "description": description, "schema": schema}
