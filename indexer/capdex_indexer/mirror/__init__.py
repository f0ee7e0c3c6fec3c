"""A mirror: the index as static files, laid out as the sparse index of crates.io is.

    config.json       which index this is: contract, block, digests, where packages are
    2/ab  3/a/abc     names of two and three characters
    no/te/note        all other names: one line of JSON a release, in the order of announcement

One state of an index gives the same bytes wherever it is written, so a mirror published to IPFS has
one CID. Names and packages that the node's operator denies are left out.
"""
