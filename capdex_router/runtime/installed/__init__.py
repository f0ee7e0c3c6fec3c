"""Packages in the catalogue: installed ones with their short forms, and a file that is tried."""
