"""Claim new names by commit and reveal (P12), which protects a claim in flight from being copied.

`commitment` computes the secret and its commitment, `commit` sends it, `maturity` waits until it is
old enough.
"""
