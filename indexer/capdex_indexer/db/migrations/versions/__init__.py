"""Revisions of the tables, oldest first."""
