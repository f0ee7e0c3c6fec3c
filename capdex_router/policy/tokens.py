"""Scope tokens: the state requests of one call, for one content, until its deadline.

They are like ZCAP (a scope, caveats), not ZCAP-LD. A token never leaves the process, so it needs no
signature: only the pipeline makes one, and the executor of that call alone finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from capdex.errors import Code, Refused
from capdex_router.model.requests import StateRequest


@dataclass(frozen=True, slots=True)
class Token:
    """The rights of one call. `package` is a digest, `expires` in seconds since 1970."""

    package: str
    requests: frozenset[StateRequest]
    expires: float


_bearer: ContextVar[Token | None] = ContextVar("scope token of the call", default=None)


@contextmanager
def carrying(token: Token | None) -> Iterator[None]:
    """Let the executor of one call find its token by `bearer`."""
    before = _bearer.set(token)
    try:
        yield
    finally:
        _bearer.reset(before)


def bearer() -> Token | None:
    """Return the token of the call that runs; None outside of one."""
    return _bearer.get()


def check(now: float, package: str, request: StateRequest) -> None:
    """Raise Refused PERMISSION_DENIED unless the token of the call allows a state request."""
    token = bearer()
    if token is None:
        why = "there is none"
    elif now >= token.expires:
        why = "it has expired"
    elif package != token.package or request not in token.requests:
        why = "it is for another package, verb, scope or schema"
    else:
        return
    what = "the scope token does not allow this"
    raise Refused(what, Code.PERMISSION_DENIED, why=why, fix="call the tool again")
