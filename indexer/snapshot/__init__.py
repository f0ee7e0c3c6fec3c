"""An index in one file: made from a database, and proven before it becomes another one (P14).

    manifest    what a snapshot says of itself: block, log heads, digests, the CIDs of its chunks
    records     events as bytes: the leaves of the index digest, each with the time of its block
    archive     blocks in a CAR file, written and read one at a time, none of them believed
    export      database and block directory -> file
    reading     file -> events and packages, in order, hashed and folded
    checking    whether the chain has just these events, where the file says they are
    restore     file -> an empty database and a block directory, whole or not at all

What a snapshot never holds is a verdict: whoever takes it judges the packages again.
"""
