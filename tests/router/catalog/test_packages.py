"""A verified package in the router: its tools called through the pipeline, on a real service."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from capdex import did, signing
from capdex.errors import InvalidInput
from capdex.ipld.cid import Cid
from capdex.package import VerifiedPackage, verify
from capdex.profiles import cap
from capdex.registry.events import Announcement
from capdex_router.bindings.build import Wiring, executor
from capdex_router.bindings.egress import Egress
from capdex_router.bindings.mcp import McpServices
from capdex_router.catalog.packages import skill
from capdex_router.policy.secrets import SecretFile, Secrets
from tests.router.simulated import Person, capabilities_of
from tests.router.small_runtime import Runtime

HOST = "api.weather.example"
KEY = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
PUBLISHER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
URI = "did:nuwa:cap:weather-reporter@1.0.0"
SECRET = "s3cret-of-no-service"  # noqa: S105 - of no service
CITY = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
OUTPUT = {
    "type": "object",
    "properties": {"sky": {"enum": ["clear", "cloudy"]}, "state": {"$ref": "#/schema"}},
    "required": ["sky"],
}
TEXT = {"type": "string"}
SCHEMAS: dict[str, dict[str, Any]] = {
    "plain": {"properties": {"city": TEXT}},
    "empty": {},
    "shut": {"properties": {"city": TEXT}, "additionalProperties": False},
    "package": {"$ref": "#/schema"},
    "composed": {
        "allOf": [{"$ref": "#/$defs/place"}, {"anyOf": [{"properties": {"unit": TEXT}}]}],
        "if": {"required": ["unit"]},
        "then": {"properties": {"digits": {"type": "integer"}}},
        "$defs": {"place": {"properties": {"city": TEXT}}, "other": {"properties": {"x": TEXT}}},
    },
    "patterns": {"patternProperties": {"^x-": TEXT}},
    "typed": {"properties": {"city": TEXT}, "additionalProperties": {"type": "integer"}},
    "open": {"allOf": [{"properties": {"city": TEXT}}, {"additionalProperties": True}]},
}
CLOSED = ("plain", "empty", "shut", "package", "composed", "patterns")
KINDS = ("http_get", "http_post")
TOOLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "forecast": (
        {"output_schema": OUTPUT},
        {
            "type": "http_get",
            "url": f"https://{HOST}/v1/{{place}}",
            "parameters": {
                "city": {"in": "path", "name": "place"},
                "days": {"in": "header", "name": "X-Days"},
            },
            "headers": {"accept": "application/geo+json", "X-Client": "capdex"},
            "auth": {"type": "header", "name": "X-API-Key", "secret": "WEATHER_API_KEY"},
        },
    ),
    "look": (
        {"annotations": {"read_only": True}},
        {"type": "http_post", "url": f"https://{HOST}/look"},
    ),
    "wipe": (
        {"annotations": {"destructive": True}},
        {"type": "http_get", "url": f"https://{HOST}/wipe"},
    ),
    **{
        name: (
            {"parameters": {"type": "object", **schema}},
            {"type": kind, "url": f"https://{HOST}/v1?action=read"},
        )
        for kind in KINDS
        for name, schema in ((f"{kind}_{name}", schema) for name, schema in SCHEMAS.items())
    },
    "service": (
        {"parameters": {"type": "object", "properties": {"city": TEXT}}},
        {"type": "mcp_service", "service_uri": f"https://{HOST}/mcp", "mcp_action": "forecast"},
    ),
    "agent": (
        {"parameters": {"type": "object", "properties": {"city": TEXT}}},
        {"type": "nuwa_a2a", "target_did": "did:web:agent.example", "service_method": "ask"},
    ),
}


@pytest.fixture(scope="module")
def package() -> VerifiedPackage:
    def tool(name: str) -> Any:
        function = {"name": name, "description": "It answers.", "parameters": CITY}
        # The same object twice would be written as an alias.
        return json.loads(json.dumps({"type": "function", "function": function | TOOLS[name][0]}))

    document = {
        "metadata": {"id": URI, "name": "Weather", "description": "The weather."},
        "schema": json.dumps(
            {"$id": "did:nuwa:state:weather#v1", "type": "object", "properties": {"note": TEXT}}
        ),
        "prompt": "Report.",
        "tools": [tool(name) for name in TOOLS],
        "tool_bindings": {name: binding for name, (_, binding) in TOOLS.items()},
    }
    author = did.did_url(did.did_key(KEY.public_key().public_bytes_raw()))
    text = yaml.safe_dump(document, sort_keys=False).encode()
    prepared = signing.prepare(text, author=author, publisher=did.caip10(31337, PUBLISHER))
    signature = signing.sign_ed25519(KEY, signing.signing_input(prepared, URI))
    data = signing.attach(prepared, signature)
    digest = hashlib.sha256(data).digest()
    return verify(Announcement(31337, PUBLISHER, URI, "1.0.0", str(Cid.of(data)), digest), data)


class Service:
    """A service on loopback: keeps the requests, and answers `reply`."""

    def __init__(self) -> None:
        self.seen: list[web.Request] = []
        self.reply: Any = {"sky": "clear"}

    async def answer(self, request: web.Request) -> web.Response:
        await request.read()  # and keep it
        self.seen.append(request)
        return web.json_response(self.reply)


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
async def run(
    package: VerifiedPackage,
    service: Service,
    tmp_path: Path,
    runtime: Callable[..., Runtime],
) -> AsyncIterator[Runtime]:
    """A runtime of the package, whose host is the service on loopback."""
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", service.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    secrets = Secrets(SecretFile(tmp_path / "secrets.json"))
    secrets.set("weather-reporter", HOST, "WEATHER_API_KEY", SECRET)
    egress = Egress(addresses={f"https://{HOST}": f"http://127.0.0.1:{port}"})
    wiring = Wiring(egress, secrets, McpServices(egress))
    found = capabilities_of(package, lambda one, tool: executor(one, tool, wiring=wiring))
    yield runtime(*found, redact=secrets.redact)
    await wiring.close()
    await runner.cleanup()


def uri(tool: str) -> str:
    return f"did:nuwa:cap:weather-reporter#{tool}"


def test_a_skill_has_the_manifest_of_the_registry(package: VerifiedPackage) -> None:
    assert skill(package).manifest() == cap.skill(package.manifest)
    assert skill(package).manifest()["tools"]


async def test_a_request_has_its_arguments_headers_and_secret_where_the_package_says(
    run: Runtime, service: Service
) -> None:
    found = await run.call(uri("forecast"), {"city": "São Paulo", "days": 3}, Person())
    assert found["output"] == {"sky": "clear"}
    (seen,) = service.seen
    assert seen.raw_path == "/v1/S%C3%A3o%20Paulo"
    sent = {"X-Days": "3", "X-Client": "capdex", "X-API-Key": SECRET}
    assert {name: seen.headers[name] for name in sent} == sent
    assert seen.headers.getall("Accept") == ["application/geo+json"]
    assert SECRET not in run.audit.read_text()


@pytest.mark.parametrize("value", ["a\r\nX-Days: 4", "é", "\x00"])
async def test_no_argument_ends_the_header_that_carries_it(
    value: str, run: Runtime, service: Service
) -> None:
    # The schema asks for a number: a text reaches the header only where the schema is wider.
    forecast = run.catalog.find(uri("forecast"))
    assert forecast.executor is not None
    found = await run.call(uri("forecast"), {"city": "Oslo", "days": value}, Person())
    assert found["error"]["code"] == "INVALID_INPUT"
    with pytest.raises(InvalidInput, match=r"printable|cannot be sent"):
        forecast.executor.requests({"city": "Oslo", "days": value})
    assert service.seen == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ("plain", {"city": "Oslo"}),
        ("package", {"note": "a"}),
        ("composed", {"city": "Oslo", "unit": "c", "digits": 2}),
        ("patterns", {"x-a": "1"}),
        ("typed", {"city": "Oslo", "more": 1}),
        ("open", {"city": "Oslo", "more": {"a": 1}}),
    ],
)
async def test_what_the_schema_names_or_allows_by_itself_is_sent(
    kind: str, schema: str, arguments: Any, run: Runtime, service: Service
) -> None:
    assert (await run.call(uri(f"{kind}_{schema}"), arguments, Person()))["ok"]
    (seen,) = service.seen
    sent = {**seen.query, **orjson.loads(await seen.read() or b"{}")}
    assert sent.keys() == {"action", *arguments}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        *((f"{kind}_{name}", {"callback": "x"}) for kind in KINDS for name in CLOSED),
        ("http_get_composed", {"city": "Oslo", "digits": 2}),  # without a unit there are none
        ("http_get_composed", {"x": "a"}),
        ("http_get_open", {"action": "delete"}),
        ("http_post_open", {"Action[]": "delete"}),
        ("service", {"city": "Oslo", "callback": "x"}),
        ("agent", {"city": "Oslo", "callback": "x"}),
    ],
)
async def test_an_argument_that_the_author_did_not_allow_is_named_before_a_person_is_asked(
    tool: str, arguments: Any, run: Runtime, service: Service
) -> None:
    person = Person()
    error = (await run.call(uri(tool), arguments, person))["error"]
    assert error["code"] == "INVALID_INPUT"
    assert list(arguments)[-1] in f"{error['message']} {error['details']}"
    assert (person.asked, service.seen) == ([], [])


@pytest.mark.parametrize("reply", [{}, {"sky": "green"}, [], {"sky": "clear", "state": 5}])
async def test_an_output_that_breaks_the_output_schema_of_its_package_is_refused(
    reply: Any, run: Runtime, service: Service
) -> None:
    service.reply = reply
    found = await run.call(uri("forecast"), {"city": "Oslo"}, Person())
    assert (found["error"]["code"], found["error"]["reason"]) == (
        "EXECUTION_FAILED",
        "OUTPUT_INVALID",
    )
    assert found["output"] is None


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param("look", id="a post that its package calls read-only"),
        pytest.param("wipe", id="a tool that its package calls destructive"),
    ],
)
async def test_what_may_destroy_something_is_asked_about_each_time(run: Runtime, tool: str) -> None:
    person = Person()
    for _ in range(2):
        assert (await run.call(uri(tool), {}, person))["ok"]
    assert ["may destroy" in question.summary for question in person.asked] == [True, True]


def test_the_router_describes_a_tool_as_the_registry_does(
    package: VerifiedPackage, run: Runtime
) -> None:
    same = (
        *("capability_id", "version", "kind", "name", "description", "required_permissions"),
        *("input_schema", "output_schema", "prompt_template", "resources"),
    )
    for tool in package.manifest.tools:
        ours, theirs = (
            run.catalog.find(uri(tool.name)).manifest(),
            cap.tool_manifest(package.manifest, tool),
        )
        assert {key: ours[key] for key in same} == {key: theirs[key] for key in same}
