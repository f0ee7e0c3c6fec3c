"""Access to an EVM chain through one RPC endpoint; `capdex_publisher.tx` sends."""
