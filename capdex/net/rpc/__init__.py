"""JSON-RPC client for reading an EVM chain: bounded, batched, with several endpoints failed over.

`client.Rpc` makes calls; the `fault` of an `RpcError` says why one failed. The client is not
exported here: workers that only parse replies do not have to import asyncio.
"""

from capdex.net.rpc.errors import RpcError, RpcFault

__all__ = ["RpcError", "RpcFault"]
