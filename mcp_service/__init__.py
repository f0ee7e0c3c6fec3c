"""Readers of the index, speaking MCP."""
