"""Every error code of P16 reaches the model in each client: no SDK throws the answer away."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex.uri import CapabilityURI
from capdex_indexer.query.index import Index
from capdex_indexer.query.release import IndexedRelease
from capdex_service.answers.errors import PUBLIC
from capdex_service.queries.reader import Reader

from .conftest import COMMANDS, Thrown

pytestmark = pytest.mark.real

REAL = {
    "did:nuwa:cap:nothing-like-it": Code.NOT_FOUND,
    "did:nuwa:cap:gone": Code.YANKED,
    "did:nuwa:cap:Bad Name": Code.INVALID_INPUT,
    "did:nuwa:cap:forged": Code.UNVERIFIED,
    "did:nuwa:cap:soon": Code.PENDING,
}
# Codes that a call of a tool over this index does not run into: a reader raises them.
RAISED = {f"did:nuwa:cap:raise-{x.lower().replace('_', '-')}": x for x in PUBLIC - {*REAL.values()}}


class Refusing(Reader):
    """Raises the error that the name of a capability names."""

    def resolve(self, connection: Connection, uri: CapabilityURI) -> IndexedRelease:
        code = RAISED.get(f"did:nuwa:cap:{uri.name}")
        if code is None:
            return super().resolve(connection, uri)
        raise _error(code)


def _error(code: Code) -> CapdexError:
    later = (Code.STALLED, Code.RATE_LIMITED, Code.SERVICE_UNAVAILABLE, Code.TIMEOUT)
    family = Unavailable if code in later else InvalidInput
    return family("it went wrong in a known way", code, fix="do something else")


# The Python SDK 1.x ends its session at any status of 400 and above but 404, and shows no body.
@pytest.mark.parametrize("client", [x for x in COMMANDS if x != "python-1"])
async def test_the_refusal_of_a_whole_request_says_why(
    client: str, start: Any, node_url: str
) -> None:
    async with start(client, f"{node_url}/mcp") as ask:
        with pytest.raises(Thrown, match="TOO_LARGE: a request has at most"):
            await ask("call", tool="resolve_capability", given={"cap_uri": "x" * 300_000})
        answer = await ask(
            "call", tool="resolve_capability", given={"cap_uri": "did:nuwa:cap:note"}
        )
        assert not answer.get("isError")


async def test_every_error_code_reaches_the_model(
    client: str, start: Any, index: Index, serve: Any
) -> None:
    async with serve(index, Refusing) as url, start(client, f"{url}/mcp") as ask:
        await ask("tools")  # from now on the SDKs know the schemas that they check answers by
        for cap_uri, code in {**REAL, **RAISED}.items():
            answer = await ask("call", tool="resolve_capability", given={"cap_uri": cap_uri})
            assert answer["isError"]
            assert answer["structuredContent"]["code"] == code
            message = answer["structuredContent"]["message"]
            assert answer["content"][0]["text"].startswith(f"{code}: {message}")
