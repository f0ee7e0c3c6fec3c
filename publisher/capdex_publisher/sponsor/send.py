"""The author's side: sign a publication, and send it to a sponsor until it is on chain."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from capdex.diff.diff import Allowance
from capdex.errors import CapdexError, Code, InvalidInput, Unavailable, UsageError
from capdex.ipld.cid import Cid
from capdex.manifest.manifest import read
from capdex.net.http import HttpClient, HttpError, redact
from capdex.net.node_client import as_error
from capdex.package import VerifiedPackage
from capdex_publisher.commit_reveal import NO_SECRET, find_commitments
from capdex_publisher.keys.signer import Signer
from capdex_publisher.publish.preflight import compare_with_previous, look_up
from capdex_publisher.registry.registry import Registry
from capdex_publisher.sponsor.request import SponsorRequest

if TYPE_CHECKING:
    from capdex.net.ipfs.source import BlockSource

VALID_S: Final = 24 * 3600  # of a signature: a pipeline that waits for approval, and no longer
SEND_WAIT_S: Final = 600.0  # a new name takes a minute where it has to be reserved
MAX_ANSWER_BYTES: Final = 1 << 20
PUBLICATIONS: Final = "/publications"


async def sign_request(
    package: VerifiedPackage,
    *,
    registry: Registry,
    signer: Signer,
    sources: Sequence[BlockSource] = (),
    allow: frozenset[Allowance] = frozenset(),
    valid_s: int = VALID_S,
) -> SponsorRequest:
    """Sign the publication of a package by its account, for a sponsor to send.

    `sources` give the previous release, with which it is compared as by `publish`. Raises what
    `look_up` raises for a release that the registry would refuse, InvalidInput (ALREADY_DONE if it
    is published, STEP_TOO_SMALL, SCHEMA_CHANGED; also for a package with files), and what the
    signer raises.
    """
    if count := len(package.manifest.resources):
        raise InvalidInput(
            "a sponsor takes no files",
            why=f"the package names {count}, which somebody has to upload before it",
            fix="publish it from an account of your own: capdex publish",
        )
    candidate = await look_up(package, registry=registry)
    if candidate.already:
        said = candidate.announcement
        raise InvalidInput(
            f"{candidate.uri} is published already",
            Code.ALREADY_DONE,
            fix="nothing is left to do",
            details={"cap_uri": said.cap_uri, "cid": said.cid, "sha256": said.sha256.hex()},
        )
    await compare_with_previous(candidate, registry=registry, sources=sources, allow=allow)
    secret = NO_SECRET
    if candidate.claims_name:
        commitments = await find_commitments([candidate.name], registry=registry, signer=signer)
        secret = next((x.secret for x in commitments), NO_SECRET)
    request = SponsorRequest(
        chain_id=registry.chain_id,
        registry=registry.address,
        publisher=signer.address,
        nonce=await registry.signature_number(signer.address),
        deadline=int(time.time()) + valid_s,
        package=package.data,
        secret=secret,
    )
    signature = await signer.sign_typed_data(request.document(package.announcement))
    return replace(request, signature=signature)


async def send_request(
    request: SponsorRequest,
    sponsor_url: str,
    *,
    timeout_s: float = SEND_WAIT_S,
    on_wait: Callable[[str], None] = lambda words: None,
) -> dict[str, Any]:
    """Send a request, again while the sponsor is busy with it or down; return its JSON answer.

    Raises the sponsor's error, UsageError if none is at the URL or it answers about another
    release, and Unavailable if there is no answer within `timeout_s`, or at once if the account has
    had its share (`Budget.check_account`).
    """
    body, deadline = orjson.dumps(request.to_json()), time.monotonic() + timeout_s
    url, pause_s = sponsor_url.rstrip("/") + PUBLICATIONS, 0.25
    if not url.startswith(("http://", "https://")):
        raise _no_sponsor(url, "it is not an http(s) URL")
    async with HttpClient() as http:
        while True:
            try:
                answer = await _post(http, url, body)
                if "cap_uri" in answer:
                    return _checked(answer, request, url)
                waits = "the sponsor waits for the block"
            except Unavailable as error:
                after_s = (error.details or {}).get("retry_after_s")  # an account has had its share
                if time.monotonic() + pause_s > deadline or isinstance(after_s, int):
                    raise
                waits = f"{error.message}: {error.why}"
            if time.monotonic() + pause_s > deadline:
                raise _unavailable(url, f"not on chain within {timeout_s:.0f} s")
            on_wait(waits)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 5.0)


def _checked(answer: dict[str, Any], request: SponsorRequest, url: str) -> dict[str, Any]:
    """Return an answer about the release that was sent; raises UsageError for another one."""
    wanted = {
        "cap_uri": str(read(request.package).require().uri),
        "cid": str(Cid.of(request.package)),
        "sha256": hashlib.sha256(request.package).hexdigest(),
    }
    if any(answer.get(key) != value for key, value in wanted.items()):
        raise _no_sponsor(url, f"it answers about another release than {wanted['cap_uri']}")
    return answer


async def _post(http: HttpClient, url: str, body: bytes) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    try:
        response = await http.request(
            "POST", url, body=body, headers=headers, max_bytes=MAX_ANSWER_BYTES
        )
        answer = orjson.loads(response.body)
    except TimeoutError:
        raise _unavailable(url, "no answer in time") from None
    except HttpError as error:
        raise _unavailable(url, str(error)) from None
    except orjson.JSONDecodeError:
        raise _unavailable(url, "its answer is not JSON") from None
    if not isinstance(answer, dict):
        raise _unavailable(url, "its answer is not an object")
    if "code" in answer:
        raise as_error(answer, "the sponsor")
    if "cap_uri" in answer or answer.get("state") == "open":
        return answer
    if response.status >= 500:
        raise _unavailable(url, f"it answered {response.status}")
    raise _no_sponsor(url, "it answers something else")


def _no_sponsor(url: str, why: str) -> UsageError:
    return UsageError(
        f"{redact(url)} is no sponsor", why=why, fix="give the URL of one, as http://…"
    )


def _unavailable(url: str, why: str) -> CapdexError:
    return Unavailable(
        f"the sponsor at {redact(url)} does not answer",
        Code.SERVICE_UNAVAILABLE,
        why=why,
        fix="run the same command again: nothing is paid twice",
    )
