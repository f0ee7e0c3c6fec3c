"""`http_get`, `http_post` and `http`: a tool call as one HTTP request (NIP-7, Tool Bindings)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from encodings.aliases import aliases
from typing import Any, Final

from yarl import URL

from capdex.errors import CapdexError, Code, ExecutionFailed, InvalidInput, Refused, Unavailable
from capdex.json import Json
from capdex.manifest.bindings.contacts import carried_secrets
from capdex.manifest.bindings.http_auth import auths
from capdex.net.json_reply import parse
from capdex_router.bindings.egress import Egress, Reply, after_status, bad_reply
from capdex_router.bindings.request import DEFAULT_HEADERS, Outgoing, RequestTemplate
from capdex_router.bindings.styles import in_url
from capdex_router.model.images import image_of
from capdex_router.model.requests import HostRequest
from capdex_router.policy.quoting import quoted
from capdex_router.policy.secrets import Secrets, basic

EXCERPT_CHARS: Final = 500  # of a reply that reports an error: enough for its message
# Numbers of a measurement take four bytes and more each; `[],` of a hostile reply takes three.
LONG_BYTES: Final = 1024 * 1024
MIN_VALUE_BYTES: Final = 4
_REFUSES: Final = "the service refuses the request"
_BUSY: Final = {408, 425, 429}
# Of Python's codecs those of texts that services send, which take no more than linear time.
_CODECS: Final = {
    *("latin_1", "utf_16", "utf_16_be", "utf_16_le", "koi8_r", "koi8_u", "shift_jis", "cp932"),
    *("euc_jp", "euc_kr", "cp949", "gbk", "gb2312", "gb18030", "big5"),
    *(f"cp125{number}" for number in range(9)),
    *(f"iso8859_{number}" for number in range(2, 17) if number != 12),
}
_MARKUP_BYTES: Final = 1024  # in which a page or an XML document names its own encoding
_NAMES_ITS_OWN: Final = re.compile(
    rb"<(?:\?xml|meta)[^>]*[\s;\"'](?:encoding|charset)\s*=\s*[\"']?([\w.-]+)", re.IGNORECASE
)
# Content types of texts; a reply without a type counts as one.
_TEXTS: Final = re.compile(r"text/|.*[/+](json|xml)|$")
_TOLD: Final = ("retry-after", "www-authenticate")  # of a reply that reports an error


class HttpTool:
    """A tool bound to a URL; `capability` is the name to which its secret is bound.

    `binding` is that of a verified package. Raises InvalidInput if it cannot be sent.
    """

    def __init__(
        self, binding: Mapping[str, Any], *, capability: str, egress: Egress, secrets: Secrets
    ) -> None:
        self._template = RequestTemplate.of(binding)
        self._auths = list(auths(binding))
        self._carried = carried_secrets(binding)
        self._capability = capability
        self._egress = egress
        self._secrets = secrets

    def requests(self, arguments: Json) -> Sequence[HostRequest]:
        """Return the one request that a run makes."""
        return [_host_request(self._template.fill(arguments), self._carried)]

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Send the request; return the JSON object of the reply, or another reply in an object.

        JSON of another type is `{"value": …}`, an image the `content` that an MCP tool would give;
        anything else is `{"text", "content_type", "status"}`. Raises Unavailable if a later try may
        succeed, ExecutionFailed for another status from 400 on, Refused if a secret is missing or
        the host is not allowed.
        """
        try:
            outgoing = await self._with_secrets(self._template.fill(arguments))
            reply = await self._egress.fetch(
                outgoing.method,
                outgoing.url,
                headers=outgoing.headers,
                body=outgoing.body,
                timeout_s=timeout_s,
            )
            return read_reply(outgoing.url.raw_host or "", reply, self._secrets.redact)
        except CapdexError as error:
            raise self._secrets.redact_error(error) from None

    async def _with_secrets(self, outgoing: Outgoing) -> Outgoing:
        """Return the request with its secrets; raises Refused if one that it needs is missing."""
        headers, query, cookies = dict(outgoing.headers), "", []
        for auth in self._auths:
            where = (self._capability, outgoing.url.raw_host or "", auth["secret"])
            try:
                # In a thread: a desktop may ask its user to unlock the keyring.
                secret = await asyncio.to_thread(self._secrets.get, *where)
            except Refused as refusal:
                if auth.get("optional") and refusal.code is Code.UNAUTHENTICATED:
                    continue
                raise
            match auth["type"]:
                case "bearer":
                    headers["Authorization"] = f"Bearer {secret}"
                case "basic":
                    headers["Authorization"] = f"Basic {basic(secret)}"
                case "query":
                    query += f"&{in_url(auth['name'])}={in_url(secret)}"
                case "cookie":
                    cookies.append(f"{auth['name']}={_cookie_value(auth, secret)}")
                case _:
                    headers[auth["name"]] = secret
        if cookies:
            headers["Cookie"] = "; ".join(cookies)
        text = str(outgoing.url)
        url = URL(text + (query if "?" in text else query.replace("&", "?", 1)), encoded=True)
        return replace(outgoing, headers=headers, url=url)


def _cookie_value(auth: Mapping[str, Any], secret: str) -> str:
    if any(char in secret for char in ' ",;\\'):  # RFC 6265, 4.1.1
        raise InvalidInput(
            f"the secret {auth['secret']} cannot be sent in a cookie",
            why="it holds a space, a quotation mark, a comma, a semicolon or a backslash",
            fix="a person can set another by capdex secret",
        )
    return secret


def _host_request(outgoing: Outgoing, secrets: tuple[tuple[str, str], ...]) -> HostRequest:
    url = outgoing.url
    return HostRequest(
        outgoing.method,
        url.scheme,
        (url.raw_host or "").lower(),
        url.port or 443,
        url.raw_path,
        url.raw_query_string,
        tuple(sorted(x for x in outgoing.headers.items() if x not in DEFAULT_HEADERS.items())),
        outgoing.body,
        secrets,
    )


def read_reply(host: str, reply: Reply, redact: Callable[[Any], Any] = lambda x: x) -> Json:
    """Return the output that a reply holds; raises as `HttpTool.run` for a status from 400 on."""
    if reply.status >= 400:
        # Redacted before it is cut: half a secret would not be recognised.
        excerpt, headers = redact([_text(reply), dict(reply.headers)])
        says = (f"its {name} is {quoted(headers[name])}" for name in _TOLD if name in headers)
        raise failure(host, reply.status, excerpt[:EXCERPT_CHARS], "; ".join(says))
    output: Json = redact(_output(reply))
    return output


def failure(
    host: str, status: int, excerpt: str = "", why: str = ""
) -> Unavailable | ExecutionFailed:
    """Return the error for a status from 400 on.

    `excerpt` is the beginning of the body, and `why` what the headers say.
    """
    excerpts = {"excerpt": excerpt} if excerpt else {}
    details: Json = {"status": status} | excerpts | after_status(status)
    message = f"{host} answered with status {status}"
    if status >= 500 or status in _BUSY:
        code = Code.RATE_LIMITED if status == 429 else Code.SERVICE_UNAVAILABLE
        return Unavailable(message, code, why, "try again later", details)
    fix = f"change the input{' by what the excerpt says' if excerpt else ''}"
    if status in (401, 402, 403):
        fix = "a person must check its secret, or the account behind it"
    return ExecutionFailed(message, why=why or _REFUSES, fix=fix, details=details)


def _output(reply: Reply) -> Json:
    if image := image_of(reply.body):
        return {"content": [image]}
    kind, text = reply.headers.get("content-type", ""), _text(reply)
    places = {  # of what a POST made, and of the next page of a list
        name: reply.headers[name]
        for name, part in (("location", ""), ("link", 'rel="next"'))
        if name in reply.headers and part in reply.headers[name]
    }
    if text and ("json" in kind.lower() or not kind):
        try:
            value = parse(text.encode(), long_bytes=LONG_BYTES, min_value_bytes=MIN_VALUE_BYTES)
            return value if isinstance(value, dict) else {"value": value, **places}
        except ValueError as error:
            if str(error) != "not JSON":
                raise bad_reply("cannot be used", f"it is {error}") from None
    return {"text": text, "content_type": kind[:200], "status": reply.status, **places}


def _text(reply: Reply) -> str:
    kind, _, named = reply.headers.get("content-type", "").lower().partition("charset=")
    charset = named.partition(";")[0].strip("\"' ")
    if not charset and re.search("html|xml", kind):
        declared = _NAMES_ITS_OWN.search(reply.body[:_MARKUP_BYTES])
        charset = declared[1].decode().lower() if declared else ""
    charset = charset.replace("-", "_")
    charset = aliases.get(charset, charset)
    charset = charset if charset in _CODECS else "utf-8-sig"
    try:
        return reply.body.decode(charset)
    except UnicodeDecodeError:
        if not _TEXTS.match(kind):  # a picture, or a PDF
            return f"[{len(reply.body)} bytes that are not text]"
        return reply.body.decode(charset, "replace")
