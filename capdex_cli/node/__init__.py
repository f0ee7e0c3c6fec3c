"""`capdex node` as a process: the node's loops and its HTTP and MCP answers on one port."""
