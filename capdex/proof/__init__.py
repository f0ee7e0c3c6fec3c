"""Proofs of the registry's state by a block hash, and the digests of an index (P13, P14).

A proof document is parsed (`document`), verified against a trusted block hash (`verify`), and
compared with a node's answer (`resolution`).
"""
