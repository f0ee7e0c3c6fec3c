"""Claim new names by commit and reveal (P12), which protects a claim in flight from being copied.

`commit` makes and sends the commitment of a secret, `maturity` waits until it is old enough.
"""
