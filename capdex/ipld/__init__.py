"""Content-addressed data: CIDs, CAR files, and UnixFS files in raw or dag-pb blocks (P3)."""
