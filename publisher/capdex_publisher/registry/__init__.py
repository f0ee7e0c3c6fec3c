"""The registry contract: what it says of names and releases, and every change to them."""

from capdex_publisher.registry.registry import Registry

__all__ = ["Registry"]
