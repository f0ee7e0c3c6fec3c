"""All network access of the protocol package. Every other package of `capdex` is pure."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex.net.verified_resolve import BlockTrust, VerifiedResolution, resolve_verified

__all__ = ["BlockTrust", "VerifiedResolution", "resolve_verified"]

if not TYPE_CHECKING:  # for a type checker a room has these names alone
    __getattr__ = door(__name__)
