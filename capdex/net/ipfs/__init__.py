"""IPFS sources and storages (block directory, gateway, Kubo), and fetching from several of them."""
