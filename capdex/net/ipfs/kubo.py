"""Kubo RPC: uploads through ipfshttpclient, blocks by `block/get` (docs/adr/0003)."""

from __future__ import annotations

import asyncio
import io
import ssl
import warnings
from contextlib import closing, suppress
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from typing_extensions import override

from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import LEAF_BYTES, divide
from capdex.net.connection import proxy_of, words_of_connection
from capdex.net.ipfs.gateway import Http
from capdex.net.ipfs.source import FetchOutcome
from capdex.net.rpc.endpoint import without_secrets

UPLOAD_S: Final = 30.0

# ipfshttpclient 0.7 still passes an argument that urllib3 2 no longer needs.
warnings.filterwarnings("ignore", "The 'strict' parameter is no longer needed", FutureWarning)


class Kubo(Http):
    """RPC of a Kubo daemon, given by URL (`http://127.0.0.1:5001`) or multiaddr."""

    kind, prefix = "kubo", "Kubo at "

    def __init__(self, api: str) -> None:
        url = url_of(api) if api.startswith("/") else api.rstrip("/")
        super().__init__(url)
        self._address = multiaddr_of(url), f"{urlsplit(url).path}/api/v0"

    @override
    def request(self, cid: Cid) -> tuple[str, str]:
        return "POST", f"{self.base_url}/api/v0/block/get?arg={cid}"

    @override
    def outcome(self, status: int) -> FetchOutcome:
        """Classify a status other than 200; Kubo answers 500 for every failure and absence."""
        return FetchOutcome.ABSENT if status == 500 else super().outcome(status)

    @override
    def hint(self, status: int, start: bytes) -> str:
        """Return what Kubo says; only another server than Kubo's RPC answers 404."""
        if status == 404:
            return ": it is not Kubo's RPC; write gateway:URL if it is a gateway"
        with suppress(orjson.JSONDecodeError, TypeError, KeyError):
            start = str(orjson.loads(start)["Message"]).encode()
        return super().hint(status, start)

    async def put(self, data: bytes) -> Cid:
        """Add and pin a file in the blocks of `divide`; raises Unavailable if Kubo fails."""
        expected = divide(data)[0][0]
        try:
            async with asyncio.timeout(UPLOAD_S):
                answered = await asyncio.to_thread(self._add, data)
            stored = Cid.parse(answered)
        except TimeoutError:
            raise self._down(f"it did not answer within {UPLOAD_S:.0f} s") from None
        except InvalidInput as error:
            raise self._down(f"{error.message}: {error.why}") from None
        # Compared as CIDs, not as text, since a daemon may use another base.
        if (stored.codec, stored.digest) != (expected.codec, expected.digest):
            raise self._down(f"it stored the file as {stored}, not as {expected}")
        return expected

    def _add(self, data: bytes) -> str:
        import ipfshttpclient

        proxy = proxy_of(self.base_url)
        # `connect` refuses Kubo from 0.8 on. `session` opens it, as `with client:` would once more.
        try:
            client = ipfshttpclient.Client(*self._address, session=True, timeout=UPLOAD_S)
            with closing(client):
                session: Any = client._client._session  # which has no public face
                paths = ssl.get_default_verify_paths()
                session.verify = paths.cafile or paths.capath or True
                session.trust_env = False  # it would read a proxy for what is near, too
                session.proxies = {urlsplit(self.base_url).scheme: proxy}
                chunker = f"size-{LEAF_BYTES}"
                added: Any = client.add(
                    io.BytesIO(data), raw_leaves=True, cid_version=1, pin=True, chunker=chunker
                )
                return str(added["Hash"])
        except Exception as error:  # noqa: BLE001 - errors of requests, urllib3 and the client
            root: BaseException = error  # each wraps another, the innermost is the system's
            while root.__context__ is not None:
                root = root.__context__
            # Those of requests are OSErrors, too; a proxy's refusal is one without a number.
            known = isinstance(root, OSError) and (root.errno or type(root) is OSError)
            known = known or isinstance(root, ConnectionError)  # Kubo closed the connection
            words = words_of_connection(root, proxy) if known else str(error).split(" for url")[0]
            raise self._down(words[:200] or type(error).__name__) from None

    def _down(self, why: str) -> Unavailable:
        return Unavailable(
            f"{self.label} did not take the file",
            Code.IPFS_UNAVAILABLE,
            why=without_secrets(why, self.base_url),
            fix="see that it runs (`ipfs daemon`) and can write, or use --ipfs dir:PATH",
        )


def multiaddr_of(url: str) -> str:
    """Convert `http://127.0.0.1:5001` to `/ip4/127.0.0.1/tcp/5001/http`."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        kind = f"ip{ip_address(host).version}"
    except ValueError:
        kind = "dns"
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"/{kind}/{host}/tcp/{port}/{parts.scheme}"


def url_of(multiaddr: str) -> str:
    """Convert `/ip4/127.0.0.1/tcp/5001[/http]` to a URL; raises UsageError."""
    match multiaddr.strip("/").split("/"):
        case ["ip4" | "ip6" | "dns" | "dns4" | "dns6" as kind, host, "tcp", port, *rest] if (
            port.isdigit() and rest in ([], ["http"], ["https"])
        ):
            scheme = rest[0] if rest else "http"
            return f"{scheme}://[{host}]:{port}" if kind == "ip6" else f"{scheme}://{host}:{port}"
    raise UsageError(
        f"{multiaddr!r} is not a multiaddr of a Kubo RPC",
        Code.CONFIG,
        fix="write it like /ip4/127.0.0.1/tcp/5001",
    )
