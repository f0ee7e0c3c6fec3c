"""All network access of the protocol package. Every other package of `capdex` is pure."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex.net.verified_resolve import BlockTrust as BlockTrust
    from capdex.net.verified_resolve import VerifiedResolution as VerifiedResolution
    from capdex.net.verified_resolve import resolve_verified as resolve_verified
else:  # its names and `__all__`: the imports above
    __getattr__ = door(__name__)
