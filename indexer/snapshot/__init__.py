"""An index in one file: exported from a database, verified, and restored into another (P14).

    manifest         the first block: block number, log heads, digests, the CIDs of the chunks
    event_records    events as bytes: the leaves of the index digest, with the time of their block
    archive          blocks in a CAR file, written and read one at a time, each hashed
    export, reader, verify, restore    database -> file -> events -> check by the chain -> database

A snapshot contains no verdict: the node that restores it judges the packages again.
"""
