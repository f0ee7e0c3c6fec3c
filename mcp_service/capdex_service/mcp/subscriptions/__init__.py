"""Subscriptions of MCP clients to names and to everything new, in both protocols."""
