"""A running index node: `node` opens and wires everything, `writer` works under the lease.

`signals` runs it until the process is stopped.
"""
