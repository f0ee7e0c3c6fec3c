"""Hosts of MCP servers: where each keeps its configuration, and edits that leave the rest alone."""
