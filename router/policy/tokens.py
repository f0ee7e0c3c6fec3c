"""Scope tokens: canonical JSON and an HMAC, which can only be narrowed. Pure.

They are like ZCAP (a scope, caveats, a chain), not ZCAP-LD: no linked data, and no delegation to
another machine. One key per installation signs all of them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import orjson

from capdex.errors import Code, Refused

MAX_TOKEN_CHARS: Final = 16_384
KEY_BYTES: Final = 32

_bearer: ContextVar[str | None] = ContextVar("scope token of the call", default=None)


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rights of one call. `expires` is in seconds since 1970; `parent` is a `jti` or None."""

    jti: str
    package: str
    scope: str
    verbs: tuple[str, ...]
    schema_uris: tuple[str, ...]
    expires: float
    parent: str | None = None


_decode: Final = msgspec.json.Decoder(Token).decode


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs and checks tokens with the key of this installation."""

    key: bytes

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise ValueError(f"the key has {len(self.key)} bytes, not {KEY_BYTES}")

    def sign(self, token: Token) -> str:
        """Return a token as text: base64 of its JSON, a dot, base64 of its HMAC-SHA256."""
        body = orjson.dumps(msgspec.structs.asdict(token), option=orjson.OPT_SORT_KEYS)
        return f"{_text(body)}.{_text(self._mac(body))}"

    def read(self, text: str, now: float) -> Token:
        """Return a token; raises Refused PERMISSION_DENIED if it is forged or has expired."""
        try:
            if len(text) > MAX_TOKEN_CHARS:
                raise ValueError("too long")
            body, mac = (_bytes(part) for part in text.split("."))
        except (ValueError, binascii.Error):
            raise _refused("it is not a token") from None
        if not hmac.compare_digest(mac, self._mac(body)):
            raise _refused("its signature is wrong")
        token = _decode(body)
        if now >= token.expires:
            raise _refused("it has expired")
        return token

    def narrow(
        self,
        text: str,
        now: float,
        *,
        jti: str,
        verbs: Iterable[str] | None = None,
        schema_uris: Iterable[str] | None = None,
        expires: float | None = None,
    ) -> str:
        """Return a child of a token with fewer rights; raises Refused for one with more."""
        parent = self.read(text, now)
        child = replace_token(
            parent,
            jti=jti,
            parent=parent.jti,
            verbs=parent.verbs if verbs is None else tuple(verbs),
            schema_uris=parent.schema_uris if schema_uris is None else tuple(schema_uris),
            expires=parent.expires if expires is None else expires,
        )
        wider = (
            not set(child.verbs) <= set(parent.verbs)
            or not set(child.schema_uris) <= set(parent.schema_uris)
            or not child.expires <= parent.expires
        )
        if wider:
            raise _refused("it would have more rights than its parent")
        return self.sign(child)

    def check(self, text: str | None, now: float, *, verb: str, scope: str, schema: str) -> Token:
        """Return the token that allows a state verb; raises Refused PERMISSION_DENIED."""
        if text is None:
            raise _refused("there is none")
        token = self.read(text, now)
        if verb not in token.verbs:
            raise _refused(f"it does not allow {verb}")
        if scope != token.scope:
            raise _refused("it is for another scope")
        if schema not in token.schema_uris:
            raise _refused("it is for another schema")
        return token

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self.key, body, hashlib.sha256)


def replace_token(token: Token, **changes: Any) -> Token:
    """Return a token with some fields changed, unsigned."""
    return msgspec.structs.replace(token, **changes)


@contextmanager
def carrying(text: str | None) -> Iterator[None]:
    """Let the executor of one call find its token by `bearer`."""
    before = _bearer.set(text)
    try:
        yield
    finally:
        _bearer.reset(before)


def bearer() -> str | None:
    """Return the token of the call that runs; None outside of one."""
    return _bearer.get()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)


def _refused(why: str) -> Refused:
    return Refused("the scope token does not allow this", Code.PERMISSION_DENIED, why=why)
