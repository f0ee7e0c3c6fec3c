"""A mirror: the index as static files, one a name, laid out as crates.io's sparse index is.

    config.json       which index this is: contract, block, digests, where packages are
    2/ab  3/a/abc     names of two and three characters
    no/te/note        all others: one line of JSON a release, in the order of their announcement

One state of an index gives the same bytes wherever it is written, so a mirror published to IPFS has
one CID. What the node's operator denies is left out.
"""
