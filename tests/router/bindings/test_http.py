"""Tools bound to URLs, against a real server."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from capdex.errors import CapdexError, Code, ExecutionFailed, InvalidInput, Refused, Unavailable
from capdex_router.bindings.egress import Egress
from capdex_router.bindings.http import HttpTool
from capdex_router.model.images import MAX_BYTES, without_images
from capdex_router.model.requests import HostRequest
from capdex_router.policy.secrets import Secrets

SECRET = "s3cret/value+1"  # noqa: S105 - of no service


@pytest.fixture
def make(local: Egress, secrets: Secrets) -> Any:
    def build(url: str, type_: str = "http_get", **fields: Any) -> HttpTool:
        binding = {"type": type_, "url": url, **fields}
        return HttpTool(binding, capability="weather", egress=local, secrets=secrets)

    return build


async def echo(request: web.Request) -> web.Response:
    return web.json_response(
        {
            "method": request.method,
            "path": request.raw_path,
            "body": (await request.read()).decode(),
            "authorization": request.headers.get("Authorization"),
            "key": request.headers.get("X-API-Key"),
        }
    )


def replying(body: bytes | str, content_type: str = "application/json", status: int = 200) -> Any:
    async def reply(_: web.Request) -> web.Response:
        data = body.encode() if isinstance(body, str) else body
        return web.Response(body=data, status=status, headers={"Content-Type": content_type})

    return reply


async def test_a_get_sends_arguments_as_its_query(serve: Any, make: Any) -> None:
    output = await make(await serve(echo) + "/v1/{town}").run(
        {"town": "São Paulo", "unit": "c"}, timeout_s=5
    )
    assert output["method"] == "GET"
    assert output["path"] == "/v1/S%C3%A3o%20Paulo?unit=c"


async def test_a_post_sends_arguments_as_json(serve: Any, make: Any) -> None:
    output = await make(await serve(echo), "http_post").run({"a": [1]}, timeout_s=5)
    assert (output["method"], json.loads(output["body"])) == ("POST", {"a": [1]})


def test_a_request_is_stated_before_it_is_made(make: Any) -> None:
    tool = make("http://127.0.0.1:8080/v1/{town}?k=v")
    assert tool.requests({"town": "Oslo"}) == [
        HostRequest("GET", "http", "127.0.0.1", 8080, "/v1/Oslo", "k=v")
    ]
    with pytest.raises(InvalidInput):
        tool.requests({"town": ".."})


@pytest.mark.parametrize(
    ("body", "kind", "output"),
    [
        ('{"a": 1}', "application/json", {"a": 1}),
        ('{"a": 1}', "application/problem+json; charset=utf-8", {"a": 1}),
        ("[1]", "application/json", {"value": [1]}),
        ("5", "application/json", {"value": 5}),
        ("hi", "text/plain", {"text": "hi", "content_type": "text/plain", "status": 200}),
        ("{", "application/json", {"text": "{", "content_type": "application/json", "status": 200}),
        ("", "application/json", {"text": "", "content_type": "application/json", "status": 200}),
        (
            b"\xe9",
            "text/plain; charset=iso-8859-1",
            {"text": "é", "content_type": "text/plain; charset=iso-8859-1", "status": 200},
        ),
        (
            b"%PDF-\xff",
            "application/pdf",
            {
                "text": "[6 bytes that are not text]",
                "content_type": "application/pdf",
                "status": 200,
            },
        ),
        (
            b"\xff",
            "text/plain; charset=zlib",
            {"text": "\ufffd", "content_type": "text/plain; charset=zlib", "status": 200},
        ),
        (b'\xef\xbb\xbf{"a": 1}', "application/json", {"a": 1}),
        ('{"a": "é"}'.encode("utf-16"), "application/json; charset=utf-16", {"a": "é"}),
        ('{"a": "é"}'.encode("latin-1"), "application/json;charset=ISO-8859-1", {"a": "é"}),
        (b'{"a": "\xe9"}', "application/json", {"a": "\ufffd"}),
    ],
)
async def test_a_reply_is_json_or_text(
    body: Any, kind: str, output: Any, serve: Any, make: Any
) -> None:
    assert await make(await serve(replying(body, kind))).run({}, timeout_s=5) == output


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (b"\xef\xbb\xbfa,b", "text/csv", "a,b"),
        (b"<a>\xe9</a>", "application/xml", "<a>\ufffd</a>"),
        ("<a>да</a>".encode("cp1251"), "application/xml; charset=windows-1251", "<a>да</a>"),
        ("10 €".encode("iso-8859-15"), 'text/plain; charset="iso-8859-15"', "10 €"),
        ("日本".encode("shift_jis"), "text/csv; charset=Shift_JIS; header=absent", "日本"),
        ("é".encode("latin-1"), "text/plain; charset=latin1", "é"),
        ("hé".encode("utf-16-be"), "text/plain; charset=UTF-16BE", "hé"),
        ("①".encode("cp932"), "text/csv; charset=MS932", "①"),
        (
            '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode("latin-1"),
            "application/xml",
            '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>',
        ),
        (
            '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode(),
            "application/xml; charset=utf-8",
            '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>',
        ),
        (
            b"<html><META http-equiv=a content='text/html; charset=Latin1'>\xe9",
            "text/html",
            "<html><META http-equiv=a content='text/html; charset=Latin1'>é",
        ),
        (b"<html><meta charset=latin1>\xe9", "text/html", "<html><meta charset=latin1>é"),
        (b"PK\xff", "application/vnd.openxmlformats", "[3 bytes that are not text]"),
        (b"RIFF\xff", "image/webp", "[5 bytes that are not text]"),
        (
            b"\x89PNG\r\n\x1a\n" + bytes(MAX_BYTES),
            "image/png",
            f"[{MAX_BYTES + 8} bytes that are not text]",
        ),
    ],
)
async def test_a_text_is_read_in_the_characters_that_the_service_names(
    body: bytes, kind: str, text: str, serve: Any, make: Any
) -> None:
    assert (await make(await serve(replying(body, kind))).run({}, timeout_s=5))["text"] == text


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b"[" * 200 + b"]" * 200, b"[" + b"1," * 600_000 + b"1]"]
)
async def test_json_that_is_deep_or_dense_is_a_failure(body: bytes, serve: Any, make: Any) -> None:
    with pytest.raises(ExecutionFailed) as failed:
        await make(await serve(replying(body))).run({}, timeout_s=10)
    assert failed.value.code is Code.EXECUTION_FAILED
    assert failed.value.details == {"sent": True}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        *((400, Code.EXECUTION_FAILED), (401, Code.EXECUTION_FAILED)),
        *((404, Code.EXECUTION_FAILED), (500, Code.SERVICE_UNAVAILABLE)),
        *((429, Code.RATE_LIMITED), (502, Code.SERVICE_UNAVAILABLE)),
        *((503, Code.SERVICE_UNAVAILABLE), (504, Code.SERVICE_UNAVAILABLE)),
    ],
)
async def test_a_status_from_400_on_is_an_error(
    status: int, code: Code, serve: Any, make: Any
) -> None:
    url = await serve(replying("x" * 9000, "text/plain", status))
    with pytest.raises(CapdexError) as failed:
        await make(url).run({}, timeout_s=5)
    assert failed.value.code is code
    assert failed.value.kind.cap == "EXECUTION_FAILED"
    sent = {"sent": True} if status in (500, 502, 504) else {}  # 503: it did nothing
    assert failed.value.details == {"status": status, "excerpt": "x" * 500} | sent


@pytest.mark.parametrize(
    ("status", "headers", "why", "fix"),
    [
        (429, {"Retry-After": "120"}, 'its retry-after is "120"', "try again later"),
        (503, {}, "", "try again later"),
        (400, {}, "the service refuses the request", "change the input"),
        (402, {}, "the service refuses the request", "a person must check its secret"),
        (
            401,
            {"WWW-Authenticate": "Bearer error=invalid_token"},
            'its www-authenticate is "Bearer error=invalid_token"',
            "a person must check its secret",
        ),
    ],
)
async def test_an_error_without_a_body_tells_its_headers_and_names_no_excerpt(
    status: int, headers: dict[str, str], why: str, fix: str, serve: Any, make: Any
) -> None:
    async def reply(_: web.Request) -> web.Response:
        return web.Response(status=status, headers=headers)

    with pytest.raises(CapdexError) as failed:
        await make(await serve(reply)).run({}, timeout_s=5)
    assert failed.value.details == {"status": status}
    assert (failed.value.why, failed.value.fix.partition(",")[0]) == (why, fix)


async def test_the_place_of_what_was_made_is_told_where_no_json_says_it(
    serve: Any, make: Any
) -> None:
    async def reply(_: web.Request) -> web.Response:
        return web.Response(status=201, headers={"Location": "/things/9"})

    output = await make(await serve(reply), "http_post").run({}, timeout_s=5)
    assert (output["status"], output["location"]) == (201, "/things/9")


@pytest.mark.parametrize(
    ("link", "told"),
    [
        ('</things?page=2>; rel="next"', {"link": '</things?page=2>; rel="next"'}),
        ("</style.css>; rel=preload", {}),
    ],
)
async def test_the_next_page_of_a_list_is_told(link: str, told: Any, serve: Any, make: Any) -> None:
    async def reply(_: web.Request) -> web.Response:
        return web.json_response([1, 2], headers={"Link": link})

    assert await make(await serve(reply)).run({}, timeout_s=5) == {"value": [1, 2], **told}


async def test_what_did_not_change_is_no_redirect(serve: Any, make: Any) -> None:
    async def reply(_: web.Request) -> web.Response:
        return web.Response(status=304)

    output = await make(await serve(reply)).run({}, timeout_s=5)
    assert (output["text"], output["status"]) == ("", 304)


@pytest.mark.parametrize("kind", ["image/png; q=1", "image/x-png", "application/octet-stream"])
async def test_an_image_is_content_that_a_host_can_show(kind: str, serve: Any, make: Any) -> None:
    png = b"\x89PNG\r\n\x1a\n\xff"
    output = await make(await serve(replying(png, kind))).run({}, timeout_s=5)
    _, shown = without_images(output)
    assert [(image.mime_type, b64decode(image.data)) for image in shown] == [("image/png", png)]


async def test_a_late_reply_is_a_timeout(serve: Any, make: Any) -> None:
    async def late(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(Unavailable) as failed:
        await make(await serve(late)).run({}, timeout_s=0.1)
    assert failed.value.kind.cap == "TIMEOUT"


@pytest.mark.parametrize(
    ("auth", "seen"),
    [
        ({"type": "bearer"}, {"authorization": "Bearer [secret]"}),
        ({"type": "basic"}, {"authorization": "Basic [secret]"}),
        ({"type": "header", "name": "X-API-Key"}, {"key": "[secret]"}),
    ],
)
async def test_a_secret_is_sent_and_never_shown(
    auth: Any, seen: Any, serve: Any, make: Any, secrets: Secrets
) -> None:
    secrets.set("weather", "127.0.0.1", "KEY", SECRET)
    output = await make(await serve(echo), auth={**auth, "secret": "KEY"}).run({}, timeout_s=5)
    assert seen.items() <= output.items()
    assert SECRET not in json.dumps(output)


async def test_a_secret_goes_to_its_own_host_and_capability_alone(
    serve: Any, make: Any, secrets: Secrets
) -> None:
    secrets.set("weather", "api.example.com", "KEY", SECRET)
    secrets.set("other", "127.0.0.1", "KEY", SECRET)
    served: list[str] = []

    async def count(request: web.Request) -> web.Response:
        served.append(request.path)
        return web.Response()

    tool = make(await serve(count), auth={"type": "bearer", "secret": "KEY"})
    with pytest.raises(Refused) as refused:
        await tool.run({}, timeout_s=5)
    assert refused.value.code is Code.UNAUTHENTICATED
    assert refused.value.kind.cap == "PERMISSION_DENIED"
    assert served == []


@pytest.mark.parametrize("padding", [0, 490])
async def test_a_secret_is_removed_from_an_error_before_it_is_cut(
    padding: int, serve: Any, make: Any, secrets: Secrets
) -> None:
    secrets.set("weather", "127.0.0.1", "KEY", SECRET)
    url = await serve(replying("x" * padding + SECRET, "text/plain", 403))
    with pytest.raises(ExecutionFailed) as failed:
        await make(url, auth={"type": "header", "secret": "KEY", "name": "X-Key"}).run(
            {}, timeout_s=5
        )
    assert SECRET[:9] not in json.dumps(failed.value.to_json())


@pytest.mark.parametrize("host", ["xn--bcher-kva.example", "xn--99999999.example"])
async def test_a_secret_is_bound_to_the_host_as_the_question_shows_it(host: str, make: Any) -> None:
    tool = make(f"https://{host}/", auth={"type": "bearer", "secret": "KEY"})
    assert [one.host for one in tool.requests({})] == [host]
    with pytest.raises(Refused, match=f"the secret KEY for {host}"):
        await tool.run({}, timeout_s=5)


async def test_a_secret_may_have_a_scheme_of_its_own(
    serve: Any, make: Any, secrets: Secrets
) -> None:
    secrets.set("weather", "127.0.0.1", "KEY", f"Token {SECRET}")
    auth = {"type": "header", "secret": "KEY", "name": "Authorization"}
    output = await make(await serve(echo), auth=auth).run({}, timeout_s=5)
    assert output["authorization"] == "[secret]"


async def test_many_short_numbers_are_no_attack(serve: Any, make: Any) -> None:
    numbers = [i / 10 for i in range(300_000)]
    output = await make(await serve(replying(json.dumps(numbers)))).run({}, timeout_s=10)
    assert output == {"value": numbers}


async def test_the_words_done_in_a_text_stay_text(serve: Any, make: Any) -> None:
    url = await serve(replying('{"done": true}', "text/plain"))
    assert "done" not in await make(url).run({}, timeout_s=5)


# several secrets of one binding -------------------------------------------------------------------


async def seen(request: web.Request) -> web.Response:
    return web.json_response({"path": request.raw_path, "headers": dict(request.headers)})


TOGETHER = [
    {"type": "header", "name": "X-App-Id", "secret": "APP_ID"},
    {"type": "query", "name": "api_key", "secret": "API_KEY"},
    {"type": "cookie", "name": "sid", "secret": "SESSION"},
    {"type": "bearer", "secret": "TOKEN", "optional": True},
]


async def test_secrets_are_sent_together_and_an_optional_one_only_if_it_is_bound(
    make: Any, serve: Any, secrets: Secrets
) -> None:
    base = await serve(seen)
    tool = make(f"{base}/x", "http", method="DELETE", auth=TOGETHER)
    for name in ("APP_ID", "API_KEY", "SESSION"):
        secrets.set("weather", "127.0.0.1", name, f"value-of/+{name.lower()}")
    (asked,) = tool.requests({"q": "a"})
    assert asked.secrets == (
        ("APP_ID", "X-App-Id"),
        ("API_KEY", "query api_key"),
        ("SESSION", "cookie sid"),
        ("TOKEN", "Authorization: Bearer, if it is bound"),
    )
    assert "value-of" not in repr(asked)
    got = await tool.run({"q": "a"}, timeout_s=5)
    assert "api_key=" in got["path"]
    assert "value-of" not in repr(got)
    assert "Authorization" not in got["headers"]
    assert got["headers"].keys() >= {"X-App-Id", "Cookie"}
    secrets.set("weather", "127.0.0.1", "TOKEN", "value-of-token")
    assert "Authorization" in (await tool.run({}, timeout_s=5))["headers"]


async def test_a_file_of_secrets_that_others_can_read_sends_nothing(
    make: Any, serve: Any, secrets: Secrets, tmp_path: Path
) -> None:
    base = await serve(seen)
    secrets.set("weather", "127.0.0.1", "TOKEN", "value-of-token")
    (tmp_path / "secrets.json").chmod(0o644)
    with pytest.raises(Refused) as refusal:
        await make(f"{base}/x", "http", method="GET", auth=TOGETHER[-1:]).run({}, timeout_s=5)
    assert refusal.value.code is Code.KEY_EXPOSED


async def test_a_needed_secret_that_is_not_bound_sends_nothing(make: Any, serve: Any) -> None:
    base = await serve(seen)
    with pytest.raises(Refused):
        await make(f"{base}/x", "http", method="PUT", auth=TOGETHER).run({}, timeout_s=5)


async def test_a_secret_that_would_add_a_cookie_is_not_sent(
    make: Any, serve: Any, secrets: Secrets
) -> None:
    base = await serve(seen)
    secrets.set("weather", "127.0.0.1", "SESSION", "first; second=value")
    with pytest.raises(InvalidInput, match="cookie"):
        await make(f"{base}/x", "http", method="GET", auth=[TOGETHER[2]]).run({}, timeout_s=5)
