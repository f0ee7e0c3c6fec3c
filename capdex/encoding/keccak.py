"""keccak-256, the hash of the EVM: a backfill spends more time in it than in anything else."""

from __future__ import annotations

from collections.abc import Callable


def fastest() -> Callable[[bytes], bytes]:
    """The fastest keccak-256 that this system has."""
    try:
        from sha3 import keccak_256
    except ImportError:  # no wheel for this system: three times slower, and the same hash
        from eth_hash.auto import keccak as pure

        return pure

    def fast(data: bytes) -> bytes:
        digest: bytes = keccak_256(data).digest()
        return digest

    return fast


keccak = fastest()
