"""Answers over a read-only index: MCP tools by HTTP and stdio, and JSON pages of names.

`server` and `http` build the services; `tools` and `answers` define what clients see.
"""

from mcp_service.hosts import LOOPBACK, HostCheck, known_hosts

__all__ = ["LOOPBACK", "HostCheck", "known_hosts"]
