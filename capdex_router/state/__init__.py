"""Objects that capabilities keep: CRDT documents, patches, queries, a store, exchange by file."""
