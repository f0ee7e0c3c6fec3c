"""Claim new names by commit and reveal (P12), so that nobody can copy a claim in flight.

`commitment` computes the secret and its commitment, `commit` sends it, `maturity` waits until it is
old enough.
"""
