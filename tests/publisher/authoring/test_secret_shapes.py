"""Texts that look like secrets: keys of real services by their shapes, and what only seems so."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from capdex.errors import InvalidInput
from capdex.manifest.manifest import read
from capdex.problems import Reason, Severity
from capdex_publisher.authoring.lint import lint, refuse_mistakes
from capdex_publisher.authoring.scaffold import PackageKind, scaffold
from capdex_publisher.authoring.secret_shapes import secret_like
from capdex_publisher.authoring.validate import PackageFile, validate

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.acp.yaml"))
MIXED = "b7Kq2Xv9Tz4Lm8Rw3Yp6Nc1Hd5Js0Fg7Ae2Uo9Ik"  # of no service, as is everything below
UUID = "3f2c1f0e-8a4b-4c57-9d1e-3b5a7c9e0f12"
HEX = "8f14e45fceea167a5a36dedd4bea2543"
# In two parts, so that no scanner of this repository takes them for keys.
SHAPES = {
    "github": "ghp" + "_" + MIXED[:36],
    "github fine-grained": "github" + "_pat_" + MIXED + "_" + MIXED,
    "aws": "AKI" + "AQ7T2ZK4XW9LM3VRP",
    "openai": "sk" + "-proj-" + MIXED,
    "deepseek": "sk" + "-" + HEX,
    "anthropic": "sk" + "-ant-api03-" + MIXED,
    "stripe": "sk" + "_live_" + MIXED[:24],
    "stripe test": "sk" + "_test_" + MIXED[:24],
    "google": "AIz" + "a" + MIXED[:35],
    "slack": "xox" + "b-2401938475-" + MIXED[:24],
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiJqb2huIn0.T9kWq3Zr7Yb1Nx5Lc8Vm2Pd4",
    "pem": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEowIBAAKCAQEA7Kq2Xv9Tz4Lm8Rw3Yp6Nc1Hd5Js0",
    "url": "postgres" + "://tides:k3Yq9Zp2@db.tides.dev/x",
    "url without a user": "redis" + "://:k3Yq9Zp2@cache.tides.dev",
    "pem in json": "-----BEGIN " + "PRIVATE KEY-----\\nMIIEowIBAAKCAQEA7Kq2Xv9Tz4Lm8Rw3Yp",
    "pgp": "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\n\nlQOYBF1uZ9kBCADJx8yT",
    "telegram": "7104" + "938275:AA" + MIXED[:33],
    "discord bot": "MTA1ODQ2MzI4NzE2NDM4" + "MjcyOA.GZx8Kq." + MIXED[:38],
    "firecrawl": "f" + "c-" + HEX,
    "databricks": "dap" + "i" + HEX,
    "gitlab trigger": "glp" + "tt-" + HEX + "fceea167",
    "airtable": "pa" + "t" + MIXED[:14] + "." + HEX + HEX,
    "rapidapi": "cu" + "rl -H 'x-rapidapi-key: 8f14e45fcemsha167a5a36dedd4bp1e2543jsnd41d8cd98f00'",
    "azure api": "cu" + f"rl -H 'Ocp-Apim-Subscription-Key: {HEX}'",
    "discord": "https://discord.com/" + "api/webhooks/1048302958104759203/" + MIXED + MIXED,
    "slack workflow": "https://hooks.slack.com/" + "workflows/T0Q8/A0Q8/30492/" + MIXED,
    "azure": "Account" + "Key=" + MIXED + "==",
    "digitalocean": "dop" + "_v1_" + HEX + HEX,
    "curl": "cu" + "rl -s -u tides:k3Yq9Zp2 https://a.dev",
    "curl without digits": "cu" + "rl -k \\\n  -u tides:kYqVtkZpECriaLRi",
    "curl in quotes": "cu" + "rl --user 'j.tides:k3Y@q9Zp#2' https://a.dev",
    "curl without a user": "cu" + 'rl -u ":k3Yq9Zp2!t" https://a.dev',
    "age": "AGE-SECRET" + "-KEY-1" + MIXED.upper() + MIXED.upper()[:20],
    "gitlab runner": "glr" + "t-" + MIXED[:20],
    "aws bedrock": "ABS" + "K" + MIXED * 3,
    "azure client": "k3Y" + "8Q~" + MIXED[:34],
    "teams": "https://tides.webhook.office.com/"
    + f"webhookb2/{UUID}@{UUID}/IncomingWebhook/{HEX}/",
    "facebook": "911602140448" + "729|" + MIXED[:27],
    "alibaba": "LTA" + "I" + MIXED[:20],
    "pulumi": "pu" + "l-" + HEX + HEX[:8],
    "dynatrace": "dt0" + "c01." + MIXED[:24] + "." + MIXED + MIXED[:24],
    "nothing but chance": MIXED,
}


def found(value: Any) -> list[str]:
    return [".".join(map(str, path)) for path, _ in secret_like(value)]


@pytest.mark.parametrize("key", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("text", ["{}", "Call it with {} and wait.", "https://a.dev/x?q=1&r={}"])
def test_a_key_of_a_known_shape_is_found_wherever_it_stands(key: str, text: str) -> None:
    value = {"prompt": text.format(key), "examples": [{"input": {"city": text.format(key)}}]}
    assert found(value) == ["prompt", "examples.0.input.city"]


@pytest.mark.parametrize("key", SHAPES.values(), ids=SHAPES)
def test_a_message_never_has_more_than_the_first_characters(key: str) -> None:
    ((_, why),) = secret_like({"prompt": key})
    assert key[:12] not in why


@pytest.mark.parametrize(
    "value",
    [
        {"url": f"https://a.dev/x?api_key={HEX}"},
        {"url": f"https://a.dev/x?q={{q}}&appid={HEX}"},
        {"url": f"https://a.dev/x?token={HEX}#top"},
        {"url": f"https://a.dev/x?key={HEX}"},
        {"url": "https://a.dev/x?password=correcthorse"},
        {"X-API-Key": HEX},
        {"X-Auth-Token": f"Token {HEX}"},
        {"Ocp-Apim-Subscription-Key": HEX},
        {"prompt": f"Send api_key={HEX} with each call."},
        {"prompt": f'Send {{"access_token": "{HEX}"}}.'},
        {"prompt": f"The password is {MIXED[:14]} for now."},
        {"prompt": "private_key=DRpbCBMxVnDK7maPM5tGv6MvB3v1sRMC86PZ8okm21hy"},
        {
            "prompt": "Page "
            + urlsafe_b64encode(b'{"k": "' + HEX.encode() + b'", "id": 12}').decode()
        },
        {"prompt": urlsafe_b64encode(b"tides:" + HEX.encode()).decode().rstrip("=")},
        {"prompt": urlsafe_b64encode(HEX[:30].encode()).decode()},
        {"input": {"client_secret": HEX}},
        {"prompt": f"curl -H 'Authorization: Bearer {HEX}' https://a.dev"},
        {"prompt": f"Send Authorization: token {HEX}."},
        {"properties": {"api_key": {"type": "string", "default": HEX}}},
        {"properties": {"password": {"const": "correcthorse"}}},
        {"properties": {"api_key": {"enum": [HEX]}}},
        {"properties": {"token": {"examples": [HEX]}}},
        {"tool_bindings": {"tides": {"url": f"https://a.dev/v1/{MIXED[:24]}/tides"}}},
    ],
    ids=json.dumps,
)
def test_a_secret_is_found_by_its_name(value: Any) -> None:
    assert len(found(value)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "YOUR_API_KEY",
        "https://a.dev/x?api_key=YOUR_API_KEY&appid={appid}&token=<token>&key=$KEY",
        "https://a.dev/x?api_key=DEMO_KEY",
        "link=[link]&link_password=[password]",
        "https://a.dev/x?key=population_total&token=next",
        "api_key: 32-character hex string",
        "password: at least 12 characters, 3 of them digits",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "sk-" + "x" * 40,
        "ghp_" + "x" * 36,
        "6f2c1f0e-8a4b-4c57-9d1e-3b5a7c9e0f12",
        "id=6f2c1f0e-8a4b-4c57-9d1e-3b5a7c9e0f12",
        HEX,
        f"https://a.dev/files?id={HEX}",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "0x5FbDB2315678afecb367f032d93F642f64180aa3",
        "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
        "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPbdG",
        "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp",
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "getTheForecastOfTheCityInTheNextDays2",
        "https://user:pass@example.org/",
        "https://user:token@git.rain.dev/rain.git",
        "postgres://postgres:postgres@localhost:5432/rain",
        "sk-estimator-random-forest-2024-classifier",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9l"
        "IiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
        "redis://:password1@example.org/",
        "curl -u admin:password https://a.dev; curl -u $USER:$PASS https://a.dev",
        "BetaManagedAgentsAgentToolset20260401Params",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "https://a.dev/d/1aBcD2eFgH3iJkL4mNoP5qRsT6uVwX7yZ8/edit",
        "did:nuwa:state:reading-list#v1",
        "xoxb-your-bot-token and xoxo-a-b-c-d-1-of-the-meeting",
        "hf_theHandlerOfAllTheFilesThatTheUserOpens",
        "postgres://tides:test@localhost/tides and redis://a:k3Yq9Zp2@127.0.0.1",
        'user = {"password": "TidePassword123!"}; const API_KEY = "sk_live_abc123xyz"',
        "token = base64.b64encode2bytes(raw1).decode()",
        "pay to DRpbCBMxVnDK7maPM5tGv6MvB3v1sRMC86PZ8okm21hy",  # 32 bytes in base58
        "pay to 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2 or TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
        'SPL_TOKEN="DRpbCBMxVnDK7maPM5tGv6MvB3v1sRMC86PZ8okm21hy"',
        'INPUT_TOKEN="0x5FbDB2315678afecb367f032d93F642f64180aa3"',
        "https://photos.a.dev/1?ixid="
        + urlsafe_b64encode(b"2|1207|0|search|8|tides|en|999").decode(),
        "curl -u https://a.dev/v1/tides; curl --user-agent tides:Version2 https://a.dev",
    ],
)
@pytest.mark.parametrize("name", ["prompt", "url", "Accept"])
def test_what_is_no_secret_is_not_named(name: str, text: str) -> None:
    assert found({name: text}) == []


def test_names_of_secrets_and_words_under_such_names_are_no_secrets() -> None:
    auth = {"type": "bearer", "secret": "WEATHER_API_KEY_2", "token": "a token of the user"}
    schema = {"properties": {"password": {"type": "string"}}, "required": ["password"]}
    mapped = {"token": {"in": "query", "name": "access_token"}}
    assert found({"auth": auth, "schema": schema, "parameters": mapped}) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_no_example_holds_a_secret(path: Path) -> None:
    assert found(read(path.read_bytes()).yaml.value) == []


def test_a_secret_is_an_error_of_validate_and_publish_unless_it_is_named() -> None:
    text = scaffold("tea", description="T.", kind=PackageKind.PROMPT)
    data = text.replace("You help", f"Send api_key={HEX}. You help").encode()
    validation = validate(PackageFile("tea.acp.yaml", data))
    (error,) = [x for x in validation.problems if x.code is Reason.LINT_SECRET_VALUE]
    assert (error.severity, error.path, validation.valid) == (Severity.ERROR, "prompt", False)
    assert HEX not in error.message
    with pytest.raises(InvalidInput, match="seems to hold a secret") as told:
        refuse_mistakes(lint(read(data)))
    assert "--allow-secret-like 'prompt'" in told.value.fix
    (warning,) = lint(read(data), ["prompt"])
    assert warning.severity is Severity.WARNING
    refuse_mistakes([warning])


@pytest.mark.parametrize("line", ["nonsense: [1, 2]\n", "tools: 5\n"])
def test_a_secret_is_said_beside_the_error_that_makes_the_package_invalid(line: str) -> None:
    text = scaffold("tea", description="T.", kind=PackageKind.PROMPT)
    text = text.replace("did:nuwa:cap:tea@", "did:nuwa:cap:Tea@")
    text = text.replace("You help", f"Send api_key={HEX}. You help") + f"# token={MIXED}\n{line}"
    validation = validate(PackageFile("tea.acp.yaml", text.encode()))
    assert validation.manifest is None
    errors = [x for x in validation.problems if x.severity is Severity.ERROR]
    said = [x for x in errors if x.code is Reason.LINT_SECRET_VALUE]
    assert [x.path.partition("[")[0] for x in said] == ["prompt", "comments"]
    assert len(errors) > len(said)


@pytest.mark.parametrize("data", [b"\xff\xfe# token=x", b"[", b"a: &a [*a]", b"- 1", b""])
def test_what_is_no_package_is_looked_through_without_a_fault(data: bytes) -> None:
    assert not validate(PackageFile("tea.acp.yaml", data)).valid


def test_validate_says_how_to_allow_what_is_no_secret() -> None:
    text = scaffold("tea", description="T.", kind=PackageKind.PROMPT)
    (error,) = [
        x
        for x in lint(read(text.replace("You help", f"api_key={HEX} helps").encode()))
        if x.severity is Severity.ERROR
    ]
    assert error.hint.endswith("if it is no secret: --allow-secret-like 'prompt'")


def test_the_verdict_of_a_node_does_not_depend_on_it() -> None:
    text = scaffold("tea", description="T.", kind=PackageKind.PROMPT)
    plain, leaking = (
        validate(PackageFile("tea.acp.yaml", one.encode()))
        for one in (text, text.replace("You help", f"Send api_key={HEX}. You help"))
    )
    assert plain.verdict == leaking.verdict


@pytest.mark.load
@pytest.mark.parametrize("opening", ["eyJ-", "sk-", "SG.", "a://b", "curl -u ", "token: "])
def test_a_text_of_many_openings_takes_time_in_proportion_to_its_length(opening: str) -> None:
    started = time.process_time()
    assert found({"text": opening * 50_000}) == []
    assert time.process_time() - started < 3  # of the processor; it was half a minute


def test_a_comment_is_published_too() -> None:
    text = scaffold("tea", description="Tells.", kind=PackageKind.PROMPT)
    key = SHAPES["openai"]
    text = text.replace(
        "prompt: |", f"# headers: {{X-Api-Key: {MIXED[:20]}}}\nprompt: | # {key}\n  # {HEX}"
    )
    lines = [i for i, line in enumerate(text.splitlines(), 1) if "X-Api-Key" in line or key in line]
    problems = lint(read(text.encode()))
    assert [(x.code, x.path, x.line) for x in problems] == [
        (Reason.LINT_SECRET_VALUE, f"comments[{line}]", line) for line in lines
    ]
    assert {x.severity for x in problems} == {Severity.ERROR}
    allowed = lint(read(text.encode()), [f"comments[{line}]" for line in lines])
    assert {x.severity for x in allowed} == {Severity.WARNING}


def test_a_heading_of_a_prompt_is_no_second_place_of_a_secret() -> None:
    text = scaffold("tea", description="Tells.", kind=PackageKind.PROMPT)
    text = text.replace("prompt: |", f"prompt: |\n  # {SHAPES['openai']}")
    assert [x.path for x in lint(read(text.encode()))] == ["prompt"]
