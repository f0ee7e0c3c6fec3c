"""Access to an EVM chain through one RPC endpoint: reads, contract calls, prices, revert reasons.

Nothing here sends a transaction: `capdex_publisher.tx` does.
"""
