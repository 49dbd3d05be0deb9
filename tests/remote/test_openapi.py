"""The OpenAPI document: it is whole, and the server keeps to it whatever it is sent."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from malbox_tui.model.commands import Action
from malbox_tui.model.events import EventBody
from tests.remote.fakes import Script, serving_script
from tests.remote.rig import Reporting, served
from tests.remote.unix_requests import BASE, unix_session

pytestmark = pytest.mark.slow

CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
EXAMPLES = 40


async def fetched(folder: Path) -> dict[str, Any]:
    async with serving_script(Script(), folder) as scene:
        reply = await (await scene.connect()).get("/openapi.json")
        document: dict[str, Any] = json.loads(reply.body)
        return document


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


async def test_every_type_that_is_named_is_described(tmp_path: Path) -> None:
    document = await fetched(tmp_path)
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references(document) - known == set()


async def test_every_command_and_every_event_is_told_apart_by_its_tag(tmp_path: Path) -> None:
    schemas = (await fetched(tmp_path))["components"]["schemas"]
    for union, holder, field, tag in ((Action, "Order", "action", "command"), (EventBody, "Event", "body", "event")):
        discriminator = schemas[holder]["properties"][field]["discriminator"]
        assert discriminator["propertyName"] == tag
        assert set(discriminator["mapping"]) == {kind.__name__ for kind in union.__args__}


async def test_the_table_of_the_protocol_is_what_is_served(tmp_path: Path) -> None:
    from malbox_tui.remote import protocol

    rows = [line.split("|")[1:3] for line in (protocol.__doc__ or "").splitlines() if line.startswith("| `/")]
    told = {(path.strip(" `"), method.strip().lower()) for path, method in rows} - {("/openapi.json", "get")}
    document = await fetched(tmp_path)
    assert {(path, method) for path, methods in document["paths"].items() for method in methods} == told


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
async def test_whatever_is_sent_the_answer_is_one_that_is_described(tmp_path: Path, mode: GenerationMode) -> None:
    document = await fetched(tmp_path)
    async with served(tmp_path, workers=1, runner=Reporting(tmp_path)) as rig:
        async with rig.asker() as asker:
            await asker.upload("name=x", b"x")
            await asker.until_ended(1)
        await asyncio.to_thread(explore, document, rig.socket, mode)
        async with rig.asker() as asker:
            assert (await asker.get("/health")).status == 200


def explore(document: dict[str, Any], socket: Path, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_dict(document)
    with unix_session(socket) as session:
        for found in schema.get_all_operations():
            operation = found.ok()
            try:
                cases = operation.as_strategy(generation_mode=mode)
            except schemathesis.errors.SchemathesisError:
                continue

            @settings(
                max_examples=EXAMPLES,
                derandomize=True,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=cases)
            def ask(case: schemathesis.Case) -> None:
                tame(case)
                response = case.call(base_url=BASE, session=session)
                case.validate_response(response, checks=CHECKS)

            with suppress(Unsatisfiable):  # there is nothing about it that could be wrong
                ask()


def tame(case: schemathesis.Case) -> None:
    """A stream ends, and the engine goes on."""
    if case.path == "/v1/events":
        case.query = {**(case.query or {}), "follow": "false"}
    action = case.body.get("action") if isinstance(case.body, dict) else None
    if isinstance(action, dict) and action.get("command") == "Shutdown":
        action["mode"] = "no such mode"
