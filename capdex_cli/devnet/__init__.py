"""`capdex up`: a chain, a registry, IPFS, a node and example packages on this machine."""
