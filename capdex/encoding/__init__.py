"""Encodings of bytes that several formats use: ABI words, base58, varint, keccak, arrays."""
