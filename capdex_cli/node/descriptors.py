"""File descriptors of a node: as many as the system allows, and some kept for its own work."""

from __future__ import annotations

import resource
from typing import Final

import msgspec

from capdex_service.limits.options import ClientLimits

MAX_DESCRIPTORS: Final = 65_536  # more are of no use, and closing all of them takes time
# 128 fetches at once, the chain endpoints, some ten of the databases, files, proofs, workers.
RESERVED: Final = 256


def fit_descriptors(limits: ClientLimits) -> ClientLimits:
    """Raise the soft limit of descriptors to the hard one; return `limits` that fit into it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft == resource.RLIM_INFINITY:
        return limits
    free = max(soft - RESERVED, soft // 4)
    return msgspec.structs.replace(limits, max_connections=min(limits.max_connections, free))
