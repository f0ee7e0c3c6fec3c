"""Packages as other specifications describe them, the same for a registry and a router."""
