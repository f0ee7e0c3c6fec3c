"""The search engine: documents to postings in immutable segments, queries to ranked names.

Pure: an `Engine` is a value, `add` and `remove` return another one. What it answers depends on the
documents that it holds alone, never on how they came into it.
"""
