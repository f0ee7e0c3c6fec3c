"""`nuwa_a2a`: a tool call as a message to another agent (NIP-7, Tool Bindings).

NIP-7 names no wire format. This is the least that works, and claims no conformance to NIP-2 or
NIP-3: one HTTP POST of a JSON object `{to, id, created, method, params}`, which is not signed, to
the URL that the user configured for the DID. An answer is a JSON object.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.manifest.bindings.binding import DID
from capdex.manifest.bindings.http_request import PLACEHOLDER
from capdex_router.bindings.egress import Egress
from capdex_router.bindings.http import read_reply
from capdex_router.model.requests import AgentRequest

MAX_DID_CHARS: Final = 512


class AgentTool:
    """A tool bound to a method of another agent; its DID may come from an argument."""

    def __init__(self, binding: Mapping[str, Any], *, egress: Egress) -> None:
        self._target = str(binding["target_did"])
        self._method = str(binding["service_method"])
        self._egress = egress

    def requests(self, arguments: Json) -> Sequence[AgentRequest]:
        """Return the one message that a run sends; raises Refused if there is no way to it."""
        did = self._did(arguments)
        self._egress.located(did)
        return [AgentRequest(did, self._method)]

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Send the message; return the JSON object that the agent or the relay answers."""
        did = self._did(arguments)
        url = self._egress.located(did)
        message = {
            "to": did,
            "id": secrets.token_hex(16),
            "created": int(time.time()),
            "method": self._method,
            "params": arguments,
        }
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        reply = await self._egress.fetch(
            "POST", url, headers=headers, body=orjson.dumps(message), timeout_s=timeout_s
        )
        return read_reply(url.raw_host or "", reply)

    def _did(self, arguments: Json) -> str:
        did = PLACEHOLDER.sub(lambda match: str(arguments.get(match[1], "")), self._target)
        if len(did) > MAX_DID_CHARS or not DID.fullmatch(did) or set("/?#%") & set(did):
            raise InvalidInput(
                f"{did[:100]!r} is not a DID of an agent", fix="give one like did:web:example.org"
            )
        return did
