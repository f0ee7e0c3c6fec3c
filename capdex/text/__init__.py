"""Texts of very many packages in arrays: sets of immutable segments, and their form as bytes."""
