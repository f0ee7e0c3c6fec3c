"""HTTP routes of a node: status and metrics, the trustless gateway, the mirror of the index."""
