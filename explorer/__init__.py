"""The explorer: a node's index as web pages for people, read by the queries of `mcp_service`."""
