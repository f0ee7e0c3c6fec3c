"""One RPC endpoint: its address, its label without secrets, and its health."""

from __future__ import annotations

import math
import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from capdex.errors import Code, UsageError
from capdex.net.http import redact
from capdex.net.rpc.abilities import Abilities
from capdex.net.rpc.errors import RpcError, RpcFault, rpc_error
from capdex.net.rpc.pacing import Batches, Breaker, Circuit, Throttle, full_jitter

MIN_SECRET_CHARS: Final = 12  # of a key in a URL; names of chains and networks are shorter


@dataclass(frozen=True, slots=True)
class EndpointState:
    """The state of an endpoint.

    `label` and the text of `error` are for the operator alone: a host may contain an API key, and
    an endpoint chooses its own words.
    """

    label: str
    current: bool
    circuit: Circuit
    cooldown_s: float
    avoided_s: float
    error: RpcError | None = None  # the last one, until the next answer
    abilities: Abilities = field(default_factory=Abilities)


@dataclass(eq=False, slots=True)
class Endpoint:
    """An endpoint and its health; `label` names it without secrets, `origin` is its machine."""

    url: str
    label: str
    breaker: Breaker
    throttle: Throttle = field(default_factory=Throttle)
    batches: Batches = field(default_factory=Batches)
    abilities: Abilities = field(default_factory=Abilities)
    probed_at: float = -math.inf  # when all abilities were
    chain: int | None = None  # the chain id that it answered
    verified: bool = False  # it answered with the expected chain id and first block
    avoided_until: float = 0.0  # it contradicted itself: used only while the others pause
    last_error: RpcError | None = None  # the last error, until the next answer
    refusals: int = 0  # rate refusals in a row; those of calls under way together are one

    @property
    def origin(self) -> str:
        """Host and port: two API keys of one vendor count as one source."""
        return urlsplit(self.url).netloc.rpartition("@")[2].lower()

    def wait_s(self, now: float) -> float:
        """Return the seconds until a call may be made; 0 if it may be made now."""
        return max(self.breaker.wait_s(now), self.throttle.wait_s(now))

    def begin(self, now: float, calls: int) -> None:
        """Record the start of `calls`, after `wait_s` was 0."""
        self.breaker.begin()
        self.throttle.take(now, calls)

    def answered(self, calls: int) -> None:
        """Record that `calls` were answered."""
        self.breaker.succeeded()
        self.throttle.succeeded(calls)
        self.batches.answered(calls)
        self.last_error, self.refusals = None, 0

    def failed(self, error: RpcError, now: float, sent: float) -> None:
        """Record a failed call that was sent at `sent`."""
        breaker = self.breaker
        if error.fault is RpcFault.RATE:
            breaker.succeeded()
            rest_s = error.retry_after_s
            if rest_s is None:
                rest_s = full_jitter(self.refusals, breaker.base_s, breaker.cap_s, breaker.uniform)
            self.refusals += self.throttle.refused(now, sent, rest_s)
            self.last_error = error
        elif error.answered and error.fault not in (RpcFault.TRANSIENT, RpcFault.TIMEOUT):
            self.answered(1)  # refusing this one call is not a fault of the endpoint
        else:
            self.cool_down(error, now, error.retry_after_s)

    def cool_down(self, error: RpcError, now: float, rest_s: float | None = None) -> None:
        """Pause for `rest_s` or a random time; an open circuit has the chain id verified again."""
        self.breaker.failed(now, rest_s)
        self.last_error = error
        if self.breaker.circuit(now) is not Circuit.CLOSED:
            self.doubt()

    def doubt(self) -> None:
        """Have the chain verified again before the next use."""
        self.chain, self.verified = None, False

    def cooling_down(self, now: float) -> RpcError:
        """Return the error of a call that was not made because the endpoint still pauses."""
        wait_s = self.wait_s(now)
        last = self.last_error
        fault = last.fault if last else RpcFault.RATE
        why = last.why if last else "its rate limit is used up"
        error = rpc_error(self.label, fault, f"{why}; paused for {wait_s:.0f} s", wait_s)
        error.code = last.code if last else Code.RATE_LIMITED
        return error

    def state(self, now: float, *, current: bool) -> EndpointState:
        """Return the state now."""
        return EndpointState(
            self.label,
            current,
            self.breaker.circuit(now),
            self.wait_s(now),
            max(0.0, self.avoided_until - now),
            self.last_error,
            self.abilities,
        )


def without_secrets(text: str, url: str) -> str:
    """Return a text without a URL's password, path and query, and their long parts, mostly keys.

    An endpoint may repeat the address that it was asked at, and the password.
    """
    parts = urlsplit(url)
    asked = urlunsplit(parts._replace(scheme="", netloc="", fragment=""))
    if asked.strip("/"):
        text = text.replace(asked, "/…")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    pair = b64encode(f"{user}:{password}".encode()).decode()  # as the header has it
    for secret in (pair, password, user, *re.split(r"[/?&=]", asked)):
        if len(secret) >= MIN_SECRET_CHARS or (password and secret in (pair, password)):
            text = text.replace(secret, "…")
    return text


def labels(urls: list[str]) -> list[str]:
    """Return a distinct label for each URL."""
    shown = [redact(url) for url in urls]
    return [
        label if shown.count(label) == 1 else f"{label} ({shown[: at + 1].count(label)})"
        for at, label in enumerate(shown)
    ]


def split_schemes(url: str) -> tuple[str, str]:
    """Return the HTTP and the WebSocket URL of an endpoint; raises UsageError CONFIG."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")  # raises for empty and long labels
        named = bool(host) and parts.port != 0  # a port may be none, too
        known = parts.scheme in ("http", "https", "ws", "wss") and named
    except ValueError:
        known = False
    if not known:
        raise UsageError(
            "an RPC endpoint is not a URL this program can use",
            Code.CONFIG,
            why="its scheme must be http, https, ws or wss, its port at most 65535, and it must"
            " name a host",
            fix="write it like http://127.0.0.1:8545, without quotes; only a node takes several,"
            " with spaces between them",
        )
    tail = "s" if parts.scheme in ("https", "wss") else ""
    return (
        urlunsplit(parts._replace(scheme=f"http{tail}")),
        urlunsplit(parts._replace(scheme=f"ws{tail}")),
    )
