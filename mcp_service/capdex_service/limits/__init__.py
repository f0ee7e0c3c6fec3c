"""Bounds on what clients may ask: hosts, connections, rates, tokens."""
