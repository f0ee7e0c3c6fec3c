"""JSON-RPC client for reading an EVM chain: bounded, batched, with several endpoints failed over.

`client.Rpc` makes calls; the `fault` of an `RpcError` in `errors` says why one failed. They stand
apart: workers that only parse replies do not have to import asyncio.
"""
