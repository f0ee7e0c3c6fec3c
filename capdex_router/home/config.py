"""The registry and the nodes that a router installs from, as the user configured them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class NodeAddress(NamedTuple):
    """A node: where it answers MCP, and the trustless gateway that gives its packages."""

    mcp_url: str
    gateway_url: str


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of a router; everything may be missing, and what is installed works nevertheless.

    `registry` is the address of the contract (20 bytes). `trust_rpc_url` is an endpoint of another
    operator than the nodes: with it every answer of a node is proven. `rpc_url` alone decides when
    nodes differ.
    """

    nodes: tuple[NodeAddress, ...] = ()
    chain_id: int | None = None
    registry: bytes | None = None
    rpc_url: str = ""
    trust_rpc_url: str = ""
