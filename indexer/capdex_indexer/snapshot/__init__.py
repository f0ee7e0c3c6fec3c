"""An index in one file: exported from a database, verified, and restored into another (P14).

    archive          blocks in a CAR file, each hashed: the manifest, then events as bytes
    export, reader, verify, restore    database -> file -> events -> check by the chain -> database

A snapshot contains no verdict: the node that restores it judges the packages again.
"""
