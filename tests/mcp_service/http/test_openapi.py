"""The OpenAPI document is valid, complete, and what the pages answer fits it."""

from __future__ import annotations

from typing import Any

import aiohttp
import orjson
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from capdex.manifest import editor_schema
from capdex_service.http import openapi
from capdex_service.http.v1 import QUESTIONS

DOCUMENT: dict[str, Any] = orjson.loads(openapi.document())


def test_the_document_is_valid_openapi() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_every_page_is_in_the_document() -> None:
    assert DOCUMENT["paths"].keys() >= QUESTIONS.keys()
    operations = [path["get"]["operationId"] for path in DOCUMENT["paths"].values()]
    assert len(set(operations)) == len(operations)


async def test_a_node_serves_the_document(http: aiohttp.ClientSession) -> None:
    async with http.get("/openapi.json") as answer:
        assert await answer.json() == DOCUMENT
        assert "ETag" in answer.headers


async def test_a_default_of_the_document_may_be_sent_with_any_other_parameter(
    http: aiohttp.ClientSession,
) -> None:
    listed = DOCUMENT["paths"]["/v0.1/servers"]["get"]["parameters"]
    sent = {x["name"]: x["schema"]["default"] for x in listed if "default" in x["schema"]}
    sent["updated_since"] = "2026-01-01T00:00:00Z"
    async with http.get("/v0.1/servers", params=sent) as answer:
        assert answer.status == 200


async def test_a_node_serves_the_schema_of_package_files(http: aiohttp.ClientSession) -> None:
    async with http.get(editor_schema.PATH) as answer:
        assert answer.status == 200
        assert answer.content_type == "application/json"
        assert await answer.json() == editor_schema.document()


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        (
            "/v1/resolve?uri=did:nuwa:cap:guide&include=package,tools,prompt,schema,history",
            "Resolution",
        ),
        ("/v1/search?q=place&facets=domain,tag", "Results"),
        ("/v1/search?q=place&detail=full", "Results"),
        ("/v1/route?message=where%20is%20the%20place", "Routes"),
        ("/v1/capabilities?limit=50", "Manifests"),
        ("/v1/describe?capability_id=did:nuwa:cap:guide", "Manifest"),
        ("/v1/describe?capability_id=did:nuwa:cap:guide%23ask", "Manifest"),
        ("/v1/cmp", "Level"),
        ("/v1/cmp?level=manifests&of=travel", "Level"),
        ("/v1/cmp?level=capabilities&of=guide", "Level"),
        ("/v1/cmp?level=schema&of=guide", "Level"),
        ("/v1/cmp?level=schema&of=guide%23ask", "Level"),
        ("/v1/cmp?level=examples&of=guide", "Level"),
        ("/v1/changes", "Changes"),
        ("/c/guide.json", "Name"),
        ("/v0.1/servers?include_deleted=true", "Servers"),
        ("/v0.1/servers/did.nuwa.cap%2Fguide/versions", "Servers"),
        ("/v0.1/servers/did.nuwa.cap%2Fguide/versions/latest", "Server"),
        ("/v1/resolve", "Problem"),
        ("/c/nobody.json", "Problem"),
    ],
)
async def test_answers_fit_their_schema_and_say_nothing_else(
    tools_http: aiohttp.ClientSession, path: str, schema: str
) -> None:
    async with tools_http.get(path) as answer:
        body = await answer.json(content_type=None)
    closed = _closed(DOCUMENT["components"]["schemas"][schema])
    Draft202012Validator(closed).validate(body)


def _closed(schema: Any) -> Any:
    """A schema whose objects have no other properties than those it names."""
    if isinstance(schema, list):
        return [_closed(x) for x in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        copy.setdefault("additionalProperties", False)
    return copy
