"""`nuwa_a2a`: a tool call as a message to another agent (NIP-7, Tool Bindings).

NIP-7 names no wire format. This is the least that works, and claims no conformance to NIP-2 or
NIP-3: one HTTP POST of a JSON object `{from, to, id, created, method, params, signature}` to the
URL that the user configured for the DID. An answer is a JSON object. The signature is Ed25519 over
the object without `signature`, as JSON with sorted keys and without spaces.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from capdex.did import did_key
from capdex.encoding.multiformats import encode_multibase
from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.manifest.bindings.binding import DID
from capdex.manifest.bindings.http_request import PLACEHOLDER
from capdex_router.bindings.egress import Egress
from capdex_router.bindings.http import read_reply
from capdex_router.model.requests import AgentRequest

MAX_DID_CHARS: Final = 512


@dataclass(frozen=True, slots=True)
class Agents:
    """The ways to other agents: addresses of the egress; `key` signs messages as its did:key."""

    egress: Egress
    key: Ed25519PrivateKey | None = None

    def message(self, did: str, method: str, params: Json) -> Json:
        """Return a message, signed if there is a key."""
        message = {
            "to": did,
            "id": secrets.token_hex(16),
            "created": int(time.time()),
            "method": method,
            "params": params,
        }
        if self.key is None:
            return message
        message["from"] = did_key(self.key.public_key().public_bytes_raw())
        return {**message, "signature": encode_multibase(self.key.sign(signed_bytes(message)))}


def signed_bytes(message: Json) -> bytes:
    """Return what the signature of a message is over."""
    unsigned = {name: value for name, value in message.items() if name != "signature"}
    text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


class AgentTool:
    """A tool bound to a method of another agent; its DID may come from an argument."""

    def __init__(self, binding: Mapping[str, Any], *, agents: Agents) -> None:
        self._target = str(binding["target_did"])
        self._method = str(binding["service_method"])
        self._agents = agents

    def requests(self, arguments: Json) -> Sequence[AgentRequest]:
        """Return the one message that a run sends; raises Refused if there is no way to it."""
        did = self._did(arguments)
        self._agents.egress.located(did)
        return [AgentRequest(did, self._method)]

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Send the message; return the JSON object that the agent or the relay answers."""
        did = self._did(arguments)
        url = self._agents.egress.located(did)
        body = orjson.dumps(self._agents.message(did, self._method, arguments))
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        reply = await self._agents.egress.fetch(
            "POST", url, headers=headers, body=body, timeout_s=timeout_s
        )
        return read_reply(url.raw_host or "", reply)

    def _did(self, arguments: Json) -> str:
        did = PLACEHOLDER.sub(lambda match: str(arguments.get(match[1], "")), self._target)
        if len(did) > MAX_DID_CHARS or not DID.fullmatch(did) or set("/?#%") & set(did):
            raise InvalidInput(
                f"{did[:100]!r} is not a DID of an agent", fix="give one like did:web:example.org"
            )
        return did
