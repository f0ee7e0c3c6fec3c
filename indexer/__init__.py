"""chain + IPFS -> rows: the only writer of the index."""
