"""Commands that find releases: search, resolve, show, list, get and diff."""
