"""OpenAPI documents become tools that call by HTTP, and what is not carried is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, InvalidInput, UsageError
from capdex.manifest.manifest import Manifest, read
from capdex_publisher.authoring.imports.draft import Imported, write_package
from capdex_publisher.authoring.imports.openapi.tool import import_openapi
from capdex_publisher.authoring.imports.source import parse

ManifestOf = Callable[[Imported], Manifest]


def imported(document: Any, *operations: str, base: str = "") -> Imported:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return write_package(import_openapi(data, "api", operations, base=base))


def rows(package: Imported) -> list[tuple[str, ...]]:
    """The report, as its cells."""
    return [tuple(x.to_json().values()) for x in package.notes]


def api(operation: dict[str, Any], method: str = "get", path: str = "/x", **more: Any) -> Any:
    return {
        "openapi": "3.0.3",
        "info": {"title": "Rain Service"},
        "servers": [{"url": "https://rain.dev/v1/"}],
        "paths": {path: {method: operation}},
        **more,
    }


def test_public_documents_become_packages(
    openapi_documents: dict[str, bytes], manifest_of: ManifestOf
) -> None:
    trek = manifest_of(imported(openapi_documents["star-trek"], "GET /animal/search"))
    [tool] = trek.tools
    assert tool.name == "GET_animal_search"
    assert tool.parameters["properties"]["pageNumber"]["type"] == "integer"
    # Its server is named by http, which a package may not call.
    assert trek.bindings[tool.name]["url"] == "https://api.example.com/api/v1/rest/animal/search"
    travel = imported(openapi_documents["train-travel"], "get-trips", "create-booking")
    package = manifest_of(travel)
    trips, booking = package.tools
    assert trips.parameters["required"] == ["origin", "destination", "date"]
    assert "id" not in booking.parameters["properties"]  # the service sets it
    assert package.bindings["create-booking"]["type"] == "http_post"
    assert package.bindings["create-booking"]["auth"] == {"type": "bearer", "secret": "OAUTH2"}
    uspto = manifest_of(imported(openapi_documents["uspto"], "list-searchable-fields"))
    [fields] = uspto.tools
    assert set(fields.parameters["required"]) == {"dataset", "version"}
    url = uspto.bindings["list-searchable-fields"]["url"]
    assert url.endswith("/{dataset}/{version}/fields")


@pytest.mark.parametrize("name", ["star-trek", "petstore", "parameters", "circular", "uspto"])
def test_each_operation_becomes_a_valid_package_or_a_reason(
    openapi_documents: dict[str, bytes], manifest_of: ManifestOf, name: str
) -> None:
    data = openapi_documents[name]
    paths = parse(data, name)["paths"]
    names = [
        f"{method.upper()} {path}"
        for path, item in paths.items()
        for method in item
        if method in ("get", "post", "put", "delete")
    ][:12]
    made = 0
    for operation in names:
        try:
            package = imported(data, operation)
        except InvalidInput as error:
            assert error.why  # noqa: PT017 - or a package
            continue
        assert len(manifest_of(package).tools) == 1
        made += 1
    assert made > 0


def test_arguments_go_where_the_document_says(manifest_of: ManifestOf) -> None:
    operation = {
        "operationId": "setRain",
        "parameters": [
            {"name": "pet-id", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "pet-id", "in": "query", "schema": {"type": "integer"}},
            {"name": "Accept-Language", "in": "header", "schema": {"type": "string"}},
            {"name": "Accept", "in": "header", "schema": {"type": "string"}},
            {"name": "session", "in": "cookie", "schema": {"type": "string"}},
        ],
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/s"}}}},
    }
    components = {
        "s": {
            "type": "object",
            "required": ["mm"],
            "properties": {
                "mm": {"type": "number", "nullable": True, "minimum": 0, "exclusiveMinimum": True},
                "id": {"type": "string", "readOnly": True},
                "next": {"$ref": "#/components/s"},
            },
        }
    }
    package = imported(api(operation, "post", "/p/{pet-id}", components=components))
    manifest = manifest_of(package)
    [tool] = manifest.tools
    assert tool.parameters["properties"]["mm"] == {
        "type": ["number", "null"],
        "exclusiveMinimum": 0,
    }
    assert tool.parameters["required"] == ["pet-id", "mm"]
    assert manifest.bindings["setRain"] == {
        "type": "http_post",
        "url": "https://rain.dev/v1/p/{pet-id}",
        "parameters": {
            "pet-id_query": {"in": "query", "name": "pet-id"},
            "Accept-Language": {"in": "header", "name": "Accept-Language"},
        },
    }
    said = " | ".join(map(str, package.notes))
    for word in ("header Accept left out", "cookie session left out"):
        assert word in said


def body_of(schema: Any) -> dict[str, Any]:
    """The operation `send`, whose body must be JSON of a schema."""
    content = {"application/json": {"schema": schema}}
    return {"operationId": "send", "requestBody": {"required": True, "content": content}}


TEXT: Any = {"type": "string"}
QUERY: Any = {"name": "q", "in": "query"}


@pytest.mark.parametrize(
    ("schema", "arguments", "required"),
    [
        (
            {"allOf": [{"properties": {"a": TEXT}, "required": ["a"]}], "properties": {"b": TEXT}},
            {"a": TEXT, "b": TEXT},
            ["a"],
        ),
        (
            {"allOf": [{"allOf": [{"properties": {"a": TEXT}}]}, {"required": ["a"]}]},
            {"a": TEXT},
            ["a"],
        ),
    ],
)
def test_a_body_has_the_arguments_of_all_that_its_schema_is_composed_of(
    manifest_of: ManifestOf, schema: Any, arguments: Any, required: Any
) -> None:
    package = imported(api(body_of(schema), "post"))
    [tool] = manifest_of(package).tools
    assert tool.parameters["properties"] == arguments
    assert tool.parameters.get("required", []) == required


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": TEXT},
        {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"a": TEXT}}]},
        {"properties": {"a": TEXT, "b": TEXT}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"type": ["object", "null"], "properties": {"a": TEXT}},
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "properties": {"a": TEXT}, "patternProperties": {"^x-": TEXT}},
        {"allOf": [{"properties": {"a": TEXT}}, {"properties": {"a": {"minLength": 2}}}]},
        {"type": "object"},
    ],
)
def test_any_other_body_is_one_argument_with_its_schema(
    manifest_of: ManifestOf, schema: Any
) -> None:
    manifest = manifest_of(imported(api(body_of(schema), "post")))
    assert manifest.tools[0].parameters == {
        "type": "object",
        "properties": {"body": schema},
        "required": ["body"],
    }
    binding = manifest.bindings["send"]
    assert (binding["type"], binding["body"]) == ("http", {"parameter": "body"})


@pytest.mark.parametrize("kind", ["multipart/form-data", "application/octet-stream", "text/xml"])
def test_a_body_that_is_neither_json_nor_a_form_is_refused_if_it_must_be_sent(kind: str) -> None:
    operation = body_of({})
    operation["requestBody"]["content"] = {kind: {"schema": {}}}
    with pytest.raises(InvalidInput) as told:
        imported(api(operation, "post"))
    assert f"send: body ({kind}) refused: a binding sends JSON or a form" in told.value.why
    operation["requestBody"]["required"] = False
    package = imported(api(operation, "post"))
    assert ("send", "body", "left out", kind) in {x[:4] for x in rows(package)}


def test_what_another_file_describes_is_named(manifest_of: ManifestOf) -> None:
    elsewhere: Any = {"$ref": "other.yml#/x"}
    schema = api({"operationId": "rain", "parameters": [{**QUERY, "schema": elsewhere}]})
    package = imported(schema)
    assert manifest_of(package).tools[0].parameters["properties"] == {"q": {}}
    assert ("rain", "schema word $ref", "left out", "other.yml#/x") in {
        x[:4] for x in rows(package)
    }
    for document, name in (
        (api(elsewhere), "GET /x"),
        (api({"operationId": "rain", "parameters": [elsewhere]}), "rain"),
        (api({"operationId": "rain", "requestBody": elsewhere}, "post"), "rain"),
        (api({}) | {"paths": {"/x": elsewhere}}, ""),
    ):
        with pytest.raises(InvalidInput) as told:
            imported(document, *filter(None, [name]))
        assert "other.yml#/x" in told.value.why
        assert "one file" in told.value.fix


def test_a_path_may_be_described_in_the_components(manifest_of: ManifestOf) -> None:
    shared = {"pathItems": {"rain": {"get": {"operationId": "rain"}}}}
    document = api({}, components=shared) | {
        "paths": {"/rain": {"$ref": "#/components/pathItems/rain"}}
    }
    assert manifest_of(imported(document, "rain")).bindings["rain"]["url"].endswith("/v1/rain")


@pytest.mark.parametrize(
    ("scheme", "auth"),
    [
        ({"type": "http", "scheme": "bearer"}, {"type": "bearer", "secret": "RAIN_KEY"}),
        ({"type": "http", "scheme": "basic"}, {"type": "basic", "secret": "RAIN_KEY"}),
        (
            {"type": "apiKey", "in": "header", "name": "X-Key"},
            {"type": "header", "name": "X-Key", "secret": "RAIN_KEY"},
        ),
        (
            {"type": "apiKey", "in": "query", "name": "key"},
            [{"type": "query", "name": "key", "secret": "RAIN_KEY"}],
        ),
        (
            {"type": "apiKey", "in": "cookie", "name": "sid"},
            [{"type": "cookie", "name": "sid", "secret": "RAIN_KEY"}],
        ),
        (
            {
                "type": "oauth2",
                "flows": {"clientCredentials": {"tokenUrl": "https://rain.dev/t", "scopes": {}}},
            },
            {"type": "bearer", "secret": "RAIN_KEY"},
        ),
    ],
)
def test_a_secret_is_named_and_never_asked_of_a_model(
    manifest_of: ManifestOf, scheme: Any, auth: Any
) -> None:
    schemes = {"securitySchemes": {"rain-key": scheme}}
    more: Any = {"components": schemes, "security": [{"rain-key": ["read"]}]}
    package = imported(api({"operationId": "rain"}, **more))
    assert manifest_of(package).bindings["rain"]["auth"] == auth


def test_authentication_that_no_binding_carries_is_refused_or_another_is_taken(
    manifest_of: ManifestOf,
) -> None:
    schemes = {
        "a": {"type": "mutualTLS"},
        "b": {"type": "http", "scheme": "basic"},
        "c": {"type": "http", "scheme": "bearer"},
    }
    components = {"securitySchemes": schemes}
    operation: Any = {"operationId": "rain", "security": [{"a": []}]}
    with pytest.raises(InvalidInput) as told:
        imported(api(operation, components=components))
    assert "security a (mutualTLS) refused" in told.value.why
    operation["security"] = [{"a": []}, {"b": [], "c": []}, {"b": []}, {"c": []}]
    package = imported(api(operation, components=components))
    assert manifest_of(package).bindings["rain"]["auth"] == {"type": "basic", "secret": "B"}
    said = {x[1]: x[4] for x in rows(package)}
    assert said["security b and c"] == "two secrets would be sent in one place"
    assert said["security c"] == "a tool authenticates in one way"


def test_a_signature_of_each_request_is_no_secret() -> None:
    scheme = {"type": "apiKey", "in": "header", "name": "Authorization"}
    scheme["x-amazon-apigateway-authtype"] = "awsSigv4"
    document = api({"operationId": "rain", "security": [{"sigv4": []}]})
    with pytest.raises(InvalidInput) as told:
        imported(document | {"components": {"securitySchemes": {"sigv4": scheme}}})
    assert "each request needs a signature of its own" in told.value.why


def test_a_relative_server_is_of_the_documents_host(manifest_of: ManifestOf) -> None:
    document = api({"operationId": "rain"}) | {"servers": [{"url": "/v2"}]}
    package = imported(document, base="https://rain.dev/openapi.json")
    assert manifest_of(package).bindings["rain"]["url"] == "https://rain.dev/v2/x"
    without = imported(document)
    assert without.to_edit[-1].endswith('url: "https://api.example.com/v2/x"')


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("./", "https://api.example.com/x"),
        ("../v2", "https://api.example.com/v2/x"),
        ("https://[x/v2", "https://api.example.com/x"),
    ],
)
def test_a_server_that_names_no_host_is_a_line_to_edit(server: str, url: str) -> None:
    package = imported(api({"operationId": "rain"}) | {"servers": [{"url": server}]})
    assert package.to_edit[-1].endswith(f'url: "{url}"')


def test_the_address_that_a_document_says_of_itself_is_that_of_its_servers(
    manifest_of: ManifestOf,
) -> None:
    own = {"openapi": "3.2.0", "$self": "/apis/rain.json", "servers": [{"url": "v2"}]}
    package = imported(api({"operationId": "rain"}) | own, base="https://rain.dev/docs.json")
    assert manifest_of(package).bindings["rain"]["url"] == "https://rain.dev/apis/v2/x"


def test_several_operations_must_be_chosen_by_name() -> None:
    two = api({"operationId": "rain"}) | {
        "paths": {"/a": {"get": {"operationId": "rain"}, "head": {}}}
    }
    with pytest.raises(UsageError) as told:
        imported(two)
    assert told.value.why == "the document has 2: rain, HEAD /a"
    assert told.value.fix == "--operation 'rain', once for each"
    with pytest.raises(UsageError, match="no operation 'snow'"):
        imported(two, "snow")
    with pytest.raises(InvalidInput, match="none of these operations") as told_put:
        imported(two, "HEAD /a")
    assert "a package cannot send HEAD" in told_put.value.why


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "not an OpenAPI 3 or"),
        (b'{"swagger": "1.2"}', "not an OpenAPI 3 or"),
        (b'{"swagger": "3.0", "host": "rain.dev"}', "not an OpenAPI 3 or"),
        (b'{"openapi": "3.0.0", "paths": 1}', "has no operations"),
        (b"{", "cannot be read"),
        (b"a: [", "cannot be read"),
        (b"[" * 5_000 + b"]" * 5_000, "cannot be read"),
        (b"a: &a [*a]", "cannot be read"),
    ],
)
def test_what_is_no_openapi_document_is_named(data: bytes, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        imported(data)


@pytest.mark.parametrize(("levels", "why"), [(5, "too large"), (11, "with its aliases")])
def test_aliases_that_grow_are_left_out(levels: int, why: str) -> None:
    lines = ["openapi: 3.0.0", "x: &a0 {type: object, properties: {a: {type: string}}}"]
    for i in range(1, levels + 1):
        refs = ", ".join(f"p{n}: *a{i - 1}" for n in range(10))
        lines.append(f"x{i}: &a{i} {{type: object, properties: {{{refs}}}}}")
    parameters = f"[{{in: query, name: q, schema: *a{levels}}}]"
    lines.append(f"paths: {{/a: {{get: {{parameters: {parameters}}}}}}}")
    with pytest.raises(InvalidInput) as told:
        imported("\n".join(lines).encode())
    assert why in told.value.why


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["object"]),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "required", "$ref", "schema", "name", "in", "content", "get"]
            )
            | st.text(max_size=5),
            below,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(values, values, values, values)
def test_any_document_gives_a_package_or_a_typed_error(
    operation: Any, parameters: Any, components: Any, servers: Any
) -> None:
    base = operation if isinstance(operation, dict) else {}
    document = api({**base, "parameters": parameters}, servers=servers, components=components)
    try:
        text = imported(document).text
    except CapdexError as error:
        assert error.message  # noqa: PT017 - or a package
        return
    assert read(text.encode()).manifest is not None
