"""The only I/O of the shared package: chain RPC, IPFS and a node's MCP endpoint."""
