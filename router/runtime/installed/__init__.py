"""Installed packages in the catalogue, and the short forms that a start reads."""
